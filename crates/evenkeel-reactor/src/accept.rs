//! The listening sockets of one worker: accepting in bounded portions, and pausing while there is no room.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::Errno;

use crate::poller::{Poller, Source};
use crate::socket::{Listener, Stream};
use crate::timer::Moment;

/// Connections accepted from one listener in one turn of the loop, so that a flood of new ones cannot starve the old.
pub const ACCEPTS_PER_TURN_MAX: usize = 64;

/// How long a listener rests when there is no room, or the process or the machine has no descriptor left. Its event has been used up, and
/// trying again at once would only burn time; the backlog holds the clients meanwhile.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who takes in what is accepted.
pub(crate) trait Reception {
    /// Whether there is room for one more.
    fn has_room(&self) -> bool;

    /// A listener has accepted a connection from that peer.
    fn accepted(&mut self, listener: u32, stream: Stream, peer: SocketAddr);

    /// A listener rests: there is no room, or no descriptor left.
    fn rested(&mut self, listener: u32);
}

struct Acceptor {
    number: u32,
    listener: Listener,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing to accept until the next event.
    Quiet,
    /// There may be more to accept.
    Ready,
    /// Without room until then.
    Resting(Moment),
}

/// The listening sockets of one worker.
#[derive(Default)]
pub(crate) struct Acceptors {
    acceptors: Vec<Acceptor>,
}

impl Acceptors {
    pub(crate) fn watch(
        &mut self,
        poller: &Poller,
        number: u32,
        listener: Listener,
    ) -> io::Result<()> {
        poller.watch_input(&listener, Source::Listener(number))?;
        self.acceptors.push(Acceptor {
            number,
            listener,
            state: State::Quiet,
        });
        Ok(())
    }

    /// An event has come for a listener.
    pub(crate) fn note(&mut self, number: u32) {
        let found = self
            .acceptors
            .iter_mut()
            .find(|acceptor| acceptor.number == number);
        if let Some(acceptor) = found.filter(|acceptor| acceptor.state == State::Quiet) {
            acceptor.state = State::Ready;
        }
    }

    /// Accepts one portion from each listener that has something.
    pub(crate) fn accept(&mut self, now: Moment, reception: &mut impl Reception) {
        for acceptor in &mut self.acceptors {
            if acceptor.may_accept(now) {
                acceptor.state = acceptor.accept_portion(now, reception);
            }
        }
    }

    /// Whether a listener would go on at once.
    pub(crate) fn has_more(&self) -> bool {
        self.acceptors
            .iter()
            .any(|acceptor| acceptor.state == State::Ready)
    }

    /// When the next resting listener tries again.
    pub(crate) fn resting_until(&self) -> Option<Moment> {
        let resting = self
            .acceptors
            .iter()
            .filter_map(|acceptor| match acceptor.state {
                State::Resting(until) => Some(until),
                State::Quiet | State::Ready => None,
            });
        resting.min()
    }

    /// Accepts what has already been connected, as far as one backlog, and closes all listeners: closing one resets
    /// whatever still waits in it.
    pub(crate) fn finish(&mut self, now: Moment, reception: &mut impl Reception) {
        const PORTIONS: usize = crate::socket::BACKLOG_MAX as usize / ACCEPTS_PER_TURN_MAX;
        for mut acceptor in self.acceptors.drain(..) {
            let mut portions = 0..PORTIONS;
            while portions.next().is_some()
                && acceptor.accept_portion(now, reception) == State::Ready
            {}
        }
    }
}

impl Acceptor {
    fn may_accept(&self, now: Moment) -> bool {
        match self.state {
            State::Quiet => false,
            State::Ready => true,
            State::Resting(until) => until <= now,
        }
    }

    fn accept_portion(&mut self, now: Moment, reception: &mut impl Reception) -> State {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            if !reception.has_room() {
                return self.rest(now, reception);
            }
            match self.listener.accept() {
                Ok((stream, peer)) => reception.accepted(self.number, stream, peer),
                Err(Errno::AGAIN) => return State::Quiet,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return self.rest(now, reception);
                }
                // A client that left while it waited, or a passing network error: the next one may be there.
                Err(_) => {}
            }
        }
        State::Ready
    }

    fn rest(&self, now: Moment, reception: &mut impl Reception) -> State {
        reception.rested(self.number);
        State::Resting(now.after(ACCEPT_PAUSE))
    }
}
