//! The listening sockets of one worker: accepting in bounded portions, and pausing while there is no room.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rustix::io::Errno;

use crate::origin::Origin;
use crate::socket::{Listener, Stream, StreamOptions};
use crate::timer::Moment;
use crate::unix::FileMark;

/// Connections accepted from one listener in one turn of the loop, so that a flood of new ones cannot starve the old.
pub const ACCEPTS_PER_TURN_MAX: usize = 64;

/// How long a listener rests when there is no place, or the process or the machine has no descriptor left, unless
/// [`Turn::accept_again`](crate::Turn::accept_again) ends it. Its event has been used up, and trying again at once would only
/// burn time; the backlog holds the clients meanwhile.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a listener rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest<R> {
    /// The handler has no place for another connection, for this reason.
    Refused(R),
    /// This process or machine is out of descriptors, or of memory for one.
    OutOfDescriptors,
}

/// Who takes in what is accepted.
pub(crate) trait Reception {
    /// The right to one more connection; given back when it is dropped.
    type Place;
    /// Why there is none.
    type Refusal;

    /// A place for one more connection of this listener, taken before it is accepted.
    fn place(&mut self, listener: u32) -> Result<Self::Place, Self::Refusal>;

    /// A place was not needed: nobody was there.
    fn unused(&mut self, place: Self::Place);

    /// A listener has accepted a connection from there.
    fn accepted(&mut self, listener: u32, stream: Stream, origin: Origin, place: Self::Place);

    /// A listener that did not rest does so from now on.
    fn rested(&mut self, listener: u32, why: Rest<Self::Refusal>);

    /// A listener that rested does not any more: it has accepted all who were waiting, or is closed.
    fn went_on(&mut self, listener: u32);
}

/// What a handler wants of its worker's listeners.
pub(crate) enum Order {
    /// Accept on this one too; it is watched already.
    Open(u32, Listener),
    /// Give streams that are accepted from now on these options.
    Adjust(u32, StreamOptions),
    /// Accept what has been connected already, and close it.
    Close(u32),
    /// Try again where a listener rests.
    AcceptAgain,
    /// Give away duplicates of all sockets.
    Lend(SyncSender<Lent>),
    /// Leave the files of Unix sockets to whoever has duplicates.
    LeaveFiles,
    /// Have charge of these files of Unix sockets, as far as the sockets are here.
    TakeFiles(Arc<[FileMark]>),
    /// Say that everything before this has been done.
    Report(SyncSender<()>),
}

/// Duplicates of a worker's listening sockets; or why there is none.
pub type Lent = io::Result<Vec<Loan>>;

/// A duplicate of a listening socket.
#[derive(Debug)]
pub struct Loan {
    /// Of its listener.
    pub number: u32,
    /// The duplicate.
    pub socket: OwnedFd,
    /// The file that goes with the socket, if the lender has charge of it.
    pub file: Option<FileMark>,
}

/// One of a worker's own sockets of a listener; it has several where fewer workers took over from more.
pub(crate) struct Acceptor {
    number: u32,
    listener: Listener,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to accept until the next event.
    Quiet,
    /// There may be more to accept.
    Ready,
    /// Without a place, or a descriptor, until then.
    Resting(Moment),
}

/// The listening sockets of one worker.
#[derive(Default)]
pub(crate) struct Acceptors {
    acceptors: Vec<Acceptor>,
    /// Whose turn it is to be the first: where places are few, each listener gets its share of them.
    first: usize,
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

    /// Takes a listener out, with all its sockets.
    pub(crate) fn take(&mut self, number: u32) -> Vec<Acceptor> {
        let is_of_it = |acceptor: &mut Acceptor| acceptor.number == number;
        self.acceptors.extract_if(.., is_of_it).collect()
    }

    /// Takes all of them out.
    pub(crate) fn take_all(&mut self) -> Vec<Acceptor> {
        std::mem::take(&mut self.acceptors)
    }

    /// Streams that are accepted from now on have these options.
    pub(crate) fn adjust(&self, number: u32, options: StreamOptions) {
        let acceptors = self.acceptors.iter();
        for acceptor in acceptors.filter(|acceptor| acceptor.number == number) {
            acceptor.listener.adjust(options);
        }
    }

