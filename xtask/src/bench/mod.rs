//! `cargo xtask bench`: what evenkeel costs, beside its peers and by itself.
//!
//! What is measured, and against what it is held, is said in one file for each bench ([`tcp`]). The rest is common to all of
//! them: peers, one measurement in namespaces of its own ([`inside`]), rounds, statistics, and the report as text, JSON and
//! plot.

mod calls;
mod inside;
mod isolation;
mod json;
mod machine;
mod options;
mod peer;
mod plot;
mod process;
mod report;
mod rounds;
mod sample;
mod statistics;
mod summary;
mod svg;
mod tcp;
mod trace;
mod workload;

use anyhow::{Result, bail};

use crate::command;

pub(crate) use inside::run as run_inside;

/// `core`, or `tcp [OPTION]…`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, [])) if name == "core" => core(),
        Some((name, [option])) if name == "tcp" && option == "--help" => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Some((name, options)) if name == "tcp" => tcp::run(options),
        _ => bail!("bench what? There are: core, tcp"),
    }
}

fn core() -> Result<()> {
    command::run(command::cargo(["bench", "-p", "evenkeel-core"]))
}
