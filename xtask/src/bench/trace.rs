//! Counting a proxy's system calls with strace, while a load runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::process::{Process, wait_until};

/// Debian's package has the same name.
pub(crate) const PROGRAM: &str = "strace";

/// How long strace may take to hold all threads.
const ATTACH_MAX: Duration = Duration::from_secs(5);

/// How often each call was made.
pub(crate) type Calls = BTreeMap<String, u64>;

/// A strace at work.
pub(crate) struct Trace {
    strace: Process,
    summary: PathBuf,
}

impl Trace {
    /// Attaches to all threads of these processes.
    pub(crate) fn attach(processes: &[u32], folder: &Path) -> Result<Self> {
        let summary = folder.join("strace.txt");
        let mut command = Command::new(PROGRAM);
        command.args(["-f", "-c", "-qq", "-o"]).arg(&summary);
        for process in processes {
            command.args(["-p", &process.to_string()]);
        }
        let strace = Process::start(&mut command)?;
        wait_until("strace is attached", ATTACH_MAX, || {
            processes
                .iter()
                .try_fold(true, |all, &process| Ok(all && is_traced(process)?))
        })?;
        Ok(Self { strace, summary })
    }

    /// Lets go of them.
    pub(crate) fn detach(self) -> Result<Calls> {
        self.strace.end(Signal::INT)?;
        let summary = fs::read_to_string(&self.summary).context("strace wrote nothing")?;
        Ok(summary.lines().filter_map(call).collect())
    }
}

fn is_traced(process: u32) -> Result<bool> {
    let mut threads = fs::read_dir(format!("/proc/{process}/task"))?;
    threads.try_fold(true, |all, thread| {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        Ok(all && tracer.is_some_and(|tracer| tracer.trim() != "0"))
    })
}

/// A line of the summary: share, seconds, microseconds a call, calls, errors where there were any, name.
fn call(line: &str) -> Option<(String, u64)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (&name, numbers) = columns.split_last()?;
    let calls = numbers.get(3)?.parse().ok()?;
    (name != "total").then(|| (name.to_owned(), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a real summary, with and without errors, and those around them.
    #[test]
    fn calls_are_read_from_the_summary() {
        let summary = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 52.74    0.086089          41      2078       127 splice
  0.14    0.000225          32         7           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.163243          37      2085       127 total";
        let calls: Calls = summary.lines().filter_map(call).collect();
        let expected = [("epoll_wait".to_owned(), 7), ("splice".to_owned(), 2078)];
        assert_eq!(calls, expected.into());
    }
}
