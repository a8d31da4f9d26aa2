//! What reaches the simulated cluster from outside its sessions: probes and the operator; and what must be true of that.

use super::*;

/// What the operator has set on an endpoint, as the simulation remembers it: what was configured, and what is in force.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Orders {
    weight: Option<(Weight, Weight)>,
    /// Of configuration, whether it disables the endpoint.
    service: Option<(bool, Service)>,
}

/// The last results of an endpoint's probes that were all the same, and how many they are.
pub(super) type Run = (ProbeResult, u32);

impl Simulation {
    /// A probe of some endpoint: mostly it tells the truth.
    pub(super) fn probe_one(&mut self, before: &ClusterStatus) -> Checked {
        let index = self.rng.usize(..before.endpoints.len());
        let endpoint = &before.endpoints[index];
        let is_well = !self.dead.contains(&endpoint.name) ^ (self.rng.u32(..5) == 0);
        let result = if is_well {
            ProbeResult::Passed
        } else {
            ProbeResult::Failed
        };
        self.probe(endpoint, result, before)
    }

    fn probe(
        &mut self,
        endpoint: &EndpointStatus,
        result: ProbeResult,
        before: &ClusterStatus,
    ) -> Checked {
        let told = self.cluster.probed(endpoint.id, result, self.now);
        if told == Some(HealthChange::Up) {
            let after = self.endpoint(endpoint.id)?;
            let is_forgiven = after.effective_weight == after.weight.get();
            ensure!(
                endpoint.judgement != Some(Judgement::Down) || is_forgiven,
                "{after:?} has not been forgiven"
            );
            let shadow = self.shadow.entry(endpoint.id).or_default();
            shadow.effective = after.effective_weight;
        }
        self.check_judgement(endpoint, result, told)?;
        self.collect_grants(before)
    }

    /// The first result decides alone; after that as many as the policy asks for.
    fn check_judgement(
        &mut self,
        before: &EndpointStatus,
        result: ProbeResult,
        told: Option<HealthChange>,
    ) -> Checked {
        let after = self.endpoint(before.id)?.judgement;
        let expected = match self.spec.health {
            Some(policy) if is_probed(before) => self.expected(before, result, &policy),
            _ => before.judgement,
        };
        ensure!(
            after == expected,
            "{} was {:?}, {result:?}, is {after:?} instead of {expected:?}",
            before.name,
            before.judgement
        );
        let is_told = match told {
            Some(HealthChange::Up) => after == Some(Judgement::Up) && after != before.judgement,
            Some(HealthChange::Down) => after == Some(Judgement::Down) && after != before.judgement,
            None => after == before.judgement,
        };
        ensure!(is_told, "{told:?} is told of {:?}", before.judgement);
        Ok(())
    }

    fn expected(
        &mut self,
        before: &EndpointStatus,
        result: ProbeResult,
        policy: &HealthPolicy,
    ) -> Option<Judgement> {
        let length = match self.runs.get(&before.id) {
            Some((last, length)) if *last == result => length + 1,
            _ => 1,
        };
        self.runs.insert(before.id, (result, length));
        let is_first = before.judgement == Some(Judgement::Unknown);
        match result {
            ProbeResult::Passed if is_first || length >= policy.rise => Some(Judgement::Up),
            ProbeResult::Failed if is_first || length >= policy.fall => Some(Judgement::Down),
            _ => before.judgement,
        }
    }

    /// Probes begin anew where there were none for a while.
    pub(super) fn forget_runs(&mut self, status: &ClusterStatus) {
        for endpoint in &status.endpoints {
            if matches!(endpoint.judgement, None | Some(Judgement::Unknown)) {
                self.runs.remove(&endpoint.id);
            }
        }
    }

    /// The operator sets something, or takes it back.
    pub(super) fn override_one(&mut self, before: &ClusterStatus) -> Checked {
        let index = self.rng.usize(..self.spec.endpoints.len());
        let what = match self.rng.u32(..6) {
            0 | 1 => Override::Weight(Weight::new(self.rng.u32(0..6)).expect("small")),
            2 => Override::Drain,
            3 => Override::Disable,
            _ => Override::Enable,
        };
        self.set(index, what, before)
    }

    fn set(&mut self, index: usize, what: Override, before: &ClusterStatus) -> Checked {
        self.has_reloaded = true;
        let spec = self.spec.endpoints[index].clone();
        let orders = self.orders.entry(Arc::clone(&spec.name)).or_default();
        match what {
            Override::Weight(weight) => orders.weight = Some((spec.weight, weight)),
            Override::Drain => orders.service = Some((spec.disabled, Service::Draining)),
            Override::Disable => orders.service = Some((spec.disabled, Service::Disabled)),
            Override::Enable => orders.service = Some((spec.disabled, Service::InService)),
        }
        let done = self.cluster.override_endpoint(&spec.name, what, self.now);
        ensure!(done == Ok(()), "{} is unknown", spec.name);
        self.adopt_weights();
        self.collect_grants(before)
    }

    pub(super) fn fail_back(&mut self, before: &ClusterStatus) -> Checked {
        let done = self.cluster.fail_back(self.now);
        self.has_failed_back = done.is_ok();
        let after = self.status();
        ensure!(
            done.is_err() || after.duty == Duty::Primaries,
            "the backups keep the work"
        );
        ensure!(
            done != Err(FailbackRefusal::NoPrimaryUsable) || !self.has_usable(&after, false),
            "a primary is usable and does not get the work"
        );
        self.collect_grants(before)
    }

