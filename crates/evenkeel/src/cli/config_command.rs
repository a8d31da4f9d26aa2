//! `evenkeel config`: the configuration for editors (`schema`), and with every default filled in (`dump`).

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::check::complain;
use crate::config::{self, DEFAULT_PATH};
use crate::exit::Exit;
use crate::output;

/// What `config` takes.
#[derive(Args, Clone, Debug)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

/// What `config` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the JSON schema of the configuration, for editors
    Schema,
    /// Print a configuration with every default filled in
    Dump {
        /// The configuration file
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
    },
}

/// Prints what is asked for.
pub fn config(arguments: &ConfigArguments) -> Exit {
    match &arguments.command {
        ConfigCommand::Schema => output::print_json(&config::schema()),
        ConfigCommand::Dump { file } => dump(file),
    }
}

fn dump(file: &Path) -> Exit {
    match config::load(file) {
        Ok(loaded) => output::print(&config::dump(&loaded)),
        Err(diagnostics) => complain(&diagnostics),
    }
}
