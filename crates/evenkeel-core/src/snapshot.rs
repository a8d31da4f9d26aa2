//! What the balancers see: an immutable list of endpoints, and beside it what each is worth at this moment.
//!
//! A [`Snapshot`] is swapped whole by a reload. The shares in it are derived from the endpoints' conditions by the
//! roster, which alone writes them; balancers read them without a lock.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::balance::Balancer;
use crate::cluster::{ClusterSpec, EndpointSpec};
use crate::counts::Counts;
use crate::endpoint::{Endpoint, NO_LIMIT};
use crate::fault::{self, Fault};
use crate::overrides::{EndpointOverrides, Service};
use crate::stripe::{Handle, Stripe};
use crate::tried::Tried;
use crate::units::{EndpointId, HashKey, Time};

/// A cluster as one reload left it.
pub(crate) struct Snapshot {
    /// What is in force: as configured, with the operator's overrides in it.
    pub(crate) spec: ClusterSpec,
    /// In the order of the specification, as everything here that is indexed by position.
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    /// What the operator has set.
    pub(crate) overrides: Vec<EndpointOverrides>,
    pub(crate) balancer: Box<dyn Balancer>,
    /// By stripe, and then by position.
    handles: Vec<Arc<Handle>>,
    ids: Vec<EndpointId>,
    counts: Counts,
    /// The most leases at one time, or [`NO_LIMIT`].
    limits: Vec<u32>,
    is_limited: bool,
    /// Weight times percent, after what effective weight says; 0 is not preferred.
    shares: Vec<AtomicU32>,
    /// The same by configured weight: whoever may be used at all has one, effective weight or not.
    fallback_shares: Vec<AtomicU32>,
    is_any_usable: AtomicBool,
    /// When the first trial of all is due, in microseconds.
    next_trial: AtomicU64,
}

impl Snapshot {
    /// With all shares 0: the roster fills them in.
    pub(crate) fn new(
        spec: ClusterSpec,
        overrides: Vec<EndpointOverrides>,
        endpoints: Vec<Arc<Endpoint>>,
        balancer: Box<dyn Balancer>,
    ) -> Self {
        let limits: Vec<u32> = spec.endpoints.iter().map(limit_of).collect();
        let is_limited = limits.iter().any(|&limit| limit != NO_LIMIT);
        if is_limited || balancer.compares_loads() {
            endpoints.iter().for_each(|endpoint| endpoint.gather());
        }
        Self {
            handles: handles(&endpoints),
            ids: endpoints.iter().map(|endpoint| endpoint.id()).collect(),
            counts: Counts::of(endpoints.iter().map(|endpoint| endpoint.seat())),
            is_limited,
            shares: limits.iter().map(|_| AtomicU32::new(0)).collect(),
            fallback_shares: limits.iter().map(|_| AtomicU32::new(0)).collect(),
            is_any_usable: AtomicBool::new(false),
            next_trial: AtomicU64::new(Time::NEVER.as_micros()),
            limits,
            spec,
            endpoints,
            overrides,
            balancer,
        }
    }

    pub(crate) fn position_of(&self, id: EndpointId) -> Option<usize> {
        self.ids.iter().position(|&other| other == id)
    }

    /// Whether the operator lets an endpoint work.
    pub(crate) fn service(&self, position: usize) -> Service {
        self.overrides[position].service_over(&self.spec.endpoints[position])
    }

    pub(crate) const fn len(&self) -> usize {
        self.endpoints.len()
    }

    #[inline]
    pub(crate) fn handle(&self, stripe: Stripe, position: usize) -> &Arc<Handle> {
        &self.handles[stripe.index() * self.len() + position]
    }

    #[inline]
    pub(crate) fn share(&self, position: usize) -> u32 {
        self.shares[position].load(Ordering::Relaxed)
    }

    /// Whether an endpoint may be used, full or not, preferred or not.
    pub(crate) fn is_usable(&self, position: usize) -> bool {
        self.fallback_shares[position].load(Ordering::Relaxed) > 0
    }

    pub(crate) fn limit(&self, position: usize) -> u32 {
        self.limits[position]
    }

    /// Whether any endpoint may be used, full or not.
    pub(crate) fn is_any_usable(&self) -> bool {
        self.is_any_usable.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_trial_due(&self, now: Time) -> bool {
        self.next_trial.load(Ordering::Relaxed) <= now.as_micros()
    }

    pub(crate) fn set_shares(
        &self,
        position: usize,
        Shares {
            preferred,
            fallback,
        }: Shares,
    ) {
        self.shares[position].store(preferred, Ordering::Relaxed);
        self.fallback_shares[position].store(fallback, Ordering::Relaxed);
    }

    pub(crate) fn set_any_usable(&self, usable: bool) {
        self.is_any_usable.store(usable, Ordering::Relaxed);
    }

    pub(crate) fn set_next_trial(&self, next: Time) {
        self.next_trial.store(next.as_micros(), Ordering::Relaxed);
    }
}

/// What an endpoint is worth at this moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    /// By effective weight.
    pub(crate) preferred: u32,
    /// By configured weight.
    pub(crate) fallback: u32,
}

fn handles(endpoints: &[Arc<Endpoint>]) -> Vec<Arc<Handle>> {
    let handle = |(stripe, endpoint)| {
        Arc::new(Handle {
            endpoint: Arc::clone(endpoint),
            stripe,
        })
    };
    let of_stripe = |stripe| endpoints.iter().map(move |endpoint| (stripe, endpoint));
    Stripe::all().flat_map(of_stripe).map(handle).collect()
}

