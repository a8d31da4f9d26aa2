//! `cargo xtask ci`: what the continuous integration runs, in phases, each with its time.
//!
//! A phase that fails does not stop the next: one run shows everything that is wrong. The last line counts tests and phases.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::command::{cargo, run as run_command};
use crate::test::Tally;
use crate::{fuzz, requirements, test};

/// How long the fuzzers run, each: long enough to notice a broken target, no more.
const FUZZ_SECONDS: u32 = 10;

/// One step: its name and what it does. A phase without tests of its own counts as one check.
type Phase = (&'static str, fn() -> Result<Tally>);

const PHASES: &[Phase] = &[
    ("packages", || check(requirements::install_packages())),
    ("tools", || check(requirements::install_cargo_tools())),
    ("format", || check(format())),
    ("deny", || check(deny())),
    ("lint", || check(lint())),
    ("docs", || check(docs())),
    ("tests", tests),
    ("bench builds", || check(bench_builds())),
    ("fuzz", || check(fuzz::run_each(FUZZ_SECONDS))),
];

struct Report {
    phase: &'static str,
    took: Duration,
    result: Result<Tally>,
}

/// Runs every phase and reports; an error if anything failed.
pub(crate) fn run() -> Result<()> {
    let reports: Vec<Report> = PHASES.iter().map(run_phase).collect();
    let total = summarise(&reports);
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed > 0 {
        bail!("not everything passed");
    }
    Ok(())
}

fn run_phase(&(phase, act): &Phase) -> Report {
    eprintln!("\n=== {phase}");
    let start = Instant::now();
    let result = act();
    let took = start.elapsed();
    if let Err(error) = &result {
        eprintln!("{phase}: {error:#}");
    }
    eprintln!("=== {phase}: {:.1} s", took.as_secs_f64());
    Report {
        phase,
        took,
        result,
    }
}

fn summarise(reports: &[Report]) -> Tally {
    let mut total = Tally::default();
    println!();
    for Report {
        phase,
        took,
        result,
    } in reports
    {
        let (tally, verdict) = match result {
            Ok(tally) if tally.failed == 0 => (*tally, "ok"),
            Ok(tally) => (*tally, "FAILED"),
            Err(_) => (
                Tally {
                    passed: 0,
                    failed: 1,
                },
                "FAILED",
            ),
        };
        println!("{phase:<14}{verdict:<8}{:>7.1} s", took.as_secs_f64());
        total.passed += tally.passed;
        total.failed += tally.failed;
    }
    total
}

fn check(result: Result<()>) -> Result<Tally> {
    result.map(|()| Tally {
        passed: 1,
        failed: 0,
    })
}

fn format() -> Result<()> {
    run_command(cargo(["fmt", "--all", "--check"]))
}

/// Advisories are left to whoever publishes: they change by the day, and a build must not.
fn deny() -> Result<()> {
    run_command(cargo(["deny", "check", "licenses", "bans", "sources"]))
}

fn lint() -> Result<()> {
    run_command(cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn docs() -> Result<()> {
    let mut doc = cargo(["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run_command(doc)
}

fn tests() -> Result<Tally> {
    test::build_and_test(&["--no-fail-fast".to_owned()])
}

/// Over the whole workspace, so that it finds the tests' dependencies built as it needs them.
fn bench_builds() -> Result<()> {
    let mut bench = cargo(["bench", "--no-run", "--workspace", "--bench", "pick"]);
    bench.args(["--profile", test::PROFILE]);
    run_command(bench)
}
