//! What is answered to an upgrade.

use serde::{Deserialize, Serialize};

/// The process before this one, which lets its sessions finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredecessorReport {
    /// Its process id.
    pub pid: u32,
    /// Sessions that have not ended; `None` where it does not tell.
    pub sessions: Option<u64>,
}

/// How an upgrade went. Unless another program serves, the one that was asked goes on as before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum UpgradeReport {
    /// Another program serves.
    Upgraded {
        /// Its process id.
        pid: u32,
        /// The process id of the one that was asked, which ends with its last session.
        predecessor: u32,
        /// Sessions that still run there.
        sessions: u64,
        /// When they are closed at the latest.
        deadline_ms: u64,
    },
    /// The new program finds the configuration invalid.
    Invalid {
        /// What it said.
        message: String,
    },
    /// The new program did not serve in time.
    TimedOut {
        /// What is known of it.
        message: String,
    },
    /// It could not be started, or ended too early, or this is not the time.
    Failed {
        /// Why.
        message: String,
    },
}
