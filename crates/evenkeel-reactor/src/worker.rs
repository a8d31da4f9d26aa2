//! The loop of one thread: wait, dispatch a batch, run what yielded, fire timers, recycle.
//!
//! The loop looks connections up, so a stale event, timer or message never reaches a handler. What happens to a connection
//! is its [`Handler`]'s decision. A worker has a thread to itself ([`Worker::run`]), or is driven from within another loop,
//! which watches its descriptor ([`Worker::turn_now`]).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crate::accept::{Acceptor, Acceptors, Lent, Order, Reception, Rest, close};
use crate::mailbox::{Closed, Mail, Mailbox};
use crate::origin::Origin;
use crate::pipe::Pipes;
use crate::poller::{Batch, Poller, Readiness, Source, Tag, read_event};
use crate::pump::Gear;
use crate::slots::{Key, Slots};
use crate::socket::{Listener, Stream, StreamOptions};
use crate::timer::{Clock, Moment, Wheel};
use crate::unix::FileMark;

/// The one read buffer of a worker, shared by all its connections.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// It stays.
    Keep,
    /// It is over: the loop drops it.
    Remove,
}

/// What happens on a worker. No method may block.
pub trait Handler {
    /// What the handler keeps for each connection. Dropping it must close its sockets.
    type Connection;
    /// What other threads send to one connection.
    type Message: Send;
    /// What other threads tell the worker.
    type Instruction: Send;
    /// The right to one more connection; dropping it gives it back.
    type Place;
    /// Why there is none.
    type Refusal;

    /// A listener has accepted a stream, which is not watched yet. Whoever keeps it puts it into `connections` and watches it.
    fn accepted(
        &mut self,
        turn: &mut Turn<'_>,
        connections: &mut Slots<Self::Connection>,
        listener: u32,
        stream: Stream,
        origin: Origin,
        place: Self::Place,
    );

    /// Takes a place for one more connection of this listener, before it is accepted.
    ///
    /// # Errors
    ///
    /// There is none now; the listener rests.
    fn place(&mut self, listener: u32) -> Result<Self::Place, Self::Refusal>;

    /// A place was taken and nobody was there.
    fn unused(&mut self, place: Self::Place);

