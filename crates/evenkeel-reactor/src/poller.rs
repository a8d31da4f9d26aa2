//! Edge-triggered epoll: who is ready, and for what.
//!
//! A descriptor is added once, for everything, and never modified; closing it takes it out, unless it has a duplicate in another
//! process: epoll knows the open file and not the descriptor. What a token in an event stands
//! for is decoded here and nowhere else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use crate::slots::Key;

/// Events taken from the kernel in one turn of the loop.
pub const EVENTS_PER_TURN_MAX: usize = 256;

/// Tells a connection which of its sockets is meant.
pub type Tag = u8;

const TAG_BITS: u32 = u8::BITS;
const KIND_SHIFT: u32 = Key::INDEX_BITS + Key::GENERATION_BITS + TAG_BITS;
const KIND_CONNECTION: u64 = 0;
const KIND_LISTENER: u64 = 1;
const KIND_MAILBOX: u64 = 2;

/// Whose descriptor an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Connection(Key, Tag),
    Listener(u32),
    Mailbox,
}

impl Source {
    fn encode(self) -> u64 {
        match self {
            Self::Connection(key, tag) => {
                KIND_CONNECTION << KIND_SHIFT | key.to_u64() << TAG_BITS | u64::from(tag)
            }
            Self::Listener(number) => KIND_LISTENER << KIND_SHIFT | u64::from(number),
            Self::Mailbox => KIND_MAILBOX << KIND_SHIFT,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "each part is cut out at the width it was put in with"
    )]
    fn decode(token: u64) -> Self {
        match token >> KIND_SHIFT {
            KIND_CONNECTION => Self::Connection(Key::from_u64(token >> TAG_BITS), token as Tag),
            KIND_LISTENER => Self::Listener(token as u32),
            _ => Self::Mailbox,
        }
    }
}

/// What an event says about a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(epoll::EventFlags);

impl Readiness {
    /// There may be something to read: bytes, an end of stream or an error.
    pub const fn is_readable(self) -> bool {
        self.0.intersects(epoll::EventFlags::IN.union(Self::ENDED))
    }

    /// There may be room to write, or the connection is made.
    pub const fn is_writable(self) -> bool {
        self.0.intersects(epoll::EventFlags::OUT)
    }

    /// The peer's end of stream has arrived, though bytes may be unread before it.
    pub const fn is_ended(self) -> bool {
        self.0.intersects(Self::ENDED)
    }

    /// The connection is broken; the socket's error says how.
    pub const fn is_broken(self) -> bool {
        self.0.intersects(epoll::EventFlags::ERR)
    }

    const ENDED: epoll::EventFlags = epoll::EventFlags::RDHUP
        .union(epoll::EventFlags::HUP)
        .union(epoll::EventFlags::ERR);
}

/// An epoll instance and the room for one batch of its events.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// One batch, in the order the kernel gave it.
pub(crate) type Batch = Vec<epoll::Event>;

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Watches a connection's socket, for good and for everything.
    pub(crate) fn watch(&self, socket: impl AsFd, key: Key, tag: Tag) -> io::Result<()> {
        let everything = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
        self.add(socket, Source::Connection(key, tag), everything)
    }

    /// Watches a descriptor that is only ever read.
    pub(crate) fn watch_input(&self, descriptor: impl AsFd, source: Source) -> io::Result<()> {
        self.add(descriptor, source, epoll::EventFlags::IN)
    }

    /// Watches a descriptor no more. Only what has duplicates needs it: it would be reported as long as one of them is open.
    pub(crate) fn forget(&self, descriptor: impl AsFd) {
        // One that is not watched needs no forgetting.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// Waits for events, at most `patience`; `None` is for ever. A signal ends the wait early, with none.
    pub(crate) fn wait(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<()> {
        batch.clear();
        batch.reserve(EVENTS_PER_TURN_MAX);
        let patience = patience.map(timespec);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(batch),
            patience.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn add(
        &self,
        descriptor: impl AsFd,
        source: Source,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(source.encode());
        Ok(epoll::add(
            &self.epoll,
            descriptor,
            data,
            flags | epoll::EventFlags::ET,
        )?)
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

pub(crate) fn read_event(event: &epoll::Event) -> (Source, Readiness) {
    let epoll::Event { flags, data } = *event;
    (Source::decode(data.u64()), Readiness(flags))
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Listener, Sharing, StreamOptions};

    /// A token means the same after the kernel has handed it back.
    #[test]
    fn tokens_survive_the_kernel() {
        let key = Key::from_u64((1 << (Key::INDEX_BITS + Key::GENERATION_BITS)) - 1);
        for source in [
            Source::Connection(key, 255),
            Source::Listener(u32::MAX),
            Source::Mailbox,
        ] {
            assert_eq!(Source::decode(source.encode()), source);
        }
    }
    /// A listener that was handed to another process goes on there; here nothing is heard of it once it is forgotten.
    #[test]
    fn a_duplicate_elsewhere_is_not_heard_of() {
        let local = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(local, Sharing::Workers, StreamOptions::default()).unwrap();
        let address = listener.address().unwrap();
        let poller = Poller::new().unwrap();
        poller.watch_input(&listener, Source::Listener(0)).unwrap();
        let elsewhere = listener.as_fd().try_clone_to_owned().unwrap();

        poller.forget(&listener);
        drop(listener);

        let _client = std::net::TcpStream::connect(address).unwrap();
        let mut batch = Batch::new();
        poller.wait(&mut batch, Some(Duration::ZERO)).unwrap();
        assert!(batch.is_empty());
        drop(elsewhere);
    }
}
