//! `cargo xtask test`: everything that has to be there for the tests, and then the tests.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{command, requirements};

/// The profile of the tests and of the program they run: optimised a little, with overflow checks and assertions on. One
/// profile for both, so that the dependencies are built once.
pub(crate) const PROFILE: &str = "e2e";

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Installs, builds, and runs every test; `arguments` go to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    requirements::install_packages()?;
    let tally = build_and_test(arguments)?;
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed > 0 {
        bail!("tests failed");
    }
    Ok(())
}

/// Builds the program and runs the tests; an error if they could not run, a tally if they did.
pub(crate) fn build_and_test(arguments: &[String]) -> Result<Tally> {
    build_program()?;
    let mut tests = command::cargo(["test", "--workspace", "--profile", PROFILE]);
    tests.args(arguments).stdout(Stdio::piped());
    command::show(&tests);

    let mut child = tests.spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let tally = copy_and_count(BufReader::new(output), std::io::stdout())?;
    let status = child.wait()?;
    if tally.failed == 0 {
        command::expect_success(&tests, status)?;
    }
    Ok(tally)
}

/// The end-to-end tests build it themselves if they must; here its messages can be seen.
///
/// Over the whole workspace, as the tests are: a smaller choice would give the dependencies other features, and build them
/// twice.
fn build_program() -> Result<()> {
    let mut build = command::cargo(["build", "--workspace", "--bin", "evenkeel"]);
    build.args(["--profile", PROFILE]);
    command::run(build)
}

/// Passes the output on, line by line, and adds up its result lines.
fn copy_and_count(output: impl BufRead, mut copy: impl Write) -> Result<Tally> {
    let mut tally = Tally::default();
    for line in output.lines() {
        let line = line?;
        writeln!(copy, "{line}")?;
        tally.add(&line);
    }
    Ok(tally)
}

impl Tally {
    /// `test result: ok. 12 passed; 0 failed; …`
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            match (
                words.next().and_then(|word| word.parse::<usize>().ok()),
                words.next(),
            ) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result lines of several test programs add up, and other lines count nothing.
    #[test]
    fn result_lines_add_up() {
        let output = "running 3 tests\n\
            test a ... ok\n\
            test result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 7.00s\n";
        let mut copy = Vec::new();
        let tally = copy_and_count(output.as_bytes(), &mut copy).expect("a slice can be read");
        assert_eq!((tally.passed, tally.failed), (7, 1));
        assert_eq!(copy, output.as_bytes());
    }
}
