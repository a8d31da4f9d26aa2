//! The command line: how commands are spelled. What each of them does is in a file of its own.

pub mod check;
pub mod completions;
pub mod config_command;
pub mod endpoint;
pub mod init;
pub mod reload;
pub mod route;
pub mod running;
pub mod status;
pub mod stop;
pub mod upgrade;
mod wait;

use std::net::SocketAddr;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::demo::{DemoArguments, demo};
use crate::desk::VERSION;
use crate::example_service::ExampleService;
use crate::exit::Exit;
use crate::output;
use crate::run::{RunArguments, run};
use check::{CheckArguments, check};
use completions::{CompletionsArguments, completions};
use config_command::{ConfigArguments, config};
use endpoint::{EndpointArguments, FailbackArguments, endpoint, failback};
use init::{InitArguments, init};
use reload::{ReloadArguments, reload};
use route::{RouteArguments, route};
use status::{StatusArguments, status};
use stop::{StopArguments, stop};
use upgrade::{UpgradeArguments, upgrade};

pub use check::complain as complain_about;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 configuration invalid, 4 nothing running, 5 timed out";

/// A load balancer for services and databases
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version = VERSION, after_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the balancer in the foreground, until a signal or `stop` ends it
    Run(RunArguments),
    /// Say whether a configuration is right, and all that is wrong with it
    Check(CheckArguments),
    /// Write a commented configuration to start from
    Init(InitArguments),
    /// Show it at work on a small cluster of its own, with nothing configured
    Demo(DemoArguments),
    /// Show what the running balancer does
    Status(StatusArguments),
    /// Show who would get a connection, and why not each other endpoint
    Route(RouteArguments),
    /// Set an endpoint's weight, drain, disable or enable it, in the running balancer
    Endpoint(EndpointArguments),
    /// Give the work back to a cluster's primaries, where backups keep it until told
    Failback(FailbackArguments),
    /// Let a new program take over from the running one without losing a connection
    Upgrade(UpgradeArguments),
    /// Have the running balancer read its configuration again, and tell what changed
    Reload(ReloadArguments),
    /// End the running balancer, and wait until it has ended
    Stop(StopArguments),
    /// Print the configuration's schema, or a configuration with every default filled in
    Config(ConfigArguments),
    /// Print what a shell needs to complete this command line
    Completions(CompletionsArguments),
    /// Serve the demo's user records, as an endpoint to play with
    ExampleService(ExampleServiceArguments),
}

#[derive(Args, Debug)]
struct ExampleServiceArguments {
    /// Where to listen; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// The name told in every answer
    #[arg(long, default_value = "a")]
    name: String,
}

/// The whole program: reads the command line, does what it says.
pub fn main() -> Exit {
    match Cli::try_parse() {
        Ok(cli) => carry_out(cli.command),
        Err(told) => tell(&told),
    }
}

/// What clap has to say: that the command line is wrong, or the help or version that was asked for. The latter are answers,
/// and one that cannot be written is a failure.
fn tell(told: &clap::Error) -> Exit {
    if told.use_stderr() {
        // With standard error gone, there is nobody left to tell; the exit code says it all the same.
        let _ = told.print();
        return Exit::Usage;
    }
    let text = told.render();
    if output::stdout_has_colour() {
        output::print(&text.ansi().to_string())
    } else {
        output::print(&text.to_string())
    }
}

fn carry_out(command: Command) -> Exit {
    match command {
        Command::Run(arguments) => run(&arguments),
        Command::Check(arguments) => check(&arguments),
        Command::Init(arguments) => init(&arguments),
        Command::Demo(arguments) => demo(&arguments),
        Command::Status(arguments) => status(&arguments),
        Command::Route(arguments) => route(&arguments),
        Command::Endpoint(arguments) => endpoint(&arguments),
        Command::Failback(arguments) => failback(&arguments),
        Command::Upgrade(arguments) => upgrade(&arguments),
        Command::Reload(arguments) => reload(&arguments),
        Command::Stop(arguments) => stop(&arguments),
        Command::Config(arguments) => config(&arguments),
        Command::Completions(arguments) => completions(&arguments, Cli::command()),
        Command::ExampleService(arguments) => example_service(&arguments),
    }
}

/// Prints its address, so that whoever started it on port 0 knows where it is.
fn example_service(arguments: &ExampleServiceArguments) -> Exit {
    match ExampleService::start(&arguments.name, arguments.bind) {
        Ok(service) => {
            let told = output::print(&format!("{}\n", service.address()));
            service.wait();
            told
        }
        Err(error) => output::complain(&format!("cannot serve on {}: {error}", arguments.bind)),
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// clap's own check of the whole tree: no name twice, no argument that cannot be given.
    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    /// A wrong command line ends with the code for it, a call for help with success.
    #[test]
    fn usage_errors_have_their_own_exit_code() {
        let wrong = Cli::try_parse_from(["evenkeel", "statsu"]).unwrap_err();
        let help = Cli::try_parse_from(["evenkeel", "--help"]).unwrap_err();

        assert_eq!(wrong.exit_code(), i32::from(Exit::Usage.code()));
        assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
    }

    /// A socket and a configuration that names another one contradict each other.
    #[test]
    fn socket_and_config_exclude_each_other() {
        let both = ["evenkeel", "status", "--socket", "a", "--config", "b"];

        let error = Cli::try_parse_from(both).unwrap_err();

        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
    }
}
