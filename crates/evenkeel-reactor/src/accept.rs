//! The listening sockets of one worker: accepting in bounded portions, and pausing while there is no room.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rustix::io::Errno;

use crate::origin::Origin;
use crate::socket::{Listener, Stream, StreamOptions};
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

    /// A listener has accepted a connection from there.
    fn accepted(&mut self, listener: u32, stream: Stream, origin: Origin);

    /// A listener rests: there is no room, or no descriptor left.
    fn rested(&mut self, listener: u32);

    /// A listener is about to be closed: it has accepted its last connection.
    fn closed(&mut self, listener: u32);
}

/// What a handler wants of its worker's listeners.
pub(crate) enum Order {
    /// Accept on this one too; it is watched already.
    Open(u32, Listener),
    /// Give streams that are accepted from now on these options.
    Adjust(u32, StreamOptions),
    /// Accept what has been connected already, and close it.
    Close(u32),
    /// Say that everything before this has been done.
    Report(SyncSender<()>),
}

/// A worker's own socket of one listener.
pub(crate) struct Acceptor {
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
    /// Takes in a listener that is watched.
    pub(crate) fn add(&mut self, number: u32, listener: Listener) {
        self.acceptors.push(Acceptor {
            number,
            listener,
            state: State::Quiet,
        });
    }

    /// Takes a listener out.
    pub(crate) fn take(&mut self, number: u32) -> Option<Acceptor> {
        let mut acceptors = self.acceptors.iter();
        let index = acceptors.position(|acceptor| acceptor.number == number)?;
        Some(self.acceptors.remove(index))
    }

    /// Streams that are accepted from now on have these options.
    pub(crate) fn adjust(&self, number: u32, options: StreamOptions) {
        let mut acceptors = self.acceptors.iter();
        if let Some(acceptor) = acceptors.find(|acceptor| acceptor.number == number) {
            acceptor.listener.adjust(options);
        }
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

    /// Closes all listeners, each as [`Acceptor::close`] does.
    pub(crate) fn finish(&mut self, now: Moment, reception: &mut impl Reception) {
        for acceptor in self.acceptors.drain(..) {
            acceptor.close(now, reception);
        }
    }
}

impl Acceptor {
    /// Accepts what has already been connected, as far as one backlog, and closes the listener: that resets whatever still
    /// waits in it.
    pub(crate) fn close(mut self, now: Moment, reception: &mut impl Reception) {
        const PORTIONS: usize = crate::socket::BACKLOG_MAX as usize / ACCEPTS_PER_TURN_MAX;
        let mut portions = 0..PORTIONS;
        while portions.next().is_some() && self.accept_portion(now, reception) == State::Ready {}
        reception.closed(self.number);
    }

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
                Ok((stream, origin)) => reception.accepted(self.number, stream, origin),
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
