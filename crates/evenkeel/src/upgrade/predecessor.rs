//! The new process's side: it takes what the old one hands over, says when it serves, and is told when it serves alone.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use evenkeel_proxy::FileMark;
use evenkeel_proxy::control::socket::HandedSocket;
use evenkeel_proxy::control::upgrade_report::PredecessorReport;
use rustix::process::getppid;
use rustix::stdio::{dup2_stderr, dup2_stdin};
use serde_json::Value;

use super::channel::{Channel, Packet};
use super::words::{AnyHello, FromNew, FromOld, Hello, Parcel, VERSION};
use super::{Belongings, PREDECESSOR_VARIABLE, SOCKETS_MAX};

/// How long the old process may take for each packet: it does nothing else meanwhile.
const PACKET_PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to give up what it has handed over.
const GO_PATIENCE: Duration = Duration::from_secs(30);
/// How much of what it says afterwards is listened to at a time; it says less.
const WORDS_PER_LOOK_MAX: usize = 16;

/// The process that this one follows.
#[derive(Debug)]
pub(crate) struct Predecessor {
    channel: Channel,
    pid: u32,
    /// Where its log goes, and this one's when it serves.
    stderr: Option<OwnedFd>,
    /// Sessions that it still has, as far as it has said.
    sessions: Option<u64>,
}

/// Who this process follows, if anyone, and what is handed over. To be called once, at the start: standard input is used up.
///
/// # Errors
///
/// There is somebody, but what is said cannot be understood.
pub(crate) fn meet() -> io::Result<Option<(Predecessor, Belongings)>> {
    let Some(mut channel) = line_of(std::env::var(PREDECESSOR_VARIABLE).ok().as_deref()) else {
        return Ok(None);
    };
    dup2_stdin(File::open("/dev/null")?)?;
    channel.set_patience(PACKET_PATIENCE);
    receive(channel).map(Some)
}

/// The variable may have got here by way of a shell, say; what counts is whether it is this process's parent that has set it.
fn line_of(variable: Option<&str>) -> Option<Channel> {
    let parent = getppid()?.as_raw_nonzero().to_string();
    if variable? != parent {
        return None;
    }
    Channel::of(io::stdin().as_fd().try_clone_to_owned().ok()?)
}

fn receive(channel: Channel) -> io::Result<(Predecessor, Belongings)> {
    let Packet {
        message: hello,
        descriptors,
    } = receive_hello(&channel)?;
    let (stderr, mut belongings) = unpack(&hello, descriptors);
    if hello.sockets > SOCKETS_MAX {
        return Err(strange("more sockets than there may be"));
    }
    while belongings.sockets.len() < hello.sockets {
        belongings.sockets.extend(receive_sockets(&channel)?);
    }
    let predecessor = Predecessor {
        channel,
        pid: hello.pid,
        stderr,
        sessions: None,
    };
    Ok((predecessor, belongings))
}

fn receive_hello(channel: &Channel) -> io::Result<Packet<Hello>> {
    let Some(Packet {
        message,
        descriptors,
    }) = channel.receive::<Value>()?
    else {
        return Err(strange("it has hung up"));
    };
    let AnyHello { hello } = serde_json::from_value(message.clone())?;
    if hello.version != VERSION {
        return Err(strange(&format!(
            "it speaks version {} of the handover, and this program version {VERSION}; restart instead",
            hello.version
        )));
    }
    match serde_json::from_value(message)? {
        FromOld::Hello(message) => Ok(Packet {
            message,
            descriptors,
        }),
        _ => Err(strange("it does not say who it is")),
    }
}

fn unpack(hello: &Hello, descriptors: Vec<OwnedFd>) -> (Option<OwnedFd>, Belongings) {
    let (mut stderr, mut lock, mut listener, mut state) = (None, None, None, None);
    for (parcel, descriptor) in hello.parcels.iter().zip(descriptors) {
        let place = match parcel {
            Parcel::Stderr => &mut stderr,
            Parcel::ControlLock => &mut lock,
            Parcel::ControlSocket => &mut listener,
            Parcel::State => &mut state,
            Parcel::Unknown => continue,
        };
        *place = Some(descriptor);
    }
    let belongings = Belongings {
        sockets: Vec::new(),
        files: hello.files.iter().cloned().map(FileMark::from).collect(),
        control: lock
            .zip(listener)
            .map(|(lock, listener)| HandedSocket { lock, listener }),
        state: state.map(File::from),
    };
    (stderr, belongings)
}

fn receive_sockets(channel: &Channel) -> io::Result<impl Iterator<Item = (String, OwnedFd)>> {
    let packet = channel.receive::<FromOld>()?;
    match packet {
        Some(Packet {
            message: FromOld::Sockets(names),
            descriptors,
        }) if !names.is_empty() && names.len() == descriptors.len() => {
            Ok(names.into_iter().zip(descriptors))
        }
        Some(_) => Err(strange("sockets are missing")),
        None => Err(strange("it has hung up")),
    }
}

fn strange(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

fn called_off() -> io::Error {
    strange("it is stopping, and has called the upgrade off")
}

impl Predecessor {
    /// Its process id.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Looks whether it still wants to be followed, without waiting.
    ///
    /// # Errors
    ///
    /// It has called it off: it is stopping, and this process must end too.
    pub(crate) fn heed(&self) -> io::Result<()> {
        match self.channel.receive_now::<FromOld>() {
            Ok(Some(_)) => Err(called_off()),
            // Its end without a word: that is looked into when this process serves.
            Ok(None) => Ok(()),
            Err(error) if error.raw_os_error().is_some() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What it still has, by what it has said meanwhile; `None` once it has ended. Does not wait.
    pub(crate) fn remainder(&mut self) -> Option<PredecessorReport> {
        for _ in 0..WORDS_PER_LOOK_MAX {
            match self.channel.receive_now::<FromOld>() {
                Ok(None) => return None,
                Ok(Some(Packet {
                    message: FromOld::Sessions(sessions),
                    ..
                })) => self.sessions = Some(sessions),
                Ok(Some(_)) => {}
                // Nothing more, or a word of a later version.
                Err(_) => break,
            }
        }
        let (pid, sessions) = (self.pid, self.sessions);
        Some(PredecessorReport { pid, sessions })
    }

    /// Says that this process serves, and waits until the other one has given up what it had. If that one has ended meanwhile,
    /// this one goes on alone: nobody else has the sockets. One that ends because it was told to says so before.
    ///
    /// # Errors
    ///
    /// The other one does not let go: it serves, and this one must not.
    pub(crate) fn take_over(&mut self) -> io::Result<()> {
        self.channel.set_patience(GO_PATIENCE);
        // Whether it has ended is seen in a moment.
        let _ = self.channel.send(&FromNew::Ready, &[]);
        match self.channel.receive::<FromOld>()? {
            None => tracing::warn!(
                pid = self.pid,
                "the process before this one ended while it was handing over"
            ),
            Some(Packet {
                message: FromOld::Go,
                ..
            }) => {}
            Some(Packet {
                message: FromOld::CalledOff,
                ..
            }) => return Err(called_off()),
            Some(_) => return Err(strange("it does not let go")),
        }
        if let Some(stderr) = self.stderr.take() {
            dup2_stderr(stderr)?;
        }
        Ok(())
    }
}
