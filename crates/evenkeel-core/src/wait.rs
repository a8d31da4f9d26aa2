//! The wait queue of a cluster: sessions that found every usable endpoint full, first come, first served.
//!
//! It owns who waits and in which order, and the delivery of what they are granted. Whether a slot is free for one of
//! them is decided in `acquire.rs`, under this queue's lock; how long one waits is up to whoever holds the [`Ticket`].
//!
//! # No wake-up is lost
//!
//! A lease ends without any lock, so this is Dekker's problem: one side frees a slot and then looks for waiters, the
//! other side must announce itself and then look for a slot. [`WaitQueue::announce`] therefore counts the newcomer in
//! before it has looked, with a fence between the two; `Endpoint::release` has the other half. Whichever comes second
//! sees the other: either the newcomer finds the slot, or the finishing lease finds the newcomer (and then waits for the
//! line's lock, which the newcomer holds until it stands in the line).
//!
//! # Nobody overtakes
//!
//! A session takes the path without a lock only while nobody waits. Otherwise it goes through the line, where all who
//! came before it are served first. (A session that has seen the queue empty a moment before another one joined it
//! may still take the next slot: it came first.)
//!
//! # Delivery
//!
//! Slots are assigned under the lock, and delivered after it, by one thread at a time: so grants arrive in the order of
//! the queue, and a waiter that drops its lease inside [`Waiter::grant`] does not recurse. The thread that finds another
//! one delivering leaves its grants to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};

use crate::acquire::{Cluster, Request};
use crate::fault::{self, Fault};
use crate::lease::Lease;
use crate::tried::Tried;
use crate::units::HashKey;

/// Someone who can be handed a freed slot, from any thread. Called without locks held; must not block or panic.
pub trait Waiter: Send + Sync {
    /// `token` is the one it waited by. A waiter that has left meanwhile just drops the lease: the slot passes on.
    ///
    /// It may be called before `acquire` has returned the ticket to another thread's session, never for the session
    /// whose `acquire` is running on this thread.
    fn grant(&self, token: u64, lease: Lease);
}

/// A place in the wait queue. Dropping it leaves the queue.
///
/// A slot may be on its way to the waiter at that very moment; then it still arrives, and is to be dropped.
#[must_use = "a ticket that is dropped leaves the queue"]
pub struct Ticket {
    cluster: Arc<Cluster>,
    place: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !fault::injected(Fault::LeaverStays) {
            self.cluster.queue().leave(self.place);
        }
    }
}

impl Ticket {
    pub(crate) const fn new(cluster: Arc<Cluster>, place: u64) -> Self {
        Self { cluster, place }
    }
}

/// The queue of one cluster.
pub(crate) struct WaitQueue {
    /// How many stand in the line, and one more while somebody is about to join it. Written under the line's lock.
    waiting: Arc<AtomicUsize>,
    line: Mutex<Line>,
}

/// What the queue's lock guards.
pub(crate) struct Line {
    /// In the order of their places.
    waiting: VecDeque<Waiting>,
    /// Assigned and not delivered yet, in the order of assignment. Bounded by the slots of the cluster's limits.
    granted: VecDeque<Granted>,
    delivering: bool,
    next_place: u64,
    /// For the choices made on behalf of waiters, whose own workers' sources are elsewhere.
    pub(crate) rng: Rng,
}

/// A session in the line.
pub(crate) struct Waiting {
    place: u64,
    waiter: Arc<dyn Waiter>,
    token: u64,
    pub(crate) key: Option<HashKey>,
    pub(crate) tried: Tried,
}

struct Granted {
    waiter: Arc<dyn Waiter>,
    token: u64,
    lease: Lease,
}

impl WaitQueue {
    pub(crate) fn new(waiting: Arc<AtomicUsize>, seed: u64) -> Self {
        let line = Line {
            waiting: VecDeque::new(),
            granted: VecDeque::new(),
            delivering: false,
            next_place: 0,
            rng: Rng::with_seed(seed),
        };
        Self {
            waiting,
            line: Mutex::new(line),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Locks the line for someone who is about to look for a slot and may join. See the module's documentation.
    pub(crate) fn announce(&self) -> LockedLine<'_> {
        let line = self.line.lock();
        self.waiting.store(line.waiting.len() + 1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        LockedLine { queue: self, line }
    }

    /// Locks the line to serve those who stand in it.
    pub(crate) fn lock(&self) -> LockedLine<'_> {
        LockedLine {
            queue: self,
            line: self.line.lock(),
        }
    }

    /// Hands out what has been assigned, unless another thread is at it.
    pub(crate) fn deliver(&self) {
        while let Some(Granted {
            waiter,
            token,
            lease,
        }) = self.begin_delivery()
        {
            let _end = EndDelivery(self);
            waiter.grant(token, lease);
        }
    }

    fn begin_delivery(&self) -> Option<Granted> {
        let mut line = self.line.lock();
        if line.delivering {
            return None;
        }
        let granted = line.granted.pop_front()?;
        line.delivering = true;
        Some(granted)
    }

    fn leave(&self, place: u64) {
        let mut locked = self.lock();
        let left = locked.line.remove_place(place);
        drop(locked);
        // The waiter may be the last to know its worker: whatever that drops is dropped without the lock.
        drop(left);
    }
}

/// Ends a delivery even if the waiter panics.
struct EndDelivery<'a>(&'a WaitQueue);

impl Drop for EndDelivery<'_> {
    fn drop(&mut self) {
        self.0.line.lock().delivering = false;
    }
}

/// The line while its lock is held; publishes its length when it lets go.
pub(crate) struct LockedLine<'a> {
    queue: &'a WaitQueue,
    pub(crate) line: MutexGuard<'a, Line>,
}

impl Drop for LockedLine<'_> {
    fn drop(&mut self) {
        self.queue
            .waiting
            .store(self.line.waiting.len(), Ordering::SeqCst);
    }
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The one who is asked `index`-th, and the random source for it.
    pub(crate) fn nth(&mut self, index: usize) -> Option<(&Waiting, &mut Rng)> {
        let index = if fault::injected(Fault::LastInFirstOut) {
            self.waiting.len().checked_sub(index + 1)?
        } else {
            index
        };
        Some((self.waiting.get(index)?, &mut self.rng))
    }

    /// Adds a session at the end and returns its place.
    pub(crate) fn join(
        &mut self,
        waiter: &Arc<dyn Waiter>,
        token: u64,
        request: &Request<'_>,
    ) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.waiting.push_back(Waiting {
            place,
            waiter: Arc::clone(waiter),
            token,
            key: request.key,
            tried: request.tried.clone(),
        });
        place
    }

    /// Gives `lease` to the one at `place`, to be delivered.
    pub(crate) fn grant(&mut self, place: u64, lease: Lease) {
        if let Some(Waiting { waiter, token, .. }) = self.remove_place(place) {
            self.granted.push_back(Granted {
                waiter,
                token,
                lease,
            });
        }
    }

    fn remove_place(&mut self, place: u64) -> Option<Waiting> {
        let index = self
            .waiting
            .binary_search_by_key(&place, |waiting| waiting.place)
            .ok()?;
        self.waiting.remove(index)
    }
}

impl Waiting {
    pub(crate) const fn place(&self) -> u64 {
        self.place
    }
}
