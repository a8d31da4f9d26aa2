//! Hash of a key: the same key goes to the same endpoint for as long as that can be used.
//!
//! `source-hash` is the same thing; who makes the key knows what it is of. Configured weights alone decide whose a key
//! is. An endpoint whose effective weight is above 0 has all of its keys, so that each comes home by its own traffic; at
//! 0 they go elsewhere, but for trials. One that warms up is given a part of them that only grows, so that each key
//! moves back once. A key whose owner is not open goes to the substitute: the best bid among the open ones, which is
//! where it would go if the owner left.

use std::sync::Arc;

use fastrand::Rng;

use super::slots::{Slot, scatter};
use super::{Balancer, SlotTable, only_open};
use crate::cluster::{ClusterSpec, HashPolicy};
use crate::condition::SHARE_SCALE;
use crate::snapshot::Field;
use crate::units::HashKey;

/// See the module's documentation.
pub(crate) struct Hash {
    slots: Arc<SlotTable>,
    policy: HashPolicy,
}

impl Hash {
    pub(crate) fn new(
        spec: &ClusterSpec,
        policy: HashPolicy,
        before: Option<&Arc<SlotTable>>,
    ) -> Self {
        Self {
            slots: SlotTable::build(spec, before),
            policy,
        }
    }

    /// The owner of the key's slot if it is to have it, otherwise the substitute.
    #[inline]
    fn choose(&self, field: &Field<'_>, key: HashKey) -> Option<usize> {
        let slot = Slot::of(key);
        let bound = self.bound(field);
        let owner = self.slots.owner(slot);
        owner
            .filter(|&owner| is_wanted(field, key, bound, owner))
            .or_else(|| self.substitute(field, key, bound))
    }

    /// Best among those who want this key; then among those under the bound; then among all who are open.
    #[cold]
    fn substitute(&self, field: &Field<'_>, key: HashKey, bound: Option<Bound>) -> Option<usize> {
        let slot = Slot::of(key);
        let best = |is_candidate: &dyn Fn(usize) -> bool| self.slots.best(slot, is_candidate);
        best(&|position| is_wanted(field, key, bound, position))
            .or_else(|| best(&|position| is_under(field, bound, position)))
            .or_else(|| self.best_open(field, key))
    }

    fn best_open(&self, field: &Field<'_>, key: HashKey) -> Option<usize> {
        let is_open = |position| field.is_open(position);
        self.slots.best(Slot::of(key), is_open)
    }

    fn bound(&self, field: &Field<'_>) -> Option<Bound> {
        let percent = self.policy.bounded_load_percent?;
        Some(Bound::of(field, percent))
    }
}

impl Balancer for Hash {
    fn pick(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        // A session without a key has no place: any will do.
        let key = field.key.unwrap_or_else(|| HashKey(rng.u64(..)));
        loop {
            let chosen = self.choose(field, key)?;
            if field.reserve(chosen) {
                return Some(chosen);
            }
        }
    }

    fn preview(&self, field: &Field<'_>) -> Option<usize> {
        self.choose(field, field.key?)
    }

    /// No part, no bound: whoever is open and has the best bid.
    fn pick_fallback(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        let key = field.key.unwrap_or_else(|| HashKey(rng.u64(..)));
        loop {
            let chosen = self.best_open(field, key)?;
            if field.reserve(chosen) {
                return Some(chosen);
            }
        }
    }

    fn preview_fallback(&self, field: &Field<'_>) -> Option<usize> {
        field
            .key
            .map_or_else(|| only_open(field), |key| self.best_open(field, key))
    }

    fn fallback_reason(&self, field: &Field<'_>, position: usize) -> String {
        self.reason(field, position)
    }

    fn is_gradual(&self) -> bool {
        false
    }

    fn compares_loads(&self) -> bool {
        self.policy.bounded_load_percent.is_some()
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        let Some(key) = field.key else {
            return "there is no key: one of these at random".into();
        };
        if self.slots.owner(Slot::of(key)) == Some(position) {
            "owns the key, but takes only a part of its keys while it warms up".into()
        } else {
            "owns other keys".into()
        }
    }

    /// Only with a key that would be its own if it were up: another one's would have to move for it.
    fn may_try(&self, field: &Field<'_>, position: usize) -> bool {
        let is_candidate = |other| other == position || field.share(other) > 0;
        field
            .key
            .is_none_or(|key| self.slots.best(Slot::of(key), is_candidate) == Some(position))
    }

    fn is_over_bound(&self, field: &Field<'_>, position: usize) -> bool {
        !is_under(field, self.bound(field), position)
    }

    fn slots(&self) -> Option<&Arc<SlotTable>> {
        Some(&self.slots)
    }
}

#[inline]
fn is_wanted(field: &Field<'_>, key: HashKey, bound: Option<Bound>, position: usize) -> bool {
    let share = field.open_share(position);
    if share == 0 {
        return false;
    }
    let full_share = field.snapshot.spec.endpoints[position].weight.get() * SHARE_SCALE;
    let wants = share >= full_share || part_of(key, full_share) < share;
    wants && bound.is_none_or(|bound| bound.admits(field, position))
}

fn is_under(field: &Field<'_>, bound: Option<Bound>, position: usize) -> bool {
    field.is_open(position) && bound.is_none_or(|bound| bound.admits(field, position))
}

/// Where in 0..`whole` a key stands, whatever its slot.
fn part_of(key: HashKey, whole: u32) -> u32 {
    let low = scatter(key.0) & u64::from(u32::MAX);
    u32::try_from((low * u64::from(whole)) >> u32::BITS).unwrap_or(u32::MAX)
}

/// Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam, 2016).
#[derive(Clone, Copy)]
struct Bound {
    percent: u128,
    /// Leases on all endpoints with a share, the coming one included.
    leases: u128,
    /// The sum of these shares.
    shares: u128,
}

impl Bound {
    fn of(field: &Field<'_>, percent: u32) -> Self {
        let usable = (0..field.len()).filter(|&position| field.share(position) > 0);
        let (leases, shares) = usable.fold((1, 0), |(leases, shares), position| {
            let in_flight = u128::from(field.in_flight(position));
            (
                leases + in_flight,
                shares + u128::from(field.share(position)),
            )
        });
        Self {
            percent: u128::from(percent.max(100)),
            leases,
            shares,
        }
    }

    /// Whether it holds less than ⌈percent × leases × share / shares⌉.
    fn admits(self, field: &Field<'_>, position: usize) -> bool {
        let share = u128::from(field.share(position));
        let most = (self.percent * self.leases * share).div_ceil((100 * self.shares).max(1));
        u128::from(field.in_flight(position)) < most
    }
}