    /// A listener begins to rest. It tries again every [`ACCEPT_PAUSE`](crate::ACCEPT_PAUSE), or when it is told to by
    /// [`Turn::accept_again`].
    fn rested(&mut self, turn: &mut Turn<'_>, listener: u32, why: Rest<Self::Refusal>);

    /// A listener has ceased to rest.
    fn went_on(&mut self, turn: &mut Turn<'_>, listener: u32);

    /// A listener that was to be closed has accepted its last connection.
    fn closed(&mut self, listener: u32);

    /// One of a connection's sockets has become ready.
    fn ready(
        &mut self,
        turn: &mut Turn<'_>,
        connection: &mut Self::Connection,
        tag: Tag,
        readiness: Readiness,
    ) -> Fate;

    /// A connection that asked for it by [`Turn::run_again`] has its next turn.
    fn resumed(&mut self, turn: &mut Turn<'_>, connection: &mut Self::Connection) -> Fate;

    /// A connection's timer has fired; it is not armed any more.
    fn expired(&mut self, turn: &mut Turn<'_>, connection: &mut Self::Connection) -> Fate;

    /// A message for a connection.
    fn told(
        &mut self,
        turn: &mut Turn<'_>,
        connection: &mut Self::Connection,
        message: Self::Message,
    ) -> Fate;

    /// An instruction for the worker. Only now may the handler open, adjust and close listeners; that is done as soon as this
    /// returns.
    fn instructed(
        &mut self,
        turn: &mut Turn<'_>,
        connections: &mut Slots<Self::Connection>,
        instruction: Self::Instruction,
    );
}

/// What a handler may use while it is called.
pub struct Turn<'a> {
    /// The time at which this turn of the loop began.
    pub now: Moment,
    /// What bytes are moved with.
    pub gear: &'a mut Gear,
    poller: &'a Poller,
    timers: &'a mut Wheel,
    yielded: &'a mut Vec<Key>,
    orders: &'a mut Vec<Order>,
    stopping: &'a mut Stopping,
}

impl Turn<'_> {
    /// Watches a socket of a connection until it is closed.
    ///
    /// # Errors
    ///
    /// The kernel has no memory, or no more watches, for it.
    pub fn watch(&self, socket: impl AsFd, key: Key, tag: Tag) -> io::Result<()> {
        self.poller.watch(socket, key, tag)
    }

    /// Sets the connection's one timer, in place of what was set before.
    pub fn arm(&mut self, key: Key, at: Moment) {
        self.timers.arm(key, at);
    }

    /// Gives the connection another turn after everybody else has had theirs.
    pub fn run_again(&mut self, key: Key) {
        self.yielded.push(key);
    }

    /// Accepts on one more listener, which the handler will hear of by that number: one that no other bears.
    ///
    /// # Errors
    ///
    /// The kernel has no memory, or no more watches, for it.
    pub fn listen(&mut self, number: u32, listener: Listener) -> io::Result<()> {
        self.poller
            .watch_input(&listener, Source::Listener(number))?;
        self.orders.push(Order::Open(number, listener));
        Ok(())
    }

    /// Gives what is accepted on a listener from now on other options.
    pub fn adjust(&mut self, number: u32, options: StreamOptions) {
        self.orders.push(Order::Adjust(number, options));
    }

    /// Closes a listener, once what waits in its backlog is accepted.
    pub fn stop_listening(&mut self, number: u32) {
        self.orders.push(Order::Close(number));
    }

    /// Tries again wherever a listener rests.
    pub fn accept_again(&mut self) {
        self.orders.push(Order::AcceptAgain);
    }

    /// Says so when all that was asked for listeners is done. Never waits: there must be room.
    pub fn report(&mut self, done: SyncSender<()>) {
        self.orders.push(Order::Report(done));
    }

    /// Gives away duplicates of the sockets of all listeners. Never waits: there must be room.
    pub fn lend(&mut self, to: SyncSender<Lent>) {
        self.orders.push(Order::Lend(to));
    }

    /// Leaves the files of Unix sockets to whoever the sockets were lent to: closing them here removes none.
    pub fn leave_files(&mut self) {
        self.orders.push(Order::LeaveFiles);
    }

    /// Has charge of these files of Unix sockets from now on, as far as the sockets are this worker's: closing them removes them.
    pub fn take_files(&mut self, files: Arc<[FileMark]>) {
        self.orders.push(Order::TakeFiles(files));
    }

    /// Stops accepting; the worker ends once its last connection has.
    pub fn finish(&mut self) {
        *self.stopping = Stopping::Asked;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Listeners are still to be closed.
    Asked,
    /// Waiting for the last connection.
    Closed,
}

/// When a worker that is driven from elsewhere wants its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When its descriptor can be read, or at the latest after this time; `None` is for ever.
    Turn(Option<Duration>),
    /// Never: it accepts nothing more, and the last connection has ended.
    Over,
}

/// Room for the events of one turn, for a worker that is driven from elsewhere.
#[derive(Default)]
pub struct Events(Batch);

/// One reactor thread's worth of listeners and connections.
pub struct Worker<H: Handler> {
    handler: H,
    connections: Slots<H::Connection>,
    acceptors: Acceptors,
    mailbox: Mailbox<H::Message, H::Instruction>,
    clock: Clock,
    now: Moment,
    poller: Poller,
    timers: Wheel,
    yielded: Vec<Key>,
    orders: Vec<Order>,
    stopping: Stopping,
    gear: Gear,
}

impl<H: Handler> Worker<H> {
    /// A worker that has nothing to do yet.
    ///
    /// # Errors
    ///
    /// The epoll instance cannot be made (descriptors or memory).
    pub fn new(
        handler: H,
        mailbox: Mailbox<H::Message, H::Instruction>,
        clock: Clock,
        pipes: Pipes,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.watch_input(&mailbox, Source::Mailbox)?;
        let now = clock.now();
        Ok(Self {
            handler,
            connections: Slots::new(),
            acceptors: Acceptors::default(),
            mailbox,
            clock,
            now,
            poller,
            timers: Wheel::new(now),
            yielded: Vec::new(),
            orders: Vec::new(),
            stopping: Stopping::No,
            gear: Gear {
                buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
                pipes,
            },
        })
    }

    /// Accepts on a listener, which the handler will hear of by that number.
    ///
    /// # Errors
    ///
    /// The kernel has no memory, or no more watches, for it.
    pub fn listen(&mut self, number: u32, listener: Listener) -> io::Result<()> {
        self.poller
            .watch_input(&listener, Source::Listener(number))?;
        self.acceptors.add(number, listener);
        Ok(())
    }

    /// Runs until [`Turn::finish`] was called and the last connection is over.
    ///
    /// # Errors
    ///
    /// The kernel refuses to wait; that is a fault of this program.
    pub fn run(mut self) -> io::Result<()> {
        let mut batch = Batch::new();
        while !self.is_over() {
            self.poller.wait(&mut batch, self.patience())?;
            self.now = self.clock.now();
            self.turn(&batch);
        }
        Ok(())
    }

    /// One turn without waiting, for a worker that is driven from elsewhere: to be called again once its descriptor can be read,
    /// which only its becoming so tells, or when the answer's time is over.
    ///
    /// # Errors
    ///
    /// The kernel refuses to wait; that is a fault of this program.
    pub fn turn_now(&mut self, events: &mut Events) -> io::Result<Next> {
        self.poller.wait(&mut events.0, Some(Duration::ZERO))?;
        self.now = self.clock.now();
        self.turn(&events.0);
        Ok(if self.is_over() {
            Next::Over
        } else if events.0.is_empty() {
            Next::Turn(self.patience())
        } else {
            // There may be more of them.
            Next::Turn(Some(Duration::ZERO))
        })
    }

    /// Drops a connection that has ended between two turns.
    pub fn remove(&mut self, key: Key) {
        self.connections.remove(key);
    }

    /// Whether there is nothing left to do. Mail may bring something: who sent it relies on its being read.
    fn is_over(&self) -> bool {
        self.stopping == Stopping::Closed
            && self.connections.is_empty()
            && self.mailbox.close_if_empty() == Closed::Yes
    }

    /// One turn. The order matters in one point only: places are recycled after everything that names them.
    fn turn(&mut self, batch: &Batch) {
        let yielded = std::mem::take(&mut self.yielded);
        for event in batch {
            let (source, readiness) = read_event(event);
            self.dispatch(source, readiness);
        }
        for key in yielded {
            self.visit(key, |handler, turn, connection| {
                handler.resumed(turn, connection)
            });
        }
        self.accept();
        self.expire();
        let timers = &mut self.timers;
        self.connections.recycle(|index| timers.disarm(index));
    }

    fn patience(&self) -> Option<Duration> {
        if !self.yielded.is_empty() || self.acceptors.has_more() || self.stopping == Stopping::Asked
        {
            return Some(Duration::ZERO);
        }
        let resting = self.acceptors.resting_until();
        let rest = resting.map(|until| {
            Duration::from_micros(until.as_micros().saturating_sub(self.now.as_micros()))
        });
        rest.into_iter().chain(self.timers.patience(self.now)).min()
    }

    fn dispatch(&mut self, source: Source, readiness: Readiness) {
        match source {
            Source::Connection(key, tag) => {
                self.visit(key, |handler, turn, connection| {
                    handler.ready(turn, connection, tag, readiness)
                });
            }
            Source::Listener(number) => self.acceptors.note(number),
            Source::Mailbox => self.read_mail(),
        }
    }

    /// Lets the handler see a connection, if it is still there, and removes it if that is its fate.
    fn visit(
        &mut self,
        key: Key,
        see: impl FnOnce(&mut H, &mut Turn<'_>, &mut H::Connection) -> Fate,
    ) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let mut turn = Turn {
            now: self.now,
            gear: &mut self.gear,
            poller: &self.poller,
            timers: &mut self.timers,
            yielded: &mut self.yielded,
            orders: &mut self.orders,
            stopping: &mut self.stopping,
        };
        if see(&mut self.handler, &mut turn, connection) == Fate::Remove {
            self.connections.remove(key);
        }
    }

    /// Lets the handler see all connections.
    fn visit_all(&mut self, see: impl FnOnce(&mut H, &mut Turn<'_>, &mut Slots<H::Connection>)) {
        let mut turn = Turn {
            now: self.now,
            gear: &mut self.gear,
            poller: &self.poller,
            timers: &mut self.timers,
            yielded: &mut self.yielded,
            orders: &mut self.orders,
            stopping: &mut self.stopping,
        };
        see(&mut self.handler, &mut turn, &mut self.connections);
    }

    fn read_mail(&mut self) {
        let mut mail = VecDeque::new();
        self.mailbox.take(&mut mail);
        for item in mail {
            match item {
                Mail::Connection(key, message) => {
                    self.visit(key, |handler, turn, connection| {
                        handler.told(turn, connection, message)
                    });
                }
                Mail::Worker(instruction) => {
                    self.visit_all(|handler, turn, connections| {
                        handler.instructed(turn, connections, instruction);
                    });
                    self.carry_out_orders();
                }
            }
        }
    }

    fn carry_out_orders(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            match order {
                Order::Open(number, listener) => self.acceptors.add(number, listener),
                Order::Adjust(number, options) => self.acceptors.adjust(number, options),
                Order::Close(number) => {
                    let acceptors = self.acceptors.take(number);
                    self.close(acceptors);
                    self.handler.closed(number);
                }
                Order::Lend(to) => drop(to.try_send(self.acceptors.lend())),
                Order::AcceptAgain => self.acceptors.accept_again(self.now),
                Order::LeaveFiles => self.acceptors.leave_files(),
                Order::TakeFiles(files) => self.acceptors.take_files(&files),
                // Whoever has stopped waiting needs no answer.
                Order::Report(done) => drop(done.try_send(())),
            }
        }
    }

    fn accept(&mut self) {
        if self.stopping == Stopping::Asked {
            let acceptors = self.acceptors.take_all();
            self.close(acceptors);
            self.stopping = Stopping::Closed;
            return;
        }
        let mut acceptors = std::mem::take(&mut self.acceptors);
        acceptors.accept(self.now, self);
        self.acceptors = acceptors;
    }

    fn close(&mut self, acceptors: Vec<Acceptor>) {
        for acceptor in &acceptors {
            self.poller.forget(acceptor.listener());
        }
        close(acceptors, self.now, self);
    }

    fn expire(&mut self) {
        let mut due = Vec::new();
        self.timers.expire(self.now, &mut due);
        for key in due {
            self.visit(key, |handler, turn, connection| {
                handler.expired(turn, connection)
            });
        }
    }
}

impl<H: Handler> Reception for Worker<H> {
    type Place = H::Place;
    type Refusal = H::Refusal;

    fn place(&mut self, listener: u32) -> Result<H::Place, H::Refusal> {
        self.handler.place(listener)
    }

    fn unused(&mut self, place: H::Place) {
        self.handler.unused(place);
    }

    fn accepted(&mut self, listener: u32, stream: Stream, origin: Origin, place: H::Place) {
        self.visit_all(|handler, turn, connections| {
            handler.accepted(turn, connections, listener, stream, origin, place);
        });
    }

    fn rested(&mut self, listener: u32, why: Rest<H::Refusal>) {
        self.visit_all(|handler, turn, _| handler.rested(turn, listener, why));
    }

    fn went_on(&mut self, listener: u32) {
        self.visit_all(|handler, turn, _| handler.went_on(turn, listener));
    }
}

/// What can be read as soon as the worker has something to do.
impl<H: Handler> AsFd for Worker<H> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl<H: Handler> AsRawFd for Worker<H> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Whichever way a worker ends, no mail is left lying.
impl<H: Handler> Drop for Worker<H> {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}
