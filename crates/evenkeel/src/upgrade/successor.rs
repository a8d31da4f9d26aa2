//! The old process's side: it starts the new program, hands over what it has, and waits until that one serves or has failed.
//!
//! All of it happens on a thread of its own, in plain blocking steps with one deadline over them. What the new program writes to
//! its standard error until it serves goes through here: on to this process's own, and into the answer if it fails.
//! When this process gives up what it has handed over is the control plane's decision.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;

use super::channel::{Channel, DESCRIPTORS_MAX};
use super::program::Program;
use super::words::{FromNew, FromOld, Hello, Parcel, SocketFile, VERSION};
use super::{Belongings, FILES_MAX, PREDECESSOR_VARIABLE};
use crate::desk;

/// How much of what a new program says is kept for the answer.
const SAID_BYTES_MAX: usize = 16 * 1024;
/// How long the new program may take to take in one packet.
const PACKET_PATIENCE: Duration = Duration::from_secs(5);
/// How long a new program whose end of the line is closed may take to end.
const END_PATIENCE: Duration = Duration::from_millis(500);

/// Why there is no new process. The old one goes on as before.
#[derive(Debug)]
pub(crate) enum UpgradeError {
    /// It cannot be started at all.
    NotStarted {
        /// What was to be started.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended before it served.
    Ended {
        /// How.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// It did not serve in time, and was killed.
    TimedOut {
        /// The time it had.
        patience: Duration,
        /// What it said.
        said: String,
    },
    /// What it needs could not be handed over.
    HandOver(io::Error),
    /// It closed its end of the line and ran on, and was killed.
    HungUp {
        /// What it said.
        said: String,
    },
    /// It was called off.
    CalledOff,
}

impl UpgradeError {
    /// Whether it was the configuration that the new program refused.
    pub(crate) fn is_configuration(&self) -> bool {
        let invalid = i32::from(crate::exit::Exit::ConfigInvalid.code());
        matches!(self, Self::Ended { status, .. } if status.code() == Some(invalid))
    }
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { path, source } => {
                write!(f, "cannot start {}: {source}", path.display())
            }
            Self::Ended { status, said } => {
                write!(f, "the new program ended ({status}) before it was ready")?;
                write_said(f, said)
            }
            Self::TimedOut { patience, said } => {
                let seconds = patience.as_secs_f64();
                write!(
                    f,
                    "the new program was not ready within {seconds} s, and was killed"
                )?;
                write_said(f, said)
            }
            Self::HandOver(source) => {
                write!(
                    f,
                    "the sockets cannot be handed to the new program: {source}"
                )
            }
            Self::HungUp { said } => {
                f.write_str("the new program hung up before it was ready, and was killed")?;
                write_said(f, said)
            }
            Self::CalledOff => f.write_str("the upgrade was called off: the process is stopping"),
        }
    }
}

fn write_said(f: &mut fmt::Formatter<'_>, said: &str) -> fmt::Result {
    match said.trim_end() {
        "" => f.write_str(", without a word"),
        said => write!(f, ":\n{said}"),
    }
}

/// A way to reach the new process, from the control plane.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    channel: Arc<Channel>,
    is_called_off: Arc<AtomicBool>,
}

impl Line {
    /// A new one, and its other end.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (mut channel, theirs) = Channel::pair()?;
        channel.set_patience(PACKET_PATIENCE);
        let line = Self {
            channel: Arc::new(channel),
            is_called_off: Arc::default(),
        };
        Ok((line, theirs))
    }

    /// It serves alone from now on.
    pub(crate) fn go(&self) -> io::Result<()> {
        self.channel.send(&FromOld::Go, &[])
    }

    /// How many sessions this process still has. Whoever does not listen need not know.
    pub(crate) fn tell_sessions(&self, sessions: u64) {
        let _ = self.channel.send_now(&FromOld::Sessions(sessions), &[]);
    }

    /// Ends a new process that does not serve yet. It is told, because the end of the line alone would mean an accident.
    pub(crate) fn call_off(&self) {
        self.is_called_off.store(true, Ordering::SeqCst);
        self.channel.hang_up_with(&FromOld::CalledOff);
    }
}

/// A new process on its way.
pub(crate) struct Successor {
    child: Child,
    line: Line,
    stderr: Overheard,
}

