//! What developers run: `cargo xtask test`, `ci`, `fuzz`, `bench`, `setup`.
//!
//! Each command is a few calls of ordinary tools, in plain Rust so that a fresh checkout needs nothing but Rust itself.
//! The commands print what they run; nothing here is needed to build or to use evenkeel.

mod bench;
mod ci;
mod command;
mod fuzz;
mod requirements;
mod test;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  test [ARG]…                    install what the tests need, build the program, run every test;
                                 the arguments go to `cargo test`
  ci                             everything the continuous integration runs, from formatting to fuzzing
  fuzz [TARGET] [--seconds N]    fuzz one target, or each of them in turn (60 seconds unless told)
  bench core                     measure the cost of a pick
  bench contention               measure what sharing a cluster costs, and model it for more cores
  bench tcp [OPTION]…            measure the TCP path beside HAProxy and nginx, as root; --help tells the options
  bench http [OPTION]…           measure HTTP beside HAProxy, nginx and Caddy, likewise
  setup                          install the tools that `ci` and `fuzz` use";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        bail!("no command\n\n{USAGE}");
    };
    match (name.as_str(), rest) {
        ("test", _) => test::run(rest),
        ("ci", []) => ci::run(),
        ("fuzz", _) => fuzz::run(rest),
        ("bench", _) => bench::run(rest),
        ("bench-inside", [request]) => bench::run_inside(request),
        ("setup", []) => requirements::install_cargo_tools(),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("unknown command: {}\n\n{USAGE}", arguments.join(" ")),
    }
}
