//! `evenkeel-bench PLAN`: carries out a plan, given as JSON, and prints the figures, as JSON.

use std::process::ExitCode;

use anyhow::{Context, Result};

fn main() -> ExitCode {
    match figures() {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("evenkeel-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn figures() -> Result<String> {
    let plan = std::env::args()
        .nth(1)
        .context("usage: evenkeel-bench PLAN")?;
    let plan = serde_json::from_str(&plan).context("that is no plan")?;
    Ok(serde_json::to_string(&evenkeel_bench::run(&plan)?)?)
}
