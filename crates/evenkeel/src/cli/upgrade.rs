//! `evenkeel upgrade`: has the running process start a new program in its place, and waits until that one serves.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use evenkeel_proxy::control::client::ANSWER_TIMEOUT;
use evenkeel_proxy::control::protocol::Request;
use evenkeel_proxy::control::upgrade_report::UpgradeReport;

use super::running::{Refused, Which};
use super::wait::parse_wait;
use crate::exit::Exit;
use crate::output;
use crate::span::span;

/// How long a new program may take unless told.
const WAIT: Duration = Duration::from_secs(30);
/// The shortest wait for one: none at all would end every upgrade.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// What `upgrade` takes.
#[derive(Args, Clone, Debug)]
pub struct UpgradeArguments {
    /// The new program [default: whatever lies at the running one's path by now]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// How long the new program may take until it serves, as in 2m or 90s; at most 1h [default: 30s]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = parse_patience)]
    wait: Option<Option<Duration>>,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

fn parse_patience(text: &str) -> Result<Duration, String> {
    let patience = parse_wait(text)?;
    if (WAIT_MIN..=WAIT_MAX).contains(&patience) {
        Ok(patience)
    } else {
        Err("a new program has between 1s and 1h".to_owned())
    }
}

/// Asks, waits, and tells how it went.
pub fn upgrade(arguments: &UpgradeArguments) -> Exit {
    match ask(arguments) {
        Ok(report) => tell(&report, arguments),
        Err(refused) => refused.report(),
    }
}

fn ask(arguments: &UpgradeArguments) -> Result<UpgradeReport, Refused> {
    let wait = arguments.wait.flatten().unwrap_or(WAIT);
    let mut process = arguments.which.connect_within(wait + ANSWER_TIMEOUT)?;
    // The running process may be in another folder.
    let binary = arguments.binary.as_deref().map(std::path::absolute);
    let binary = binary.transpose().map_err(|error| Refused {
        message: format!("the folder that this is run in cannot be told: {error}"),
        exit: Exit::Failed,
    })?;
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Ok(process.ask(&Request::Upgrade { binary, wait_ms })?)
}

fn tell(report: &UpgradeReport, arguments: &UpgradeArguments) -> Exit {
    if arguments.json {
        let printed = output::print_json(report);
        return if printed == Exit::Done {
            exit_of(report)
        } else {
            printed
        };
    }
    match report {
        UpgradeReport::Upgraded { .. } => output::print(&announcement(report)),
        UpgradeReport::Invalid { message }
        | UpgradeReport::TimedOut { message }
        | UpgradeReport::Failed { message } => {
            output::complain(&format!("not upgraded: {message}"));
            exit_of(report)
        }
    }
}

const fn exit_of(report: &UpgradeReport) -> Exit {
    match report {
        UpgradeReport::Upgraded { .. } => Exit::Done,
        UpgradeReport::Invalid { .. } => Exit::ConfigInvalid,
        UpgradeReport::TimedOut { .. } => Exit::TimedOut,
        UpgradeReport::Failed { .. } => Exit::Failed,
    }
}

fn announcement(report: &UpgradeReport) -> String {
    match report {
        UpgradeReport::Upgraded {
            pid,
            predecessor,
            sessions,
            deadline_ms,
        } => match sessions {
            0 => {
                format!("pid {pid} serves now; pid {predecessor} has no sessions left, and ends\n")
            }
            sessions => format!(
                "pid {pid} serves now; pid {predecessor} lets its sessions finish: {sessions}, for at most {}\n",
                span(*deadline_ms)
            ),
        },
        _ => String::new(),
    }
}
