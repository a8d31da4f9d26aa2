//! Connections to endpoints that carry one exchange after the other: taken from here, given back when they are free.
//!
//! Idle connections are a worker's own ([`Shelf`]), so that taking one costs no lock. How many there may be of an endpoint,
//! and who waits for one, is the whole process's business ([`Ledger`], [`Book`]), and looked at only where a cluster limits
//! them. Then somebody who waits may be given another worker's idle connection. What goes over a connection is not known here;
//! whether there may be another exchange at all is the core's decision and comes before (its lease).

mod book;
mod ledger;
mod policy;
mod shelf;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use evenkeel_core::units::{EndpointId, Time};
use fastrand::Rng;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use book::{Book, Carried, Grant, Place, Wait};
use ledger::{Bounds, Claim};
pub use policy::PoolPolicy;
use shelf::Shelf;

/// A connection that can be kept: the kinds of stream, and a fake in tests.
pub(crate) trait Pooled: Sized {
    /// It, while no thread reads or writes it.
    type Portable: Send;

    /// Whether its peer has ended it, or has sent what nobody asked for. What the kernel has not told yet is not seen.
    fn is_stale(&mut self) -> bool;

    /// The same, and the kernel is asked. That costs a call.
    fn has_ended(&self) -> bool;

    /// Lets go of it for another worker; `None` closes it, where it cannot be carried over.
    fn pack(self) -> Option<Self::Portable>;

    /// Takes it up on this worker.
    ///
    /// # Errors
    ///
    /// The kernel cannot watch another socket.
    fn unpack(packed: Self::Portable) -> io::Result<Self>;
}

/// What all workers share.
pub(crate) struct Pools<P> {
    /// Of those endpoints whose connections are limited and used.
    books: Mutex<HashMap<EndpointId, Weak<Book<P>>>>,
    /// How each worker is asked for an idle connection.
    bells: Box<[mpsc::Sender<EndpointId>]>,
}

/// What a worker is asked for.
pub(crate) struct Asks(mpsc::Receiver<EndpointId>);

/// Requests for idle connections that may lie unread before a worker. One that is lost is made up for by the next connection that
/// becomes free.
const ASKS_MAX: usize = 1024;

/// The idle connections of one worker.
pub(crate) struct Pool<S: Pooled> {
    worker: usize,
    shared: Arc<Pools<S::Portable>>,
    bays: RefCell<HashMap<EndpointId, Bay<S>>>,
    random: RefCell<Rng>,
}

/// One endpoint's part of a worker's pool.
struct Bay<S: Pooled> {
    policy: PoolPolicy,
    /// `None` where connections are not limited.
    book: Option<Arc<Book<S::Portable>>>,
    shelf: Shelf<Connection<S>>,
    used: Time,
}

/// A connection in use.
pub(crate) struct Connection<S: Pooled> {
    pub(crate) stream: S,
    last_use: Time,
    exchanges: u32,
    /// Last: given up when the stream is closed.
    place: Place<S::Portable>,
}

/// The right to open a connection.
pub(crate) struct MayOpen<S: Pooled> {
    place: Place<S::Portable>,
    last_use: Time,
}

/// Which connection is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Any that is there.
    #[default]
    Any,
    /// Any, if the kernel says that it has not ended: for what cannot be sent twice.
    Proven,
    /// One that nobody has used: whoever has just met with a stale one does not want another.
    New,
}

/// What came of wanting a connection.
pub(crate) enum Claimed<S: Pooled> {
    /// One that has been used before, and is not known to be stale.
    Kept(Connection<S>),
    /// A new one may be opened.
    Open(MayOpen<S>),
    /// There are as many as there may be; one waits for this.
    Wait(Wait<S::Portable>),
    /// And as many wait as may.
    Refused,
}

impl<P: Send> Pools<P> {
    /// For so many workers; what each of them attends to comes with it.
    pub(crate) fn of(workers: usize) -> (Arc<Self>, Vec<Asks>) {
        let channels = (0..workers).map(|_| mpsc::channel(ASKS_MAX));
        let (bells, asks): (Vec<_>, Vec<_>) =
            channels.map(|(bell, asks)| (bell, Asks(asks))).unzip();
        let pools = Self {
            books: Mutex::default(),
            bells: bells.into(),
        };
        (Arc::new(pools), asks)
    }

    fn book(&self, endpoint: EndpointId, bounds: Bounds) -> Arc<Book<P>> {
        let mut books = self.books.lock();
        if let Some(book) = books.get(&endpoint).and_then(Weak::upgrade) {
            return book;
        }
        books.retain(|_, book| book.strong_count() > 0);
        let book = Book::new(bounds, self.bells.len());
        books.insert(endpoint, Arc::downgrade(&book));
        book
    }
}

impl<S: Pooled> Pool<S> {
    pub(crate) fn new(worker: usize, shared: Arc<Pools<S::Portable>>, random: Rng) -> Self {
        Self {
            worker,
            shared,
            bays: RefCell::default(),
            random: RefCell::new(random),
        }
    }

