//! The critical section: choose an endpoint and count it, or wait, or refuse.
//!
//! No IO and no allocation in it (only the wait queue's storage may grow, to the largest length it has had). While
//! nobody waits, the only lock is the one that an algorithm with a common order needs. How the choice is made is the
//! balancers' business, what an endpoint is worth the roster's, who is next the wait queue's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use fastrand::Rng;
use parking_lot::Mutex;

use crate::endpoint::{Endpoint, Home};
use crate::fault::{self, Fault};
use crate::lease::{Failure, Lease, LeaseKind};
use crate::overrides::Plan;
use crate::roster::Roster;
use crate::snapshot::{Field, Snapshot};
use crate::tried::Tried;
use crate::units::{HashKey, Time};
use crate::wait::{Line, Ticket, WaitQueue, Waiter};

/// A cluster at run time, shared by all workers.
pub struct Cluster {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) queue: WaitQueue,
    pub(crate) roster: Mutex<Roster>,
    /// Held by a reload or an override from its beginning to its end, so that the roster's lock is held only for the swap.
    pub(crate) plan: Mutex<Plan>,
    /// The latest time that was told; for leases that are dropped, which are told none.
    pub(crate) latest: AtomicU64,
    pub(crate) home: Home,
    pub(crate) phase: u64,
}

/// What a balancer may know of a session: never the request itself.
pub struct Request<'a> {
    /// The key for hash balancers (for `source-hash`, of the client's address).
    pub key: Option<HashKey>,
    /// Endpoints this session has tried already; used again only when no other is usable. (A full one is usable: the
    /// session waits for it. So is one at effective weight 0.)
    pub tried: &'a Tried,
    /// Who waits when every usable endpoint is full, and the token to wake it by; `None` refuses instead of waiting.
    pub waiter: Option<(&'a Arc<dyn Waiter>, u64)>,
}

/// What came of a request for an endpoint.
pub enum Acquired {
    /// An endpoint, counted.
    Lease(Lease),
    /// Every usable endpoint is full: the waiter is told when it is its turn.
    Wait(Ticket),
    /// Neither.
    Refused(Refusal),
}

/// Why a session gets no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// None is usable.
    NoEndpoint,
    /// All are full, and so is the wait queue.
    QueueFull,
    /// All are full, and the session does not want to wait.
    Full,
}

/// What the balancers say, before anybody waits.
enum Choice {
    Leased(Lease),
    AllFull,
    NoneUsable,
}

impl Cluster {
    /// Chooses an endpoint for `request` and counts it, in one step.
    ///
    /// While others wait, they are served first. A session that waits keeps waiting when the last endpoint becomes
    /// unusable (one may return before its time is over); a new one is refused at once.
    pub fn acquire(self: &Arc<Self>, request: &Request<'_>, now: Time, rng: &mut Rng) -> Acquired {
        if self.queue.is_empty() {
            match self.choose(request.key, request.tried, now, rng) {
                Choice::Leased(lease) => return Acquired::Lease(lease),
                Choice::NoneUsable => return Acquired::Refused(Refusal::NoEndpoint),
                Choice::AllFull => {}
            }
        }
        self.acquire_in_line(request, now, rng)
    }

    #[cold]
    fn acquire_in_line(
        self: &Arc<Self>,
        request: &Request<'_>,
        now: Time,
        rng: &mut Rng,
    ) -> Acquired {
        let mut locked = self.queue.announce();
        // The work may be passing from primaries to backups at this moment: whoever sees neither looks again after it.
        drop(self.roster.lock());
        self.assign(&mut locked.line, now);
        let acquired = match self.choose(request.key, request.tried, now, rng) {
            Choice::Leased(lease) => Acquired::Lease(lease),
            Choice::NoneUsable => Acquired::Refused(Refusal::NoEndpoint),
            Choice::AllFull => self.join(&mut locked.line, request),
        };
        drop(locked);
        self.queue.deliver();
        acquired
    }

    fn join(self: &Arc<Self>, line: &mut Line, request: &Request<'_>) -> Acquired {
        let Some((waiter, token)) = request.waiter else {
            return Acquired::Refused(Refusal::Full);
        };
        if line.len() >= self.snapshot.load().spec.queue_max {
            return Acquired::Refused(Refusal::QueueFull);
        }
        let place = line.join(waiter, token, request);
        Acquired::Wait(Ticket::new(Arc::clone(self), place))
    }

