//! `evenkeel endpoint` and `evenkeel failback`: the operator's word on a running cluster, in force at once.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use evenkeel_proxy::control::client::ControlClient;
use evenkeel_proxy::control::operator::{EndpointAct, EndpointAnswer, FailbackAnswer, Kept};
use evenkeel_proxy::control::protocol::Request;

use super::running::{Refused, Which};
use super::wait::parse_wait;
use crate::exit::Exit;
use crate::output;
use crate::table::printable;

/// How long `drain --wait` waits unless told.
const WAIT: Duration = Duration::from_secs(60);
/// How often the sessions that are left are counted.
const COUNT_EVERY: Duration = Duration::from_millis(200);

/// What `endpoint` takes.
#[derive(Args, Clone, Debug)]
pub struct EndpointArguments {
    #[command(subcommand)]
    act: Act,
}

#[derive(Clone, Debug, Subcommand)]
enum Act {
    /// Show one endpoint, and what has been set on it
    Show(Target),
    /// Use another weight; the configured one takes that back
    Weight {
        #[command(flatten)]
        target: Target,
        /// Its share, relative to its neighbours; 0 is no new sessions
        weight: u32,
    },
    /// Give it no new sessions; those that run may finish, and it is probed on
    Drain {
        #[command(flatten)]
        target: Target,
        /// Wait until its last session has ended, for at most this long, as in 10m or 90s; without a value, 60s
        #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = parse_wait)]
        wait: Option<Option<Duration>>,
    },
    /// Give it no new sessions and don't probe it; sessions that run may finish
    Disable(Target),
    /// Take `drain` or `disable` back; on an endpoint that the configuration disables, let it work
    Enable(Target),
}

