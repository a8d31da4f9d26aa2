//! `cargo xtask bench`: what evenkeel costs, beside its peers and by itself.
//!
//! What is measured, and against what it is held, is said in one file for each bench ([`tcp`], [`http`]). The rest is common to all of
//! them: peers, one measurement in namespaces of its own ([`inside`]), rounds, statistics, and the report as text, JSON and
//! plot.

mod calls;
mod certificate;
mod http;
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

use inside::Probe;
use options::Options;
use peer::Peer;
use workload::Workload;

use crate::command;

pub(crate) use inside::run as run_inside;

/// `core`, `contention`, or `tcp` or `http` with options.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, [])) if name == "core" => of_core("pick"),
        Some((name, [])) if name == "contention" => of_core("contention"),
        Some((name, options)) if name == "tcp" => beside(options, tcp::WORKLOADS, tcp::PEERS),
        Some((name, options)) if name == "http" => beside(options, http::WORKLOADS, http::PEERS),
        _ => bail!("bench what? There are: core, contention, tcp, http"),
    }
}

/// Measures evenkeel beside its peers, and reports as the options say.
fn beside(
    arguments: &[String],
    workloads: &'static [Workload],
    peers: &'static [Peer],
) -> Result<()> {
    if arguments == ["--help"] {
        println!("{}", options::USAGE);
        return Ok(());
    }
    let mut options = Options::parse(arguments, workloads, peers)?;
    let programs = machine::prepare(&mut options)?;
    eprint!("{}", machine::describe(&options, &programs));
    if options.probe == Probe::SystemCalls {
        return calls::run(&options, &programs);
    }
    let results = rounds::run(&options, &programs)?;
    report::publish(&options, &results)
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