    /// Duplicates of all sockets.
    pub(crate) fn lend(&self) -> Lent {
        let lend = |acceptor: &Acceptor| {
            Ok(Loan {
                number: acceptor.number,
                socket: acceptor.listener.as_fd().try_clone_to_owned()?,
                file: acceptor.listener.file().cloned(),
            })
        };
        self.acceptors.iter().map(lend).collect()
    }

    /// The files of Unix sockets are somebody else's from now on.
    pub(crate) fn leave_files(&mut self) {
        for acceptor in &mut self.acceptors {
            acceptor.listener.leave_file();
        }
    }

    /// Whoever had charge of these files has left them.
    pub(crate) fn take_files(&mut self, files: &[FileMark]) {
        for acceptor in &mut self.acceptors {
            acceptor.listener.take_file(files);
        }
    }

    /// An event has come for a listener. Which of its sockets it is for is found out by asking.
    pub(crate) fn note(&mut self, number: u32) {
        let acceptors = self.acceptors.iter_mut();
        for acceptor in acceptors.filter(|acceptor| acceptor.number == number) {
            if acceptor.state == State::Quiet {
                acceptor.state = State::Ready;
            }
        }
    }

    /// Accepts one portion from each listener that has something.
    pub(crate) fn accept(&mut self, now: Moment, reception: &mut impl Reception) {
        self.first = (self.first + 1) % self.acceptors.len().max(1);
        let (later, sooner) = self.acceptors.split_at_mut(self.first);
        for acceptor in sooner.iter_mut().chain(later) {
            if acceptor.may_accept(now) {
                acceptor.accept_portion(now, reception);
            }
        }
    }

    /// Ends every rest: there may be a place now.
    pub(crate) fn accept_again(&mut self, now: Moment) {
        for acceptor in &mut self.acceptors {
            if let State::Resting(_) = acceptor.state {
                acceptor.state = State::Resting(now);
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
}

/// Accepts what has already been connected, as far as one backlog for each socket, and closes them: that resets whatever still
/// waits there, unless another process has the socket too.
pub(crate) fn close(mut acceptors: Vec<Acceptor>, now: Moment, reception: &mut impl Reception) {
    for acceptor in &mut acceptors {
        acceptor.accept_last(now, reception);
    }
}

impl Acceptor {
    pub(crate) const fn listener(&self) -> &Listener {
        &self.listener
    }

    fn accept_last(&mut self, now: Moment, reception: &mut impl Reception) {
        const PORTIONS: usize = crate::socket::BACKLOG_MAX as usize / ACCEPTS_PER_TURN_MAX;
        let mut portions = 0..PORTIONS;
        while portions.next().is_some() {
            self.accept_portion(now, reception);
            if self.state != State::Ready {
                break;
            }
        }
        if let State::Resting(_) = self.state {
            reception.went_on(self.number);
        }
    }

    fn may_accept(&self, now: Moment) -> bool {
        match self.state {
            State::Quiet => false,
            State::Ready => true,
            State::Resting(until) => until <= now,
        }
    }

    fn accept_portion<R: Reception>(&mut self, now: Moment, reception: &mut R) {
        let why = self.accept_while_there_is_room(reception);
        let rested = matches!(self.state, State::Resting(_));
        match why {
            Ended::Portion => self.state = State::Ready,
            Ended::Empty => self.state = State::Quiet,
            Ended::Without(_) => self.state = State::Resting(now.after(ACCEPT_PAUSE)),
        }
        match why {
            Ended::Without(why) if !rested => reception.rested(self.number, why),
            Ended::Portion | Ended::Empty if rested => reception.went_on(self.number),
            _ => {}
        }
    }

    fn accept_while_there_is_room<R: Reception>(&self, reception: &mut R) -> Ended<R::Refusal> {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let place = match reception.place(self.number) {
                Ok(place) => place,
                Err(refusal) => return Ended::Without(Rest::Refused(refusal)),
            };
            match self.listener.accept() {
                Ok((stream, origin)) => reception.accepted(self.number, stream, origin, place),
                Err(Errno::AGAIN) => {
                    reception.unused(place);
                    return Ended::Empty;
                }
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Ended::Without(Rest::OutOfDescriptors);
                }
                // A client that left while it waited, or a passing network error: the next one may be there.
                Err(_) => {}
            }
        }
        Ended::Portion
    }
}

/// Why a portion has ended.
enum Ended<R> {
    /// It was a whole one.
    Portion,
    /// Nobody waits any more.
    Empty,
    /// There is no place, or no descriptor.
    Without(Rest<R>),
}
