//! A process that a test started: it ends with the test at the latest, and its use of the machine can be read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use super::wait;

/// A command whose process the kernel kills as soon as the thread that starts it has ended, however it ends.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Sends a signal to a process that another one of the test's has started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = pid.try_into().ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), signal).expect("the process is there");
}

/// Kills whatever was started with that path, a test's own, among its arguments: processes that a test's process has started.
pub(crate) fn kill_all_run_with(path: &Path) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_meant = |process: &fs::DirEntry| {
        let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0);
        arguments.any(|argument| argument == path.as_os_str().as_bytes())
    };
    for process in processes.filter(is_meant) {
        let pid = process
            .file_name()
            .to_str()
            .and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A running process; killed when dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process is there");
    }

    /// Waits for its end.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        wait::until("the process ends", || self.exited())
    }

    /// How it ended, if it has.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.exit();
    }

    /// Processor time used so far, by it and by the kernel for it, to a hundredth of a second.
    pub(crate) fn cpu_time(&self) -> Duration {
        const TICK: Duration = Duration::from_millis(10);
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let (_, fields) = stat.rsplit_once(')').expect("the kernel writes it so");
        // The fields are numbered from 1, and the one after the name is the third: see proc(5).
        let ticks = fields.split_whitespace().skip(14 - 3).take(2);
        let ticks = ticks.map(|field| field.parse::<u32>().expect("a number"));
        TICK * ticks.sum()
    }

    pub(crate) fn threads(&self) -> usize {
        self.count_entries("task")
    }

    pub(crate) fn descriptors(&self) -> usize {
        self.count_entries("fd")
    }

    /// Resident memory, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.split_whitespace().next());
        number
            .and_then(|text| text.parse().ok())
            .expect("the kernel writes it so")
    }

    fn count_entries(&self, folder: &str) -> usize {
        let folder = format!("/proc/{}/{folder}", self.id());
        fs::read_dir(folder).expect("it runs").count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|exit| exit.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