    /// Orders that a new configuration speaks against have fallen.
    pub(super) fn drop_orders(&mut self) {
        for spec in &self.spec.endpoints {
            if let Some(orders) = self.orders.get_mut(&spec.name) {
                orders.weight.take_if(|(old, _)| *old != spec.weight);
                orders.service.take_if(|(old, _)| *old != spec.disabled);
            }
        }
    }

    /// The configuration with the operator's orders in it.
    pub(super) fn in_force(&self) -> Vec<EndpointSpec> {
        let endpoints = self.spec.endpoints.iter().cloned();
        let ordered = endpoints.map(|spec| {
            let orders = self.orders.get(&spec.name).copied().unwrap_or_default();
            EndpointSpec {
                weight: orders.weight.map_or(spec.weight, |(_, weight)| weight),
                disabled: orders
                    .service
                    .map_or(spec.disabled, |(_, service)| service != Service::InService),
                ..spec
            }
        });
        ordered.collect()
    }

    /// The cluster does what the operator said, and says so.
    pub(super) fn check_orders(&self, status: &ClusterStatus) -> Checked {
        for (spec, endpoint) in self.in_force().iter().zip(&status.endpoints) {
            let is_right = endpoint.name == spec.name
                && endpoint.weight == spec.weight
                && (endpoint.service == Service::InService) != spec.disabled;
            ensure!(is_right, "{endpoint:?} is in force instead of {spec:?}");
        }
        Ok(())
    }

    /// With manual failback the work leaves those who have it only when all of them are out, or the operator says so; and
    /// then it does.
    pub(super) fn check_duty(&self, before: &ClusterStatus, after: &ClusterStatus) -> Checked {
        if after.failback != Failback::Manual || before.failback != Failback::Manual {
            return Ok(());
        }
        let is_out = |duty| {
            let backup = duty == Duty::Backups;
            !self.is_awaited(backup)
                && !self.has_usable(after, backup)
                && !self.has_unknown(after, backup)
        };
        ensure!(
            before.duty == after.duty || is_out(before.duty) || self.has_failed_back,
            "the work leaves {:?}",
            before.duty
        );
        let backups_wait = after.duty == Duty::Primaries;
        ensure!(
            !is_out(after.duty) || !self.has_usable(after, backups_wait),
            "nobody works, and {:?} keep the duty",
            after.duty
        );
        Ok(())
    }

    /// New probes take nobody out who was in use.
    pub(super) fn check_watched(&self, before: &ClusterStatus) -> Checked {
        for endpoint in self.status().endpoints {
            let mut known = before.endpoints.iter();
            let was_in_use =
                known.any(|old| old.id == endpoint.id && old.judgement.is_none() && is_probed(old));
            let is_out = endpoint.judgement == Some(Judgement::Unknown) && is_probed(&endpoint);
            ensure!(
                !was_in_use || !is_out,
                "{} was in use and waits for a probe",
                endpoint.name
            );
        }
        Ok(())
    }

    /// Everybody is well, and the operator takes everything back.
    pub(super) fn set_right(&mut self) -> Checked {
        self.dead.clear();
        for index in 0..self.spec.endpoints.len() {
            let configured = self.spec.endpoints[index].clone();
            let before = self.status();
            self.set(index, Override::Weight(configured.weight), &before)?;
            let service = if configured.disabled {
                Override::Disable
            } else {
                Override::Enable
            };
            let before = self.status();
            self.set(index, service, &before)?;
        }
        self.find_well()
    }

    /// Probes find everybody well, and the primaries have the work.
    pub(super) fn find_well(&mut self) -> Checked {
        for id in self.status().endpoints.iter().map(|endpoint| endpoint.id) {
            for _ in 0..RISE_MAX {
                let before = self.status();
                let endpoint = self.endpoint(id)?;
                self.probe(&endpoint, ProbeResult::Passed, &before)?;
            }
        }
        let before = self.status();
        self.fail_back(&before)
    }

    fn has_usable(&self, status: &ClusterStatus, backup: bool) -> bool {
        self.has(status, backup, is_usable)
    }

    fn is_awaited(&self, backup: bool) -> bool {
        let awaited = self.spec.awaited;
        if backup {
            awaited.backups
        } else {
            awaited.primaries
        }
    }

    fn has_unknown(&self, status: &ClusterStatus, backup: bool) -> bool {
        self.has(status, backup, |endpoint| {
            endpoint.state == EndpointState::Unknown
        })
    }

    fn has(
        &self,
        status: &ClusterStatus,
        backup: bool,
        is: impl Fn(&EndpointStatus) -> bool,
    ) -> bool {
        let in_force = self.in_force();
        let mut listed = in_force.iter().zip(&status.endpoints);
        listed.any(|(spec, endpoint)| spec.backup == backup && is_in_service(spec) && is(endpoint))
    }

    fn endpoint(&self, id: EndpointId) -> Result<EndpointStatus, Violation> {
        let mut endpoints = self.status().endpoints.into_iter();
        let found = endpoints.find(|endpoint| endpoint.id == id);
        found.ok_or_else(|| Violation(format!("{id:?} has vanished")))
    }
}

fn is_probed(endpoint: &EndpointStatus) -> bool {
    let is_present = endpoint.state != EndpointState::Removed;
    is_present && endpoint.service != Service::Disabled
}

pub(super) fn is_usable(endpoint: &EndpointStatus) -> bool {
    !matches!(
        endpoint.state,
        EndpointState::Ejected { .. } | EndpointState::Down | EndpointState::Unknown
    )
}
