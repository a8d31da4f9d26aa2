//! What reaches a running cluster from outside its sessions: results of probes, the operator's word, what another process
//! kept.

use std::sync::Arc;

use crate::acquire::Cluster;
use crate::condition::Condition;
use crate::duty::Duty;
use crate::endpoint::Endpoint;
use crate::health::{HealthChange, ProbeResult};
use crate::kept::{KeptCluster, KeptEndpoint};
use crate::overrides::{Override, UnknownEndpoint};
use crate::units::{EndpointId, Time, Weight};

/// Why the primaries don't get the work back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailbackRefusal {
    /// They have it.
    OnDuty,
    /// None of them is usable.
    NoPrimaryUsable,
}

impl Cluster {
    /// A probe of an endpoint ended. Says so if that changes the judgement.
    ///
    /// Nothing happens where the cluster has no probes, the endpoint is disabled, or a reload has removed it meanwhile.
    pub fn probed(&self, id: EndpointId, result: ProbeResult, now: Time) -> Option<HealthChange> {
        self.note_time(now);
        let mut roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        let position = snapshot.position_of(id)?;
        let change = roster.probed(&snapshot, position, result, now);
        drop(roster);
        if change.is_some() {
            self.serve_if_waiting(now);
        }
        change
    }

    /// Sets an override on the endpoint of this name, or takes one back. It is in force when this returns.
    pub fn override_endpoint(
        &self,
        name: &str,
        what: Override,
        now: Time,
    ) -> Result<(), UnknownEndpoint> {
        let mut plan = self.plan.lock();
        plan.set(name, what)?;
        self.install(&plan, now);
        drop(plan);
        self.serve_if_waiting(now);
        Ok(())
    }

    /// Gives the work back to the primaries, where `failback` is manual and backups have it.
    pub fn fail_back(&self, now: Time) -> Result<(), FailbackRefusal> {
        self.note_time(now);
        let mut roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        if roster.duty == Duty::Primaries {
            return Err(FailbackRefusal::OnDuty);
        }
        if !roster.outlook(&snapshot, Duty::Primaries).usable {
            return Err(FailbackRefusal::NoPrimaryUsable);
        }
        roster.duty = Duty::Primaries;
        roster.refresh(&snapshot, now);
        drop(roster);
        self.serve_if_waiting(now);
        Ok(())
    }

    /// What a successor may want to know.
    pub fn export(&self, now: Time) -> KeptCluster {
        let plan = self.plan.lock();
        let roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        let listed = snapshot.endpoints.iter().zip(&roster.conditions);
        let kept = listed
            .zip(&snapshot.spec.endpoints)
            .map(|((endpoint, condition), spec)| {
                kept_endpoint(endpoint, condition, spec.weight, now)
            });
        KeptCluster {
            name: Arc::clone(&snapshot.spec.name),
            overrides: plan
                .overrides()
                .map(|(name, overrides)| (Arc::clone(name), *overrides))
                .collect(),
            duty: roster.duty,
            endpoints: kept.collect(),
        }
    }

    /// Takes over what another process kept, right after the start. What does not fit the configuration is left out:
    /// overrides of values that are configured otherwise now, endpoints that are elsewhere.
    pub fn import(&self, kept: &KeptCluster, now: Time) {
        let mut plan = self.plan.lock();
        for (name, overrides) in &kept.overrides {
            plan.restore(name, *overrides);
        }
        self.install(&plan, now);
        let mut roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        roster.duty = kept.duty;
        for kept in &kept.endpoints {
            roster.restore(&snapshot, kept, now);
        }
        roster.refresh(&snapshot, now);
        drop(roster);
        drop(plan);
        self.serve_if_waiting(now);
    }
}

fn kept_endpoint(
    endpoint: &Endpoint,
    condition: &Condition,
    weight: Weight,
    now: Time,
) -> KeptEndpoint {
    let (standing, ejections) = condition.kept_standing(now);
    KeptEndpoint {
        name: Arc::clone(endpoint.name()),
        address: endpoint.address().clone(),
        weight,
        effective_weight: condition.fade().effective(),
        judgement: condition.health().judgement(),
        standing,
        ejections,
    }
}