    /// Serves those who wait, after something made room. `now` is unknown to a lease that was dropped.
    pub(crate) fn serve_waiters(&self, now: Option<Time>) {
        let now = now.unwrap_or_else(|| Time::from_micros(self.latest.load(Ordering::Relaxed)));
        let mut locked = self.queue.lock();
        self.assign(&mut locked.line, now);
        drop(locked);
        self.queue.deliver();
    }

    /// Gives every free slot to the first in the line who can use it.
    ///
    /// Those who have tried nothing can use any usable endpoint. So once one of them gets nothing, nobody behind gets
    /// anything, and the walk ends: it passes over no more than the retrying sessions at the head of the line.
    fn assign(&self, line: &mut Line, now: Time) {
        let mut index = 0;
        while let Some((waiting, rng)) = line.nth(index) {
            let place = waiting.place();
            match self.choose(waiting.key, &waiting.tried, now, rng) {
                Choice::Leased(lease) => line.grant(place, lease),
                Choice::AllFull | Choice::NoneUsable if waiting.tried.is_empty() => break,
                Choice::AllFull | Choice::NoneUsable => index += 1,
            }
        }
    }

    fn choose(&self, key: Option<HashKey>, tried: &Tried, now: Time, rng: &mut Rng) -> Choice {
        let snapshot = self.snapshot.load();
        let field = Field::new(&snapshot, key, tried);
        if let Some(position) = self.claim_trial(&field, now) {
            return lease(&field, position, LeaseKind::Trial);
        }
        match snapshot.balancer.pick(&field, rng) {
            Some(position) => lease(&field, position, LeaseKind::Ordinary),
            None => fall_back(&field, rng),
        }
    }

    /// Does not wait for the roster: another session can take the trial.
    fn claim_trial(&self, field: &Field<'_>, now: Time) -> Option<usize> {
        if !field.snapshot.is_trial_due(now) {
            return None;
        }
        let mut roster = self.roster.try_lock()?;
        let is_present = std::ptr::eq(Arc::as_ptr(&self.snapshot.load()), field.snapshot);
        is_present.then(|| roster.claim_trial(field, now)).flatten()
    }

    /// A lease reports a failure that counts.
    pub(crate) fn note_failure(
        &self,
        endpoint: &Endpoint,
        failure: Failure,
        kind: LeaseKind,
        now: Time,
    ) {
        self.note_time(now);
        let mut roster = self.roster.lock();
        if let Some(position) = endpoint.position() {
            let snapshot = self.snapshot.load();
            roster.failed(&snapshot, position, (failure, kind), now);
        }
    }

    /// A lease reports a success that changes something. It may make an endpoint usable, so waiters are served.
    pub(crate) fn note_success(&self, endpoint: &Endpoint, now: Time) {
        self.note_time(now);
        let mut roster = self.roster.lock();
        if let Some(position) = endpoint.position() {
            let snapshot = self.snapshot.load();
            roster.succeeded(&snapshot, position, now);
        }
        drop(roster);
        self.serve_if_waiting(now);
    }

    pub(crate) fn serve_if_waiting(&self, now: Time) {
        if !self.queue.is_empty() {
            self.serve_waiters(Some(now));
        }
    }

    pub(crate) fn note_time(&self, now: Time) {
        self.latest.fetch_max(now.as_micros(), Ordering::Relaxed);
    }

    pub(crate) const fn queue(&self) -> &WaitQueue {
        &self.queue
    }
}

/// For a session that no preferred endpoint has room for. An endpoint at effective weight 0 is better than to wait.
#[cold]
fn fall_back(field: &Field<'_>, rng: &mut Rng) -> Choice {
    let snapshot = field.snapshot;
    let is_kept_out =
        fault::injected(Fault::WeightKeepsOut) || fault::injected(Fault::WeightDecidesAvailability);
    let field = if is_kept_out {
        *field
    } else {
        field.fallback()
    };
    match snapshot.balancer.pick_fallback(&field, rng) {
        Some(position) => lease(&field, position, LeaseKind::Ordinary),
        None if snapshot.is_any_usable() => Choice::AllFull,
        None => Choice::NoneUsable,
    }
}

fn lease(field: &Field<'_>, position: usize, kind: LeaseKind) -> Choice {
    Choice::Leased(Lease::new(Arc::clone(field.handle(position)), kind))
}
