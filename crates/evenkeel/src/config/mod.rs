//! The configuration: from the text that a user writes to the settings that the program runs.
//!
//! The way of a file, one module a step: `load` reads it and what it includes, `document` parses it, `read`, `values` and
//! `file` turn it into its raw form by the `tables` of `keys`, `check` holds it against the rules between keys, and `build` fills in
//! the defaults. No step stops at the first problem: everything that is wrong with a configuration is reported at once, by
//! `diagnostics`. The way back is `dump`; `schema` is for editors.
//!
//! Nothing is opened or bound here beside the files themselves, so a bad configuration changes nothing.

use std::path::Path;

use evenkeel_proxy::settings::Settings;

#[cfg(test)]
mod any_text;
mod build;
mod check;
mod diagnostics;
mod document;
mod dump;
mod endpoint_address;
mod file;
mod keys;
mod load;
mod read;
#[cfg(test)]
mod reference;
mod salvage;
mod schema;
mod suggest;
mod surroundings;
mod tables;
mod units;
mod values;
mod wildcard;
mod words;

pub use diagnostics::{
    Appearance, Diagnostics, PROBLEMS_KEPT_MAX, PROBLEMS_SHOWN_MAX, ProblemRecord,
};
pub use dump::dump;
pub(crate) use dump::endpoint_line;
pub use load::{CONFIGURATION_BYTES_MAX, FILE_BYTES_MAX, INCLUDED_FILES_MAX};
pub use salvage::control_socket_of;
pub use schema::schema;
pub(crate) use suggest::nearest;
pub use surroundings::Surroundings;
pub(crate) use units::parse_duration;
pub use words::LogLevel;

use load::{Reading, folder_of};

/// Where the configuration is unless the command line says otherwise.
pub const DEFAULT_PATH: &str = "/etc/evenkeel/evenkeel.toml";

/// A commented file to start from; it passes its own check.
pub const STARTER: &str = include_str!("starter.toml");

/// A configuration that has been checked whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What the data path runs.
    pub settings: Settings,
    /// How much the program says about itself on standard error.
    pub log_level: LogLevel,
}

impl Loaded {
    /// Endpoints over all clusters.
    pub fn endpoint_count(&self) -> usize {
        self.settings
            .clusters
            .iter()
            .map(|cluster| cluster.spec.endpoints.len())
            .sum()
    }

    /// Names that stand for endpoints, over all clusters.
    pub fn name_count(&self) -> usize {
        let clusters = self.settings.clusters.iter();
        clusters.map(|cluster| cluster.names.len()).sum()
    }
}

/// Reads a file and all it includes.
///
/// # Errors
///
/// Everything that is wrong with them, or why the file could not be read.
pub fn load(path: &Path) -> Result<Loaded, Diagnostics> {
    // Absolute, so that neither a change of the working folder nor a dump elsewhere gives a path another meaning.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    finish(
        Reading::of_files(path)?,
        folder_of(&absolute),
        &Surroundings::of_this_process(),
    )
}

/// Reads a text as if it were the file `name`, without touching the file system; relative paths stay relative.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn parse_text(name: &str, text: &str) -> Result<Loaded, Diagnostics> {
    parse_text_in(name, text, &Surroundings::of_this_process())
}

/// As [`parse_text`], with the surroundings that some defaults depend on.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn parse_text_in(
    name: &str,
    text: &str,
    surroundings: &Surroundings,
) -> Result<Loaded, Diagnostics> {
    finish(Reading::of_text(name, text), Path::new(""), surroundings)
}

/// The rules between keys, and then the settings.
fn finish(
    reading: Reading,
    folder: &Path,
    surroundings: &Surroundings,
) -> Result<Loaded, Diagnostics> {
    let Reading {
        sources,
        problems,
        file,
        understood,
        ..
    } = reading;
    check::check(&file, understood, &problems);
    check::check_state_file(&file, folder, &problems);
    let built = build::build(&file, folder, surroundings);
    debug_assert!(
        built.is_some() || !problems.is_empty(),
        "whatever stops the building has been reported"
    );
    match built {
        Some((settings, log_level)) if problems.is_empty() => Ok(Loaded {
            settings,
            log_level,
        }),
        _ => Err(problems.into_diagnostics(sources)),
    }
}
