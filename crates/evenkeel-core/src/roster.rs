//! The conditions of a cluster's endpoints, and what follows from them for the shares that balancers go by.
//!
//! Behind one lock that no ordinary choice takes: only failures, recoveries, trials, the passing of time and reloads do.

use std::sync::Arc;

use crate::cluster::{ClusterSpec, EjectionPolicy, EndpointSpec};
use crate::condition::{Condition, Standing};
use crate::duty::{Duty, DutyPolicy, Outlook, Tier};
use crate::endpoint::Endpoint;
use crate::fault::{self, Fault};
use crate::health::{Health, HealthChange, ProbeResult};
use crate::kept::{KeptEndpoint, KeptStanding};
use crate::lease::{Failure, LeaseKind};
use crate::overrides::Service;
use crate::snapshot::{Field, Shares, Snapshot};
use crate::units::{Time, Weight};

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Roster {
    /// By position in the present snapshot.
    pub(crate) conditions: Vec<Condition>,
    /// Removed by a reload and not finished. As many as there are leases on them, at the most.
    pub(crate) removed: Vec<Member>,
    /// Who had the work last. Manual failback goes by it.
    pub(crate) duty: Duty,
}

/// An endpoint with everything the cluster knows of it, between two snapshots or after its last one.
pub(crate) struct Member {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) condition: Condition,
    pub(crate) spec: EndpointSpec,
    pub(crate) service: Service,
}

impl Roster {
    /// A failure that counts: effective weight, perhaps ejection.
    pub(crate) fn failed(
        &mut self,
        snapshot: &Snapshot,
        position: usize,
        (failure, kind): (Failure, LeaseKind),
        now: Time,
    ) {
        let Some(condition) = self.conditions.get_mut(position) else {
            return;
        };
        condition.failed(failure, kind, &snapshot.spec.trials, now);
        if let Some(policy) = &snapshot.spec.ejection
            && self.may_eject(snapshot, position, policy)
        {
            self.conditions[position].eject(policy, now);
            snapshot.endpoints[position].count_ejection();
        }
        self.refresh(snapshot, now);
    }

    /// A success: the first answer byte.
    pub(crate) fn succeeded(&mut self, snapshot: &Snapshot, position: usize, now: Time) {
        if let Some(condition) = self.conditions.get_mut(position) {
            condition.succeeded(snapshot.spec.endpoints[position].weight);
            self.refresh(snapshot, now);
        }
    }

    /// A probe ended; says so if that changes the judgement.
    pub(crate) fn probed(
        &mut self,
        snapshot: &Snapshot,
        position: usize,
        result: ProbeResult,
        now: Time,
    ) -> Option<HealthChange> {
        if snapshot.service(position) == Service::Disabled {
            return None;
        }
        let ClusterSpec {
            health, slow_start, ..
        } = &snapshot.spec;
        let weight = snapshot.spec.endpoints[position].weight;
        let condition = self.conditions.get_mut(position)?;
        let change = condition.probed(result, health.as_ref()?, weight, (*slow_start, now))?;
        self.refresh(snapshot, now);
        Some(change)
    }

