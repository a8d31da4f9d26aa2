//! `evenkeel config`: the configuration for editors (`schema`), and with every default filled in (`dump`).

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::check::complain;
use crate::config::{self, DEFAULT_PATH, Loaded};
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
        /// Print JSON, in the same shape, instead of TOML
        #[arg(long)]
        json: bool,
    },
}

/// Prints what is asked for.
pub fn config(arguments: &ConfigArguments) -> Exit {
    match &arguments.command {
        ConfigCommand::Schema => output::print_json(&config::schema()),
        ConfigCommand::Dump { file, json } => match (config::load(file), json) {
            (Ok(loaded), false) => output::print(&config::dump(&loaded)),
            (Ok(loaded), true) => dump_json(&loaded),
            (Err(diagnostics), _) => complain(&diagnostics),
        },
    }
}

fn dump_json(loaded: &Loaded) -> Exit {
    match toml::from_str::<toml::Table>(&config::dump(loaded)) {
        Ok(table) => output::print_json(&table),
        Err(error) => output::complain(&format!("cannot write the configuration as JSON: {error}")),
    }
}
