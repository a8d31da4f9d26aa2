//! `cargo xtask fuzz`: random bytes against everything that reads bytes from outside.
//!
//! cargo-fuzz wants compiler flags that a stable compiler keeps behind `RUSTC_BOOTSTRAP`; with it, no second toolchain is
//! needed. The address sanitizer stays off: what is fuzzed here has no unsafe code, and without it a target builds in half
//! the time and runs several times as many inputs.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{command, requirements};

const SECONDS_DEFAULT: u32 = 60;

/// An input that takes longer than this is a fault.
const INPUT_SECONDS_MAX: u32 = 10;

/// `[TARGET] [--seconds N]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut seconds = SECONDS_DEFAULT;
    let mut target = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => seconds = number(arguments.next())?,
            name => target = Some(name.to_owned()),
        }
    }
    requirements::install_cargo_tools()?;
    match target {
        Some(target) => fuzz(&target, seconds),
        None => run_each(seconds),
    }
}

/// Every target in turn.
pub(crate) fn run_each(seconds: u32) -> Result<()> {
    targets()?
        .iter()
        .try_for_each(|target| fuzz(target, seconds))
}

/// Each target is a file in `fuzz/fuzz_targets/`, and has a folder of seeds in `fuzz/corpus/`.
fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(command::root().join("fuzz/fuzz_targets"))? {
        let file = entry?.path();
        targets.extend(
            file.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
        );
    }
    targets.sort();
    Ok(targets)
}

fn number(argument: Option<&String>) -> Result<u32> {
    argument
        .and_then(|text| text.parse().ok())
        .context("--seconds needs a whole number")
}

/// New inputs go to a folder of the build; the seeds in `fuzz/corpus/` stay as they are.
fn fuzz(target: &str, seconds: u32) -> Result<()> {
    if !targets()?.iter().any(|known| known == target) {
        bail!(
            "no fuzz target {target:?}; there are {}",
            targets()?.join(", ")
        );
    }
    let found = command::root().join("fuzz/target/found").join(target);
    std::fs::create_dir_all(&found)?;
    let seeds = Path::new("fuzz/corpus").join(target);
    let mut fuzz = command::cargo(["fuzz", "run", "--sanitizer", "none", target]);
    fuzz.arg(&found)
        .arg(seeds)
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg("-verbosity=0")
        .env("RUSTC_BOOTSTRAP", "1");
    command::run(fuzz)
}
