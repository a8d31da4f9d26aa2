//! A process that a measurement started: pinned to a core, looked at through `/proc`, and ended when the measurement ends.

use std::ffi::OsStr;
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How often something is looked at that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long a process may take to end by itself.
const END_MAX: Duration = Duration::from_secs(5);

/// A command that runs on this core alone.
pub(crate) fn pinned(core: usize, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

/// A running process; killed when dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child })
    }

    /// It and the processes it has started itself.
    pub(crate) fn family(&self) -> Result<Vec<u32>> {
        let mut family = vec![self.child.id()];
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let process = name.to_str().and_then(|name| name.parse().ok());
            family.extend(process.filter(|&process| parent(process) == Some(self.child.id())));
        }
        Ok(family)
    }

    /// An error if it has ended already.
    pub(crate) fn expect_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("it ended: {status}"),
            None => Ok(()),
        }
    }

    /// Asks it to end, and waits for it.
    pub(crate) fn end(mut self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)?;
        wait_until("the proxy ends", END_MAX, || {
            Ok(self.child.try_wait()?.is_some())
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits for something that can be seen.
pub(crate) fn wait_until(
    what: &str,
    patience: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + patience;
    while !is_so()? {
        if Instant::now() > deadline {
            bail!("not within {patience:?}: {what}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// None if the process has gone.
fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}