    /// A connection to the endpoint, or the right to open one, or a place in the line.
    pub(crate) fn claim(
        &self,
        endpoint: EndpointId,
        policy: &PoolPolicy,
        freshness: Freshness,
        now: Time,
    ) -> Claimed<S> {
        loop {
            match self.claim_any(endpoint, policy, now) {
                Claimed::Kept(connection) if freshness == Freshness::New => {
                    return self.renewed(connection, policy, now);
                }
                // What is dropped here frees its place for the next claim; there are no more than lie on the shelf.
                Claimed::Kept(mut connection) => {
                    if connection.is_fit(freshness, now) {
                        return Claimed::Kept(connection);
                    }
                }
                other => return other,
            }
        }
    }

    /// Its place, for another one.
    fn renewed(&self, connection: Connection<S>, policy: &PoolPolicy, now: Time) -> Claimed<S> {
        let Connection { stream, place, .. } = connection;
        drop(stream);
        self.may_open(place, policy, now)
    }

    fn claim_any(&self, endpoint: EndpointId, policy: &PoolPolicy, now: Time) -> Claimed<S> {
        let mut bays = self.bays.borrow_mut();
        let bay = bays.entry(endpoint).or_insert_with(|| Bay::new(policy));
        bay.follow(policy, endpoint, &self.shared);
        bay.used = now;
        let Some(book) = &bay.book else {
            return match bay.shelf.take() {
                Some(connection) => Claimed::Kept(connection),
                None => self.may_open(Place { book: None }, policy, now),
            };
        };
        match book.claim(self.worker) {
            (Claim::Wait { ticket, ask }, Some(granted)) => {
                self.ask(ask, endpoint);
                Claimed::Wait(Wait {
                    book: Arc::clone(book),
                    ticket,
                    granted,
                })
            }
            (Claim::Idle | Claim::Open, _) => match bay.shelf.take() {
                Some(connection) => Claimed::Kept(connection),
                None => {
                    let book = Some(Arc::clone(book));
                    self.may_open(Place { book }, policy, now)
                }
            },
            _ => Claimed::Refused,
        }
    }

    fn may_open(&self, place: Place<S::Portable>, policy: &PoolPolicy, now: Time) -> Claimed<S> {
        let last_use = policy.last_use(now, &mut self.random.borrow_mut());
        Claimed::Open(MayOpen { place, last_use })
    }

    fn ask(&self, worker: Option<usize>, endpoint: EndpointId) {
        if let Some(bell) = worker.and_then(|worker| self.shared.bells.get(worker)) {
            // Full: that worker is behind, and the next connection that becomes free comes instead.
            let _ = bell.try_send(endpoint);
        }
    }

    /// What somebody who waited has been given.
    ///
    /// # Errors
    ///
    /// The connection that came cannot be watched.
    pub(crate) fn accept(
        &self,
        grant: Grant<S::Portable>,
        policy: &PoolPolicy,
        freshness: Freshness,
        now: Time,
    ) -> io::Result<Claimed<S>> {
        let Grant { carried, place } = grant;
        let Some(carried) = carried else {
            return Ok(self.may_open(place, policy, now));
        };
        let mut stream = S::unpack(carried.connection)?;
        if freshness == Freshness::New || stream.is_stale() {
            drop(stream);
            return Ok(self.may_open(place, policy, now));
        }
        Ok(Claimed::Kept(Connection {
            stream,
            last_use: carried.last_use,
            exchanges: carried.exchanges,
            place,
        }))
    }

    /// The exchange is over, and the connection could carry another one. It is another's, or idle, or closed.
    pub(crate) fn give_back(&self, endpoint: EndpointId, mut connection: Connection<S>, now: Time) {
        connection.exchanges = connection.exchanges.saturating_add(1);
        let mut bays = self.bays.borrow_mut();
        let Some(bay) = bays.get_mut(&endpoint) else {
            return;
        };
        let refused = bay.keep(connection, self.worker, now);
        drop(bays);
        // Closed only now: what that frees may be looked for in the bays.
        drop(refused);
    }