impl Successor {
    /// Starts the program, at the other end of the line.
    pub(crate) fn start(
        program: &Program,
        line: Line,
        theirs: OwnedFd,
    ) -> Result<Self, UpgradeError> {
        let started = program
            .command()
            .env(PREDECESSOR_VARIABLE, std::process::id().to_string())
            .stdin(Stdio::from(theirs))
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|source| UpgradeError::NotStarted {
            path: program.path.clone(),
            source,
        })?;
        let stderr = Overheard::new(child.stderr.take());
        Ok(Self {
            child,
            line,
            stderr,
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Hands everything over, and waits until it serves. If it does not, it is gone when this returns.
    pub(crate) fn settle(
        &mut self,
        belongings: Belongings,
        patience: Duration,
    ) -> Result<(), UpgradeError> {
        let deadline = Instant::now() + patience;
        let handed = hand_over(&self.line.channel, &belongings);
        drop(belongings);
        let ready = match handed {
            Ok(()) => self.await_ready(deadline),
            // It has ended, most likely, and then that is the better answer.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Word::End),
            Err(error) => Err(error),
        };
        match ready {
            Ok(Word::Ready) if !self.is_called_off() => Ok(()),
            Ok(Word::Ready | Word::End) => Err(self.ended()),
            Ok(Word::None) => {
                self.end();
                Err(UpgradeError::TimedOut {
                    patience,
                    said: self.stderr.said(),
                })
            }
            Err(error) => {
                self.end();
                Err(UpgradeError::HandOver(error))
            }
        }
    }

    /// Stays with it to its end: passes on the last of what it says this way, and leaves no zombie.
    pub(crate) fn accompany(mut self) -> io::Result<ExitStatus> {
        self.stderr.drain_to_end();
        self.child.wait()
    }

    fn await_ready(&mut self, deadline: Instant) -> io::Result<Word> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Word::None);
            }
            let waiting = wait_for(&self.line.channel, &self.stderr, left)?;
            if waiting.stderr {
                self.stderr.listen();
            }
            if waiting.channel {
                let packet = self.line.channel.receive::<FromNew>()?;
                return Ok(packet.map_or(Word::End, |_| Word::Ready));
            }
        }
    }

    /// The line is closed. Whoever called it off did that, or it did, most likely by ending.
    fn ended(&mut self) -> UpgradeError {
        let deadline = Instant::now() + END_PATIENCE;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended_itself = self.has_ended();
        self.end();
        self.stderr.listen();
        let said = self.stderr.said();
        match self.child.wait() {
            _ if self.is_called_off() => UpgradeError::CalledOff,
            Ok(status) if ended_itself => UpgradeError::Ended { status, said },
            _ => UpgradeError::HungUp { said },
        }
    }

    fn is_called_off(&self) -> bool {
        self.line.is_called_off.load(Ordering::SeqCst)
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Kills it if it has not ended, and waits until it has.
    pub(super) fn end(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stderr.listen();
    }
}

enum Word {
    Ready,
    /// The line is closed.
    End,
    /// Nothing was said in time.
    None,
}

fn hand_over(channel: &Channel, belongings: &Belongings) -> io::Result<()> {
    let own_stderr = io::stderr();
    let mut parcels = vec![(Parcel::Stderr, own_stderr.as_fd())];
    if let Some(control) = &belongings.control {
        parcels.push((Parcel::ControlLock, control.lock.as_fd()));
        parcels.push((Parcel::ControlSocket, control.listener.as_fd()));
    }
    if let Some(state) = &belongings.state {
        parcels.push((Parcel::State, state.as_fd()));
    }
    let (parcels, descriptors): (Vec<_>, Vec<_>) = parcels.into_iter().unzip();
    let files = belongings.files.iter().take(FILES_MAX);
    let hello = Hello {
        version: VERSION,
        pid: std::process::id(),
        program: desk::VERSION.to_owned(),
        parcels,
        sockets: belongings.sockets.len(),
        files: files.cloned().map(SocketFile::from).collect(),
    };
    channel.send(&FromOld::Hello(hello), &descriptors)?;
    belongings
        .sockets
        .chunks(DESCRIPTORS_MAX)
        .try_for_each(|sockets| send_sockets(channel, sockets))
}

fn send_sockets(channel: &Channel, sockets: &[(String, OwnedFd)]) -> io::Result<()> {
    let names = sockets.iter().map(|(name, _)| name.clone()).collect();
    let descriptors: Vec<BorrowedFd<'_>> =
        sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
    channel.send(&FromOld::Sockets(names), &descriptors)
}

struct Waiting {
    channel: bool,
    stderr: bool,
}

fn wait_for(channel: &Channel, stderr: &Overheard, patience: Duration) -> io::Result<Waiting> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    let mut polled = vec![PollFd::new(channel, PollFlags::IN)];
    polled.extend(
        stderr
            .pipe
            .as_ref()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
    );
    match poll(&mut polled, Some(&patience)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_due = |polled: &PollFd<'_>| !polled.revents().is_empty();
    Ok(Waiting {
        channel: polled.first().is_some_and(is_due),
        stderr: polled.get(1).is_some_and(is_due),
    })
}

/// What the new program says on its standard error: passed on, and its beginning kept.
struct Overheard {
    /// Does not block; `None` once it has ended.
    pipe: Option<ChildStderr>,
    said: Vec<u8>,
}

impl Overheard {
    fn new(pipe: Option<ChildStderr>) -> Self {
        let pipe = pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        Self {
            pipe,
            said: Vec::new(),
        }
    }

    /// Takes what is there.
    fn listen(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.pass_on(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.pipe = None,
            }
        }
    }

    fn drain_to_end(&mut self) {
        if let Some(pipe) = &self.pipe {
            let _ = ioctl_fionbio(pipe, false);
        }
        self.listen();
    }

    fn pass_on(&mut self, chunk: &[u8]) {
        // A log that is closed or full: it is kept all the same.
        let _ = io::stderr().write_all(chunk);
        let room = SAID_BYTES_MAX - self.said.len();
        self.said.extend(chunk.iter().take(room));
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }
}