/// Which endpoint of which process.
#[derive(Args, Clone, Debug)]
struct Target {
    /// The endpoint, as mysql/db1
    #[arg(value_name = "CLUSTER/NAME")]
    endpoint: String,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

/// What `failback` takes.
#[derive(Args, Clone, Debug)]
pub struct FailbackArguments {
    /// The cluster whose primaries are to have the work again
    cluster: String,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

/// Says it, and tells what came of it.
pub fn endpoint(arguments: &EndpointArguments) -> Exit {
    let (target, act, wait) = match &arguments.act {
        Act::Show(target) => (target, EndpointAct::Show, None),
        Act::Weight { target, weight } => (target, EndpointAct::Weight(*weight), None),
        Act::Drain { target, wait } => (
            target,
            EndpointAct::Drain,
            wait.map(|told| told.unwrap_or(WAIT)),
        ),
        Act::Disable(target) => (target, EndpointAct::Disable, None),
        Act::Enable(target) => (target, EndpointAct::Enable, None),
    };
    carry_out(target, act, wait).unwrap_or_else(Refused::report)
}

/// Gives the work back to the primaries.
pub fn failback(arguments: &FailbackArguments) -> Exit {
    let cluster = arguments.cluster.clone();
    match ask_failback(&arguments.which, cluster) {
        Ok(answer) if arguments.json => output::print_json(&answer),
        Ok(answer) => output::print(&format!(
            "{}: its primaries have the work again\n",
            printable(&answer.cluster)
        )),
        Err(refused) => refused.report(),
    }
}

fn ask_failback(which: &Which, cluster: String) -> Result<FailbackAnswer, Refused> {
    Ok(which.connect()?.ask(&Request::Failback { cluster })?)
}

fn carry_out(target: &Target, act: EndpointAct, wait: Option<Duration>) -> Result<Exit, Refused> {
    let mut process = target.which.connect()?;
    let answer = ask(&mut process, target, act)?;
    let Some(patience) = wait else {
        return Ok(tell(target, &answer));
    };
    if !target.json && output::print(&words(&answer)) == Exit::Failed {
        return Ok(Exit::Failed);
    }
    let last = wait_until_drained(&mut process, target, answer, patience)?;
    Ok(tell_drained(target, &last, patience))
}

fn ask(
    process: &mut ControlClient,
    target: &Target,
    act: EndpointAct,
) -> Result<EndpointAnswer, Refused> {
    let endpoint = target.endpoint.clone();
    Ok(process.ask(&Request::Endpoint { endpoint, act })?)
}

/// Counts its sessions until there are none, somebody lets it work again, or patience ends. Says each new count.
fn wait_until_drained(
    process: &mut ControlClient,
    target: &Target,
    mut answer: EndpointAnswer,
    patience: Duration,
) -> Result<EndpointAnswer, Refused> {
    let deadline = Instant::now() + patience;
    let mut told = None;
    while answer.endpoint.in_flight > 0 && is_draining(&answer) && Instant::now() < deadline {
        if told != Some(answer.endpoint.in_flight) && !target.json {
            told = Some(answer.endpoint.in_flight);
            // Whoever reads this may be gone; the drain goes on, and the last word tells.
            let _ = output::print(&format!("sessions left: {}\n", answer.endpoint.in_flight));
        }
        thread::sleep(COUNT_EVERY.min(deadline.saturating_duration_since(Instant::now())));
        answer = ask(process, target, EndpointAct::Show)?;
    }
    Ok(answer)
}

/// A reload may remove it meanwhile: then its sessions finish too.
fn is_draining(answer: &EndpointAnswer) -> bool {
    ["draining", "disabled", "removed"].contains(&answer.endpoint.state.as_str())
}

fn tell_drained(target: &Target, last: &EndpointAnswer, patience: Duration) -> Exit {
    if target.json && output::print_json(last) == Exit::Failed {
        return Exit::Failed;
    }
    let name = printable(&target.endpoint);
    if !is_draining(last) {
        output::complain(&format!(
            "{name} is not drained: somebody has let it work again"
        ))
    } else if last.endpoint.in_flight > 0 {
        output::complain(&format!(
            "{name} still has sessions after {patience:?}: {}; it stays drained, wait longer with --wait DURATION",
            last.endpoint.in_flight
        ));
        Exit::TimedOut
    } else if target.json {
        Exit::Done
    } else {
        output::print("done: no session is left on it\n")
    }
}

fn tell(target: &Target, answer: &EndpointAnswer) -> Exit {
    if target.json {
        output::print_json(answer)
    } else {
        output::print(&words(answer))
    }
}

/// How the endpoint is, what has been set on it, and how that could be made to last.
fn words(answer: &EndpointAnswer) -> String {
    let endpoint = &answer.endpoint;
    let mut text = format!(
        "{}/{}: {}, weight {}, sessions: {}\n",
        printable(&answer.cluster),
        printable(&endpoint.name),
        printable(&endpoint.state),
        endpoint.weight,
        endpoint.in_flight
    );
    let overrides = &endpoint.overrides;
    if let Some(weight) = &overrides.weight {
        let _ = writeln!(
            text,
            "set at run time: weight {} instead of {}",
            weight.value, weight.configured
        );
    }
    if let Some(service) = &overrides.service {
        let (value, configured) = (printable(&service.value), printable(&service.configured));
        let _ = writeln!(text, "set at run time: {value} instead of {configured}");
    }
    if overrides.weight.is_some() || overrides.service.is_some() {
        text.push_str(&lasting(answer));
    }
    text
}

fn lasting(answer: &EndpointAnswer) -> String {
    let kept = match &answer.kept {
        Kept::UntilRestart => "this lasts until evenkeel is restarted".to_owned(),
        Kept::InFile(path) => format!("this is kept over restarts, in {}", printable(path)),
        Kept::NotWritten(why) => format!(
            "this lasts until evenkeel is restarted: the state file cannot be written: {}",
            printable(why)
        ),
    };
    match &answer.permanent {
        Some(line) => format!(
            "{kept}; in the configuration it would be, under [cluster.{}]:\n  {line}\n",
            printable(&answer.cluster)
        ),
        None => format!("{kept}\n"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use evenkeel_proxy::control::operator::{OverrideReport, OverridesReport};
    use evenkeel_proxy::control::report::EndpointReport;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        act: Act,
    }

    fn parse(words: &[&str]) -> Act {
        let words = ["endpoint"].iter().chain(words);
        Line::try_parse_from(words).unwrap().act
    }

    /// `--wait` alone, with a time behind it or tied to it, and not at all.
    #[test]
    fn a_drain_may_be_waited_for() {
        let wait = |words: &[&str]| match parse(words) {
            Act::Drain { wait, target } => (target.endpoint, wait),
            other => panic!("{other:?}"),
        };
        let name = || "mysql/db1".to_owned();
        let told = |seconds| Some(Some(Duration::from_secs(seconds)));
        assert_eq!(wait(&["drain", "mysql/db1"]), (name(), None));
        assert_eq!(
            wait(&["drain", "mysql/db1", "--wait"]),
            (name(), Some(None))
        );
        for words in [
            ["--wait", "5m"].as_slice(),
            &["--wait=5m"],
            &["--wait", "300"],
        ] {
            let words = [&["drain", "mysql/db1"], words].concat();
            assert_eq!(wait(&words), (name(), told(300)), "{words:?}");
        }
    }

    /// What was set, how long that lasts, and the line that would make it permanent.
    #[test]
    fn an_override_tells_how_to_make_it_last() {
        let answer = EndpointAnswer {
            cluster: "mysql".to_owned(),
            endpoint: EndpointReport {
                name: "db1".to_owned(),
                address: "10.0.0.11:3306".to_owned(),
                state: "up".to_owned(),
                health: None,
                probe: None,
                ejected_for_ms: None,
                slow_start_percent: None,
                backup: false,
                weight: 3,
                overrides: OverridesReport {
                    weight: Some(OverrideReport {
                        configured: 1,
                        value: 3,
                    }),
                    service: None,
                },
                effective_weight: 3,
                in_flight: 12,
                max_connections: None,
                sessions: 120,
                established: 118,
                failures: 0,
                last_failure: None,
            },
            permanent: Some(
                "{ name = \"db1\", address = \"10.0.0.11:3306\", weight = 3 }".to_owned(),
            ),
            kept: Kept::UntilRestart,
        };
        let told = "\
mysql/db1: up, weight 3, sessions: 12
set at run time: weight 3 instead of 1
this lasts until evenkeel is restarted; in the configuration it would be, under [cluster.mysql]:
  { name = \"db1\", address = \"10.0.0.11:3306\", weight = 3 }
";
        assert_eq!(words(&answer), told);
    }
}
