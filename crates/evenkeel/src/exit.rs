//! How the program ends: the closed list of exit codes that scripts may rely on.

use std::process::{ExitCode, Termination};

/// What a command reports to the shell that started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command did what was asked.
    Done = 0,
    /// It tried, and something went wrong.
    Failed = 1,
    /// The command line itself was wrong.
    Usage = 2,
    /// The configuration has errors; nothing was started or changed.
    ConfigInvalid = 3,
    /// No running process answered on the control socket.
    NothingRunning = 4,
    /// The time allowed for waiting ran out.
    TimedOut = 5,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
