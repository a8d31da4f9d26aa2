//! Which system calls a proxy makes for a unit of work: the other thing that a bench can tell, instead of how fast it is.

use std::fmt::Write;

use anyhow::Result;
use evenkeel_bench::{Load, TcpLoad};

use super::inside::{Measurement, Probe, Programs};
use super::options::Options;
use super::peer::Peer;
use super::workload::{Work, Workload};
use super::{rounds, trace};
use crate::requirements;

/// Calls that are rarer than this, for a unit of work, are left out.
const RARE: f64 = 0.005;

const BYTES_PER_MEGABYTE: f64 = 1e6;

/// Runs each load once with each proxy under strace, and prints what it counted.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<()> {
    requirements::install(&[(trace::PROGRAM, trace::PROGRAM)])?;
    let folder = rounds::folder(programs)?;
    let workloads = options.workloads.iter();
    for workload in workloads.filter(|workload| workload.work != Work::Idle) {
        println!("\n{}: system calls for {}", workload.name, unit(workload));
        for &peer in options
            .peers_for(workload)
            .iter()
            .filter(|&&peer| peer != Peer::Direct)
        {
            let mut request = rounds::request(options, workload, peer, programs, &folder);
            request.probe = Probe::SystemCalls;
            request.warm_up_millis = 0;
            println!(
                "  {}: {}",
                peer.name(),
                list(&rounds::measure(&request)?, workload)
            );
        }
    }
    Ok(())
}

const fn unit(workload: &Workload) -> &'static str {
    match workload.load {
        Load::Tcp(TcpLoad::PingPong) | Load::Http(_) => {
            "an exchange, with its share of opening and closing the connections"
        }
        Load::Tcp(TcpLoad::Connect) => "a connection with its exchange",
        Load::Tcp(TcpLoad::Bulk) => "10^6 bytes",
        Load::Tcp(TcpLoad::Idle) => "a connection",
    }
}

/// The sum, then each call, the most frequent first.
fn list(measurement: &Measurement, workload: &Workload) -> String {
    let units = units(measurement, workload);
    let calls = measurement.calls.iter();
    let mut calls: Vec<(&str, f64)> = calls
        .map(|(name, &count)| (name.as_str(), float(count) / units))
        .collect();
    calls.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let sum: f64 = calls.iter().map(|(_, calls)| calls).sum();
    let frequent = calls.iter().filter(|(_, calls)| *calls >= RARE);
    frequent.fold(format!("{sum:.2}"), |mut text, (name, calls)| {
        let _ = write!(text, "; {name} {calls:.2}");
        text
    })
}

/// From the first to the last: there is no warm-up.
fn units(measurement: &Measurement, workload: &Workload) -> f64 {
    let figures = &measurement.figures;
    match workload.work {
        Work::Exchanges | Work::Idle => float(figures.exchanges),
        Work::Bytes => float(figures.work) / BYTES_PER_MEGABYTE,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted here stays below 2^53"
)]
const fn float(number: u64) -> f64 {
    number as f64
}
