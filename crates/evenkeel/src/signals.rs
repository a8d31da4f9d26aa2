//! Which signals mean what. SIGPIPE is ignored from the start of every Rust program.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What whoever sent a signal wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// TERM, INT or QUIT: end. A second one: at once.
    Stop,
    /// HUP: read the configuration again.
    Reload,
    /// USR1: the log files have been moved away.
    ReopenLogs,
    /// USR2: let the program that lies at this one's path by now take over.
    Upgrade,
}

/// The signals of this process, from the moment they are listened to: before that, they end it.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    user_defined: Signal,
    other_user_defined: Signal,
}

impl Signals {
    /// Listens to all of them. Needs a runtime.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            user_defined: signal(SignalKind::user_defined1())?,
            other_user_defined: signal(SignalKind::user_defined2())?,
        })
    }

    /// The next one. Nothing is lost when this is dropped before it is done.
    pub(crate) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.quit.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
            _ = self.user_defined.recv() => Wish::ReopenLogs,
            _ = self.other_user_defined.recv() => Wish::Upgrade,
        }
    }
}