    /// What another process knew of the endpoint at that address.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, kept: &KeptEndpoint, now: Time) {
        let mut endpoints = snapshot.spec.endpoints.iter();
        let found = endpoints.position(|e| e.name == kept.name && e.address == kept.address);
        if let Some(position) = found
            && snapshot.service(position) != Service::Disabled
        {
            let weight = snapshot.spec.endpoints[position].weight;
            let every = snapshot.spec.trials.every;
            let standing = self.restored(snapshot, kept.standing, now);
            self.conditions[position].restore(kept, standing, weight, (every, now));
        }
    }

    /// The policies may be others by now: what they would not have allowed has ended.
    fn restored(&self, snapshot: &Snapshot, kept: KeptStanding, now: Time) -> Standing {
        match (kept, &snapshot.spec.ejection) {
            (KeptStanding::Ejected { remaining }, Some(policy))
                if self.ejected() < policy.quota(snapshot.len()) =>
            {
                Standing::Ejected {
                    until: now.after(remaining.min(policy.max)),
                }
            }
            (KeptStanding::SlowStart { elapsed }, _) if elapsed < snapshot.spec.slow_start => {
                Standing::SlowStart {
                    since: now,
                    ahead: elapsed,
                }
            }
            _ => Standing::Up,
        }
    }

    /// Ends ejections, advances slow start, forgets removed endpoints that have finished.
    pub(crate) fn pass_time(&mut self, snapshot: &Snapshot, now: Time) {
        for condition in &mut self.conditions {
            condition.pass_time(snapshot.spec.slow_start, now);
        }
        self.removed
            .retain(|removed| removed.endpoint.in_flight() > 0);
        self.refresh(snapshot, now);
    }

    /// Takes a slot on an endpoint whose trial is due, if there is one that this session may be given.
    pub(crate) fn claim_trial(&mut self, field: &Field<'_>, now: Time) -> Option<usize> {
        let position = self.due_trial(field, now)?;
        if !field.reserve(position) {
            return None;
        }
        self.conditions[position].claim_trial(&field.snapshot.spec.trials, now);
        self.refresh(field.snapshot, now);
        Some(position)
    }

    /// The first endpoint whose trial is due and would go to this session.
    pub(crate) fn due_trial(&self, field: &Field<'_>, now: Time) -> Option<usize> {
        if fault::injected(Fault::NoTrials) || !field.snapshot.is_trial_due(now) {
            return None;
        }
        let tier = self.tier(field.snapshot);
        (0..field.len()).find(|&position| {
            self.is_on_trial(field.snapshot, tier, position)
                && self.conditions[position].fade().next_trial() <= now
                && field.has_room(position)
                && !field.is_tried(position)
                && field.snapshot.balancer.may_try(field, position)
        })
    }

    /// Works out every share anew. 4,096 endpoints take some microseconds, a few times a second unless much fails.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot, now: Time) {
        let tier = self.tier(snapshot);
        self.duty = tier.duty().unwrap_or(self.duty);
        self.retire(snapshot, tier);
        let all_floored = self.all_floored(snapshot, tier);
        let mut total = 0;
        let mut next_trial = Time::NEVER;
        for (position, condition) in self.conditions.iter().enumerate() {
            let weight = snapshot.spec.endpoints[position].weight;
            snapshot.endpoints[position].mark_settled(condition.is_settled(weight));
            let shares = self.shares(snapshot, (tier, all_floored), position, now);
            snapshot.set_shares(position, shares);
            total += i64::from(shares.preferred);
            if shares.preferred == 0 && self.is_member(snapshot, tier, position) {
                next_trial = next_trial.min(condition.fade().next_trial());
            }
        }
        snapshot.set_any_usable(total > 0);
        snapshot.set_next_trial(next_trial);
        if let Some(rotation) = snapshot.balancer.rotation() {
            rotation.lock().rescale(total);
        }
    }

    /// Takes the shares of those who do not work any more, before others get theirs: primaries and backups never have
    /// shares at the same moment. (Whoever finds nobody in between looks again: `Cluster::acquire_in_line`.)
    fn retire(&self, snapshot: &Snapshot, tier: Tier) {
        for position in 0..snapshot.len() {
            if !self.is_member(snapshot, tier, position) {
                snapshot.set_shares(position, Shares::default());
            }
        }
    }

    fn shares(
        &self,
        snapshot: &Snapshot,
        (tier, all_floored): (Tier, bool),
        position: usize,
        now: Time,
    ) -> Shares {
        if !self.is_member(snapshot, tier, position) {
            return Shares::default();
        }
        let configured = snapshot.spec.endpoints[position].weight.get();
        let preferred = if all_floored && !fault::injected(Fault::WeightDecidesAvailability) {
            configured
        } else {
            self.preferred_weight(snapshot, position)
        };
        let worth =
            |weight| self.conditions[position].share_of(weight, snapshot.spec.slow_start, now);
        Shares {
            preferred: worth(preferred),
            fallback: worth(configured),
        }
    }

    /// What effective weight makes of the configured one. Hashes take it as a yes or no: a part of the keys would come
    /// home only by the traffic of others.
    fn preferred_weight(&self, snapshot: &Snapshot, position: usize) -> u32 {
        let effective = self.conditions[position].fade().effective();
        let is_gradual = snapshot.balancer.is_gradual() || fault::injected(Fault::KeysFadeOneByOne);
        if effective == 0 || is_gradual {
            effective
        } else {
            snapshot.spec.endpoints[position].weight.get()
        }
    }

    fn tier(&self, snapshot: &Snapshot) -> Tier {
        let policy = DutyPolicy {
            failback: snapshot.spec.failback,
            when_none: snapshot.spec.when_none,
        };
        self.duty
            .decide(policy, |duty| self.outlook(snapshot, duty))
    }

    pub(crate) fn outlook(&self, snapshot: &Snapshot, duty: Duty) -> Outlook {
        let mut outlook = Outlook {
            unknown: match duty {
                Duty::Primaries => snapshot.spec.awaited.primaries,
                Duty::Backups => snapshot.spec.awaited.backups,
            },
            ..Outlook::default()
        };
        for (position, spec) in snapshot.spec.endpoints.iter().enumerate() {
            if Duty::of(spec) == duty && is_in_service(spec) {
                outlook.in_service = true;
                outlook.usable |= self.conditions[position].is_usable();
                outlook.unknown |= self.conditions[position].health() == Health::Unknown;
            }
        }
        outlook
    }

    fn is_member(&self, snapshot: &Snapshot, tier: Tier, position: usize) -> bool {
        let spec = &snapshot.spec.endpoints[position];
        match tier {
            Tier::Usable(duty) => Duty::of(spec) == duty && self.is_usable(spec, position),
            Tier::AllOf(duty) => Duty::of(spec) == duty && is_in_service(spec),
            Tier::Everyone => is_in_service(spec),
            Tier::Nobody => false,
        }
    }

    fn is_usable(&self, spec: &EndpointSpec, position: usize) -> bool {
        is_in_service(spec) && self.conditions[position].is_usable()
    }

    /// Whether effective weight has nothing to say, because every endpoint of the tier is at 0.
    fn all_floored(&self, snapshot: &Snapshot, tier: Tier) -> bool {
        (0..snapshot.len()).all(|position| {
            !self.is_member(snapshot, tier, position)
                || self.conditions[position].fade().is_floored()
        })
    }

    /// Whether it takes timed trials only, because another one is above effective weight 0.
    fn is_on_trial(&self, snapshot: &Snapshot, tier: Tier, position: usize) -> bool {
        snapshot.share(position) == 0 && self.is_member(snapshot, tier, position)
    }

    /// Never more than the policy's share of the cluster, and never the last usable endpoint.
    fn may_eject(&self, snapshot: &Snapshot, position: usize, policy: &EjectionPolicy) -> bool {
        self.conditions[position].wants_ejection(policy)
            && self.ejected() < policy.quota(snapshot.len())
            && (self.is_another_usable(snapshot, position)
                || fault::injected(Fault::LastOneEjected))
    }

    fn ejected(&self) -> usize {
        self.conditions
            .iter()
            .filter(|condition| condition.is_ejected())
            .count()
    }

    fn is_another_usable(&self, snapshot: &Snapshot, position: usize) -> bool {
        let mut endpoints = snapshot.spec.endpoints.iter().enumerate();
        endpoints.any(|(other, spec)| other != position && self.is_usable(spec, other))
    }
}

/// Whether the operator lets it take new work.
fn is_in_service(spec: &EndpointSpec) -> bool {
    (!spec.disabled || fault::injected(Fault::DisabledUsed)) && spec.weight > Weight::ZERO
}
