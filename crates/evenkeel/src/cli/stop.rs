//! `evenkeel stop`: asks the running process to end, and waits until it has.

use std::os::fd::OwnedFd;
use std::time::Duration;

use clap::Args;
use evenkeel_proxy::control::client::ANSWER_TIMEOUT;
use evenkeel_proxy::control::protocol::{Request, StopMode};
use evenkeel_proxy::control::report::StopReport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;

use super::running::{Refused, Which};
use super::wait::parse_wait;
use crate::exit::Exit;
use crate::output;
use crate::span::span;

/// What a process may take beyond its own deadline, to write its log and close its sockets.
const GRACE: Duration = Duration::from_secs(5);

/// What `stop` takes.
#[derive(Args, Clone, Debug)]
pub struct StopArguments {
    /// Close all sessions at once instead of letting them finish
    #[arg(long)]
    now: bool,
    /// Wait this long for the end, as in 10m or 90s; 0 does not wait [default: the process's own deadline and 5 s]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, value_parser = parse_wait)]
    wait: Option<Option<Duration>>,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

/// How a stop went.
#[derive(Debug, Serialize)]
struct Stop {
    pid: u32,
    sessions: u64,
    stopped: bool,
    /// Whether it could be said that it was asked for; that cannot take the asking back.
    #[serde(skip)]
    announced: Exit,
}

impl StopArguments {
    /// `None` leaves it to the process's own deadline.
    const fn wait(&self) -> Option<Duration> {
        match self.wait {
            Some(told) => told,
            None => None,
        }
    }
}

/// Asks, waits, and tells how it went.
pub fn stop(arguments: &StopArguments) -> Exit {
    match carry_out(arguments) {
        Ok(stop) => tell(&stop, arguments),
        Err(refused) => refused.report(),
    }
}

fn carry_out(arguments: &StopArguments) -> Result<Stop, Refused> {
    let mode = if arguments.now {
        StopMode::Now
    } else {
        StopMode::Graceful
    };
    let mut process = arguments
        .which
        .connect_within(answer_patience(arguments.wait()))?;
    let report: StopReport = process.ask(&Request::Stop { mode })?;
    let announced = if arguments.json {
        Exit::Done
    } else {
        output::print(&announcement(&report))
    };
    let stopped = wait_until_gone(report.pid, patience(arguments.wait(), &report))?;
    Ok(Stop {
        pid: report.pid,
        sessions: report.sessions,
        stopped,
        announced,
    })
}

fn tell(stop: &Stop, arguments: &StopArguments) -> Exit {
    if arguments.json && output::print_json(stop) == Exit::Failed {
        return Exit::Failed;
    }
    if stop.stopped || arguments.wait() == Some(Duration::ZERO) {
        return stop.announced;
    }
    output::complain(&format!(
        "pid {} has not ended yet; wait longer with --wait DURATION, or close its sessions with --now",
        stop.pid
    ));
    Exit::TimedOut
}

fn announcement(report: &StopReport) -> String {
    match report.sessions {
        0 => format!("stopping pid {}\n", report.pid),
        sessions => {
            format!(
                "stopping pid {}: sessions still running: {sessions}, for at most {}\n",
                report.pid,
                span(report.deadline_ms)
            )
        }
    }
}

fn patience(wait: Option<Duration>, report: &StopReport) -> Duration {
    wait.unwrap_or_else(|| Duration::from_millis(report.deadline_ms).saturating_add(GRACE))
}

/// Who does not want to wait long does not want to wait longer for the answer; but an answer there must be.
fn answer_patience(wait: Option<Duration>) -> Duration {
    match wait {
        None | Some(Duration::ZERO) => ANSWER_TIMEOUT,
        Some(told) => ANSWER_TIMEOUT.min(told),
    }
}

/// Whether the process was gone before `patience` ran out. The kernel tells the moment, so nothing is asked again and again.
fn wait_until_gone(pid: u32, patience: Duration) -> Result<bool, Refused> {
    let failed = |error: rustix::io::Errno| Refused {
        message: format!("pid {pid} was asked to stop, but cannot be watched: {error}"),
        exit: Exit::Failed,
    };
    let Some(process) = open(pid).map_err(failed)? else {
        return Ok(true);
    };
    let patience = Timespec::try_from(patience).map_err(|_| failed(rustix::io::Errno::INVAL))?;
    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)) {
            // Only a signal that this program does not end by; the wait begins again.
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.map(|count| count > 0).map_err(failed),
        }
    }
}

/// `None` when there is no such process any more.
fn open(pid: u32) -> rustix::io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A process that lives is waited for in vain; once it has ended, the wait is over at once.
    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!wait_until_gone(child.id(), Duration::ZERO).unwrap());

        drop(child.stdin.take());

        assert!(wait_until_gone(child.id(), Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
        assert!(wait_until_gone(child.id(), Duration::ZERO).unwrap());
    }

    /// Without --wait it is the process's own deadline, and some more.
    #[test]
    fn patience_follows_the_deadline() {
        let report = StopReport {
            pid: 1,
            sessions: 0,
            deadline_ms: 25_000,
        };

        assert_eq!(patience(None, &report), Duration::from_secs(30));
        let told = Duration::from_secs(2);
        assert_eq!(patience(Some(told), &report), told);
    }

    /// A frozen process keeps `stop --wait 1` for one second, not for the ten of an answer.
    #[test]
    fn an_answer_is_not_waited_for_longer_than_the_end() {
        let short = Duration::from_secs(1);
        assert_eq!(answer_patience(Some(short)), short);
        for long in [None, Some(Duration::ZERO), Some(60 * short)] {
            assert_eq!(answer_patience(long), ANSWER_TIMEOUT);
        }
    }
}
