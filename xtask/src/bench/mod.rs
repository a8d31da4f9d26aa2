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

/// `core`, `contention`, or `tcp [OPTION]…`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, [])) if name == "core" => of_core("pick"),
        Some((name, [])) if name == "contention" => of_core("contention"),
        Some((name, [option])) if name == "tcp" && option == "--help" => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Some((name, options)) if name == "tcp" => tcp::run(options),
        _ => bail!("bench what? There are: core, contention, tcp"),
    }
}

/// A bench that lives beside the code it measures, built as packages are.
fn of_core(bench: &str) -> Result<()> {
    let arguments = [
        "bench",
        "-p",
        "evenkeel-core",
        "--profile",
        "dist",
        "--bench",
        bench,
    ];
    command::run(command::cargo(arguments))
}