    /// Attends to what other workers ask for, and lets go of what has been idle for too long. It never ends.
    pub(crate) async fn attend(&self, mut asks: Asks, now: impl Fn() -> Time) {
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                asked = asks.0.recv() => match asked {
                    Some(endpoint) => self.give_up_idle(endpoint),
                    None => return,
                },
                _ = sweep.tick() => self.sweep(now()),
            }
        }
    }

    /// Gives an idle connection to whoever waits for it on another worker.
    fn give_up_idle(&self, endpoint: EndpointId) {
        let mut bays = self.bays.borrow_mut();
        let Some(bay) = bays.get_mut(&endpoint) else {
            return;
        };
        if let Some(waiting) = bay.asked(self.worker)
            && let Some(connection) = bay.shelf.take_oldest()
        {
            hand_over(connection, waiting);
        }
    }

    /// Closes what has been idle for too long, is too old, or was ended by its peer.
    pub(crate) fn sweep(&self, now: Time) {
        let mut gone = Vec::new();
        self.bays.borrow_mut().retain(|_, bay| {
            gone.append(&mut bay.expire(self.worker, now));
            !bay.shelf.is_empty() || now.since(bay.used) < BAY_KEPT
        });
        drop(gone);
    }

    /// Closes all idle connections: their descriptors are needed.
    pub(crate) fn clear(&self) {
        let bays = std::mem::take(&mut *self.bays.borrow_mut());
        for mut bay in bays.into_values() {
            while bay.shelf.take().is_some() {
                bay.stop_resting(self.worker);
            }
        }
    }

    /// Idle connections of this worker, to all endpoints.
    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.bays.borrow().values().map(|bay| bay.shelf.len()).sum()
    }
}

/// How often a worker looks through its idle connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long the part of an endpoint is kept that nobody uses.
const BAY_KEPT: Duration = Duration::from_secs(60);

impl<S: Pooled> Bay<S> {
    fn new(policy: &PoolPolicy) -> Self {
        Self {
            policy: PoolPolicy {
                max_sockets: None,
                ..*policy
            },
            book: None,
            shelf: Shelf::default(),
            used: Time::ZERO,
        }
    }

    /// Goes over to this policy, if it is another one than before.
    fn follow(&mut self, policy: &PoolPolicy, endpoint: EndpointId, shared: &Pools<S::Portable>) {
        if self.policy == *policy {
            return;
        }
        let bounds = policy.max_sockets.map(|sockets| Bounds {
            sockets,
            waiters: policy.max_waiters,
        });
        self.policy = *policy;
        let before = self.book.take();
        self.book = bounds.map(|bounds| before.unwrap_or_else(|| shared.book(endpoint, bounds)));
        if let (Some(book), Some(bounds)) = (&self.book, bounds) {
            book.rebound(bounds);
        }
    }

    /// Returns what is to be closed.
    fn keep(
        &mut self,
        connection: Connection<S>,
        worker: usize,
        now: Time,
    ) -> Option<Connection<S>> {
        // One that was opened before there was a limit is not counted, so it is not kept.
        let is_counted = connection.place.book.is_some() || self.book.is_none();
        let is_spent =
            connection.last_use <= now || !self.policy.carries_on_after(connection.exchanges);
        if is_spent || !is_counted {
            return Some(connection);
        }
        if let Some(waiting) = self.rest(worker) {
            hand_over(connection, waiting);
            return None;
        }
        let last_use = connection.last_use;
        let refused = self.shelf.put(connection, last_use, now).err();
        if refused.is_some() {
            self.stop_resting(worker);
        }
        refused
    }

    fn rest(&self, worker: usize) -> Option<oneshot::Sender<Grant<S::Portable>>> {
        self.book.as_ref().and_then(|book| book.rest(worker))
    }

    fn asked(&self, worker: usize) -> Option<oneshot::Sender<Grant<S::Portable>>> {
        self.book.as_ref().and_then(|book| book.asked(worker))
    }

    fn stop_resting(&self, worker: usize) {
        if let Some(book) = &self.book {
            book.stop_resting(worker);
        }
    }

    fn expire(&mut self, worker: usize, now: Time) -> Vec<Connection<S>> {
        let is_stale = |connection: &mut Connection<S>| connection.stream.is_stale();
        let gone = self.shelf.expire(&self.policy, now, is_stale);
        for _ in &gone {
            self.stop_resting(worker);
        }
        gone
    }
}

impl<S: Pooled> MayOpen<S> {
    /// It has been opened.
    pub(crate) fn opened(self, stream: S) -> Connection<S> {
        Connection {
            stream,
            last_use: self.last_use,
            exchanges: 0,
            place: self.place,
        }
    }
}

impl<S: Pooled> Connection<S> {
    fn is_fit(&mut self, freshness: Freshness, now: Time) -> bool {
        let is_proven = freshness == Freshness::Proven;
        self.last_use > now && !self.stream.is_stale() && !(is_proven && self.stream.has_ended())
    }

    /// Whether it has carried an exchange before this one: then its peer may have closed it just now.
    pub(crate) const fn is_used(&self) -> bool {
        self.exchanges > 0
    }
}

/// Sends a connection to whoever waits for it, or only its place where it cannot be carried over. If that one has left
/// meanwhile, the connection is closed and its place passes on.
fn hand_over<S: Pooled>(connection: Connection<S>, waiting: oneshot::Sender<Grant<S::Portable>>) {
    let Connection {
        stream,
        last_use,
        exchanges,
        place,
    } = connection;
    let carried = stream.pack().map(|connection| Carried {
        connection,
        last_use,
        exchanges,
    });
    drop(waiting.send(Grant { carried, place }));
}
