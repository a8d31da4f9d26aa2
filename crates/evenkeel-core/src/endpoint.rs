//! One endpoint's identity and counts, shared by the snapshots that list it and the leases that use it.
//!
//! It outlives snapshots: an endpoint that a reload has removed lives on until its last lease ends. Its counts are
//! atomics of its own, so that algorithms without a common order need no lock; those that each lease writes are kept
//! apart by thread (`stripe.rs`).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::acquire::Cluster;
use crate::counts::Seat;
use crate::fault::{self, Fault};
use crate::lease::Failure;
use crate::stripe::{Stripe, Tally};
use crate::units::{Address, EndpointId, Time};

/// See the module's documentation.
pub(crate) struct Endpoint {
    seat: Seat,
    tallies: [Tally; Stripe::COUNT],
    /// Whether a success would change its condition. Spares every success on a healthy endpoint the roster's lock.
    unsettled: AtomicBool,
    /// Where the present snapshot lists it; written and read under the roster's lock.
    position: AtomicU32,
    failures: [AtomicU64; Failure::ALL.len()],
    abandoned: AtomicU64,
    ejections: AtomicU64,
    id: EndpointId,
    name: Arc<str>,
    address: Address,
    home: Home,
}

/// The way back from an endpoint to its cluster.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) cluster: Weak<Cluster>,
    /// The length of the cluster's wait queue.
    pub(crate) waiting: Arc<AtomicUsize>,
}

/// What an endpoint has done since process start.
pub(crate) struct Totals {
    pub(crate) leases: u64,
    pub(crate) established: u64,
    pub(crate) losses: Losses,
}

/// Leases that came to nothing, and what followed, since process start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Failed before the first answer byte, in the order of [`Failure::ALL`].
    pub failed: [u64; Failure::ALL.len()],
    /// Ended before the first answer byte by the client, the operator or this machine.
    pub abandoned: u64,
    /// How often the endpoint was ejected.
    pub ejections: u64,
}

impl Losses {
    /// Failures of all kinds.
    pub fn failures(&self) -> u64 {
        self.failed.iter().sum()
    }
}

impl Endpoint {
    pub(crate) fn new(name: Arc<str>, address: Address, seat: Seat, home: Home) -> Self {
        Self {
            seat,
            tallies: Default::default(),
            unsettled: AtomicBool::new(false),
            position: AtomicU32::new(DETACHED),
            failures: [const { AtomicU64::new(0) }; Failure::ALL.len()],
            abandoned: AtomicU64::new(0),
            ejections: AtomicU64::new(0),
            id: EndpointId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            name,
            address,
            home,
        }
    }

    pub(crate) const fn id(&self) -> EndpointId {
        self.id
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) const fn seat(&self) -> &Seat {
        &self.seat
    }

    #[inline]
    fn tally(&self, stripe: Stripe) -> &Tally {
        &self.tallies[stripe.index()]
    }

    /// The count of leases that are not counted by stripe.
    #[inline]
    fn count(&self) -> &AtomicU32 {
        self.seat.block.count(self.seat.index)
    }

    /// While stripes are in use (without limits), these are looked at one after the other: no exact moment.
    pub(crate) fn in_flight(&self) -> u32 {
        let gathered = self.count().load(Ordering::Relaxed);
        self.tallies
            .iter()
            .fold(gathered, |sum, tally| sum.wrapping_add(tally.held()))
    }

    /// From here on all leases are counted in one place, exactly: for limits, and for balancers that compare loads. An
    /// endpoint stays like that. Called under the roster's lock, before a snapshot that needs it is to be seen.
    pub(crate) fn gather(&self) {
        for tally in &self.tallies {
            self.count().fetch_add(tally.gather(), Ordering::SeqCst);
        }
    }

    /// Takes a slot unless `limit` are taken. Exact over all threads: the count never passes the limit, not for a moment.
    #[inline]
    pub(crate) fn reserve(&self, stripe: Stripe, limit: u32) -> bool {
        let tally = self.tally(stripe);
        let taken = if limit == NO_LIMIT {
            if !tally.hold() {
                self.count().fetch_add(1, Ordering::AcqRel);
            }
            true
        } else {
            self.reserve_below(limit)
        };
        if taken {
            tally.count_lease();
        }
        taken
    }

    #[inline]
    fn reserve_below(&self, limit: u32) -> bool {
        let held = self
            .count()
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |held| {
                (held < limit).then_some(held + 1)
            });
        held.is_ok()
    }

    /// Gives a slot back, and hands it to whoever waits.
    ///
    /// The order matters: first the slot is free, then the queue is looked at, both sequentially consistent. A session
    /// that joins the queue does the reverse (`wait.rs`: first it is in the queue, then it looks for a free slot). So
    /// at least one of the two sees the other, and no slot is free while somebody who could use it sleeps.
    #[inline]
    pub(crate) fn release(&self, stripe: Stripe, now: Option<Time>) {
        if !fault::injected(Fault::SlotLeaks) && !self.tally(stripe).let_go() {
            self.count().fetch_sub(1, Ordering::SeqCst);
        }
        if self.home.waiting.load(Ordering::SeqCst) > 0 && !fault::injected(Fault::WakeUpLost) {
            self.wake_waiters(now);
        }
    }

    #[cold]
    fn wake_waiters(&self, now: Option<Time>) {
        if let Some(cluster) = self.home.cluster.upgrade() {
            cluster.serve_waiters(now);
        }
    }

    /// `None` once the cluster is gone: leases may outlive it.
    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.home.cluster.upgrade()
    }

    pub(crate) fn count_established(&self, stripe: Stripe) {
        self.tally(stripe).count_established();
    }

    pub(crate) fn count_failure(&self, failure: Failure) {
        self.failures[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_ejection(&self) {
        self.ejections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            leases: self.tallies.iter().map(Tally::leases).sum(),
            established: self.tallies.iter().map(Tally::established).sum(),
            losses: Losses {
                failed: self.failures.each_ref().map(load),
                abandoned: load(&self.abandoned),
                ejections: load(&self.ejections),
            },
        }
    }

    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_settled(&self, settled: bool) {
        self.unsettled.store(!settled, Ordering::Relaxed);
    }

    /// `None` for an endpoint that a reload has removed.
    pub(crate) fn position(&self) -> Option<usize> {
        match self.position.load(Ordering::Relaxed) {
            DETACHED => None,
            position => usize::try_from(position).ok(),
        }
    }

    pub(crate) fn place_at(&self, position: usize) {
        let position = u32::try_from(position).unwrap_or(DETACHED);
        self.position.store(position, Ordering::Relaxed);
    }

    pub(crate) fn detach(&self) {
        self.position.store(DETACHED, Ordering::Relaxed);
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// As a limit: none.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// As a position: in no present snapshot.
const DETACHED: u32 = u32::MAX;

/// Identities are unique in the process, not only in a cluster: a session that goes on to another cluster takes its
/// list of tried endpoints along. Nothing is ever decided by the number itself.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