fn limit_of(spec: &EndpointSpec) -> u32 {
    match spec.max_connections {
        Some(max) if !fault::injected(Fault::LimitIgnored) => max.get(),
        _ => NO_LIMIT,
    }
}

/// A snapshot as one session sees it.
///
/// *Usable* is an endpoint with a fallback share, full or not: a session waits for a full one rather than use a backup
/// or one that it has tried. *Open* is one with a share in this field that this session may be given now. A session
/// looks at the field of those that are preferred and, if none is open there, at the fallback: effective weight is a
/// preference, never availability.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Where this thread counts.
    stripe: Stripe,
    /// Of the snapshot: those that count in this field.
    shares: &'a [AtomicU32],
    pub(crate) key: Option<HashKey>,
    tried: &'a Tried,
    /// Whether a usable endpoint is left that this session has not tried.
    avoids_tried: bool,
    /// Whether a share alone does not make an endpoint open.
    is_picky: bool,
}

impl<'a> Field<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, key: Option<HashKey>, tried: &'a Tried) -> Self {
        let avoids_tried = !tried.is_empty()
            && (0..snapshot.len())
                .any(|i| snapshot.is_usable(i) && !tried.contains(snapshot.ids[i]));
        Self {
            snapshot,
            stripe: Stripe::of_this_thread(),
            shares: &snapshot.shares,
            key,
            tried,
            avoids_tried,
            is_picky: snapshot.is_limited || avoids_tried,
        }
    }

    /// The same for this session when none is open: every usable endpoint, by configured weight.
    pub(crate) fn fallback(&self) -> Self {
        Self {
            shares: &self.snapshot.fallback_shares,
            ..*self
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.snapshot.len()
    }

    #[inline]
    pub(crate) fn share(&self, position: usize) -> u32 {
        self.shares[position].load(Ordering::Relaxed)
    }

    /// The share of an open endpoint; 0 if it is not open.
    #[inline]
    pub(crate) fn open_share(&self, position: usize) -> u32 {
        let share = self.share(position);
        if share == 0 || !self.is_picky {
            share
        } else if !self.has_room(position) || self.is_avoided(position) {
            0
        } else {
            share
        }
    }

    /// Whether some endpoint with a share may not be open.
    pub(crate) const fn is_picky(&self) -> bool {
        self.is_picky
    }

    /// Shows every endpoint with a share, open or not: position, share.
    #[inline]
    pub(crate) fn visit_shares(&self, mut visit: impl FnMut(usize, u32)) {
        for (position, share) in self.shares.iter().enumerate() {
            let share = share.load(Ordering::Relaxed);
            if share > 0 {
                visit(position, share);
            }
        }
    }

    /// Shows every open endpoint: position, in-flight count, share. Faster than asking for one after the other.
    #[inline]
    pub(crate) fn visit_open(&self, mut visit: impl FnMut(usize, u32, u32)) {
        self.visit_loads(|position, in_flight, share| {
            if self.is_picked(position, in_flight) {
                visit(position, in_flight, share);
            }
        });
    }

    /// The same where all endpoints with a share are open, because the field is not picky.
    #[inline]
    pub(crate) fn visit_loads(&self, mut visit: impl FnMut(usize, u32, u32)) {
        let counts = &self.snapshot.counts;
        counts.visit(self.shares, |position, in_flight, share| {
            if share > 0 {
                visit(position, in_flight, share);
            }
            ControlFlow::Continue(())
        });
    }

    /// The same, until told to stop.
    #[inline]
    pub(crate) fn visit_loads_until(&self, visit: impl FnMut(usize, u32, u32) -> ControlFlow<()>) {
        self.snapshot.counts.visit(self.shares, visit);
    }

    #[inline]
    fn is_picked(&self, position: usize, in_flight: u32) -> bool {
        in_flight < self.snapshot.limits[position] && !self.is_avoided(position)
    }

    #[inline]
    pub(crate) fn is_open(&self, position: usize) -> bool {
        self.open_share(position) > 0
    }

    pub(crate) fn is_any_open(&self) -> bool {
        (0..self.len()).any(|position| self.is_open(position))
    }

    #[inline]
    pub(crate) fn in_flight(&self, position: usize) -> u32 {
        self.snapshot.counts.get(position)
    }

    #[inline]
    pub(crate) fn has_room(&self, position: usize) -> bool {
        let limit = self.snapshot.limit(position);
        limit == NO_LIMIT || self.in_flight(position) < limit
    }

    pub(crate) fn is_tried(&self, position: usize) -> bool {
        self.tried.contains(self.snapshot.ids[position])
    }

    /// Whether it is passed over because another one has not been tried yet.
    pub(crate) fn is_avoided(&self, position: usize) -> bool {
        self.avoids_tried && self.is_tried(position)
    }

    /// What a lease of this thread on the endpoint holds.
    #[inline]
    pub(crate) fn handle(&self, position: usize) -> &'a Arc<Handle> {
        self.snapshot.handle(self.stripe, position)
    }

    /// Takes a slot at `position`; `false` if another thread took the last one.
    #[inline]
    pub(crate) fn reserve(&self, position: usize) -> bool {
        let handle = self.handle(position);
        handle
            .endpoint
            .reserve(self.stripe, self.snapshot.limit(position))
    }
}
