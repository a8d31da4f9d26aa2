//! What the control socket tells of a reload: plain values, the same in `--json`.

use serde::{Deserialize, Serialize};

use crate::changes::{Change, Deferred};

/// How a reload went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum ReloadReport {
    /// The configuration is in force, all but what takes a restart.
    Reloaded {
        /// The file that was read, and what it includes.
        file: String,
        /// What is different now; empty if nothing is.
        changes: Vec<Change>,
        /// What takes effect after a restart.
        after_restart: Vec<Deferred>,
        /// Sessions that went on throughout.
        sessions: u64,
    },
    /// The configuration has errors; nothing has changed.
    Invalid {
        /// All of them, as `evenkeel check` prints them.
        diagnostics: String,
        /// Of all errors, also of those that are not listed.
        error_count: usize,
        /// The same for programs.
        errors: Vec<ProblemReport>,
    },
    /// It could not be put into force; nothing has changed.
    Failed {
        /// Why, and what to do.
        message: String,
    },
}

/// One error in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemReport {
    /// The file's name; `null` where no one file is to blame.
    pub file: Option<String>,
    /// From 1.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}
