//! What must be true of the simulated world, after every step and at its end.

use super::*;

/// An endpoint's part in the work, worked out from the configuration and the status.
pub(super) struct Role {
    id: EndpointId,
    /// It takes its share.
    pub(super) works: bool,
    /// It takes trials, and what those that work have no room for.
    on_trial: bool,
    has_room: bool,
}

impl Simulation {
    pub(super) fn status(&self) -> ClusterStatus {
        self.cluster.status(self.now)
    }

    /// After every step.
    pub(super) fn check(&mut self, before: &ClusterStatus) -> Checked {
        let status = self.status();
        self.check_counts(&status)?;
        self.check_ejections(before, &status)?;
        self.check_orders(&status)?;
        self.check_duty(before, &status)?;
        self.forget_runs(&status);
        self.has_reloaded = false;
        self.has_failed_back = false;
        self.check_nobody_is_stuck(&status)
    }

    pub(super) fn check_counts(&self, status: &ClusterStatus) -> Checked {
        ensure!(
            status.waiting == self.line.len(),
            "{} wait, the cluster says {}",
            self.line.len(),
            status.waiting
        );
        for endpoint in &status.endpoints {
            let shadow = self.shadow.get(&endpoint.id).cloned().unwrap_or_default();
            let says = (endpoint.in_flight, endpoint.leases);
            ensure!(
                says == (shadow.held, shadow.leases),
                "{says:?} instead of {shadow:?}"
            );
            let drains = endpoint.state == EndpointState::Removed;
            ensure!(
                drains || endpoint.effective_weight == shadow.effective,
                "effective weight {} instead of {shadow:?}",
                endpoint.effective_weight
            );
        }
        let held: u32 = status
            .endpoints
            .iter()
            .map(|endpoint| endpoint.in_flight)
            .sum();
        ensure!(
            held as usize == self.sessions.len(),
            "a lease is on no endpoint"
        );
        Ok(())
    }

    /// A new ejection stays within the share and leaves somebody. (A reload may leave only ejected ones, and may enable
    /// one whose ejection did not show while it was disabled.)
    pub(super) fn check_ejections(&self, before: &ClusterStatus, after: &ClusterStatus) -> Checked {
        let ejected =
            |status: &ClusterStatus| status.endpoints.iter().filter(|e| is_ejected(e)).count();
        if ejected(after) <= ejected(before) || self.has_reloaded {
            return Ok(());
        }
        let share = self
            .spec
            .ejection
            .map_or(0, |policy| policy.share_max_percent as usize);
        ensure!(
            ejected(after) * 100 <= self.spec.endpoints.len() * share,
            "{} of {} are ejected",
            ejected(after),
            self.spec.endpoints.len()
        );
        let usable =
            |(spec, endpoint): (&EndpointSpec, _)| is_in_service(spec) && is_usable(endpoint);
        ensure!(
            self.in_force().iter().zip(&after.endpoints).any(usable),
            "the last one is ejected"
        );
        Ok(())
    }

    /// No slot is free for anybody who waits.
    pub(super) fn check_nobody_is_stuck(&self, status: &ClusterStatus) -> Checked {
        let roles = self.roles(status);
        for waiting in &self.line {
            ensure!(
                !is_room_for(&waiting.tried, &roles),
                "{} waits beside a free slot",
                waiting.token
            );
        }
        Ok(())
    }

    /// A lease is only on an endpoint that may be used, before or after what this step did to it.
    pub(super) fn check_lease(
        &mut self,
        lease: &Lease,
        tried: &Tried,
        before: &ClusterStatus,
    ) -> Checked {
        let (before, after) = (self.roles(before), self.roles(&self.status()));
        let id = lease.endpoint();
        let role_in = |roles: &[Role]| roles.iter().position(|role| role.id == id);
        let works = |roles: &[Role]| {
            role_in(roles)
                .is_some_and(|index| roles[index].works && may_use(&roles[index], tried, roles))
        };
        let on_trial = |roles: &[Role]| role_in(roles).is_some_and(|index| roles[index].on_trial);
        let stands_in = |roles: &[Role]| on_trial(roles) && !is_anyone_open(tried, roles);
        self.check_limit(lease)?;
        if works(&before) || works(&after) || stands_in(&before) || stands_in(&after) {
            return Ok(());
        }
        ensure!(
            (on_trial(&before) || on_trial(&after)) && !tried.contains(id),
            "{} is not to be used",
            lease.name()
        );
        self.check_trial(id)
    }

    pub(super) fn check_limit(&self, lease: &Lease) -> Checked {
        let held = self
            .shadow
            .get(&lease.endpoint())
            .map_or(0, |shadow| shadow.held);
        let spec = self
            .spec
            .endpoints
            .iter()
            .find(|spec| spec.name == *lease.name());
        let limit = spec.and_then(|spec| spec.max_connections);
        ensure!(
            limit.is_none_or(|limit| held < limit.get()),
            "{held} leases on {} and one more",
            lease.name()
        );
        Ok(())
    }

    pub(super) fn check_trial(&mut self, id: EndpointId) -> Checked {
        let now = self.now;
        let every = self.spec.trials.every;
        let shadow = self.shadow.entry(id).or_default();
        let last = shadow.last_trial.replace(now);
        ensure!(
            last.is_none_or(|last| now.since(last) >= every),
            "two trials within {every:?}"
        );
        Ok(())
    }

    /// Those who came before the one who was at `index` could not use the slot.
    pub(super) fn check_turn(
        &self,
        index: usize,
        lease: &Lease,
        before: &ClusterStatus,
    ) -> Checked {
        let roles = self.roles(&self.status());
        let was_trial = self
            .roles(before)
            .iter()
            .any(|role| role.id == lease.endpoint() && role.on_trial);
        let role = roles.iter().find(|role| role.id == lease.endpoint());
        for earlier in &self.line[..index] {
            let could_use = role.is_some_and(|role| may_use(role, &earlier.tried, &roles));
            ensure!(was_trial || !could_use, "{} was overtaken", earlier.token);
        }
        Ok(())
    }

    pub(super) fn check_refusal(
        &self,
        refusal: Refusal,
        may_wait: bool,
        before: &ClusterStatus,
    ) -> Checked {
        let anybody_works = self.roles(before).iter().any(|role| role.works);
        let is_right = match refusal {
            Refusal::NoEndpoint => !anybody_works,
            Refusal::QueueFull => anybody_works && self.line.len() >= self.spec.queue_max,
            Refusal::Full => anybody_works && !may_wait,
        };
        ensure!(is_right, "{refusal:?} is not the reason");
        Ok(())
    }

    /// A reload keeps who has the same name and address.
    pub(super) fn check_identities(&self, before: &ClusterStatus) -> Checked {
        let after = self.status();
        for old in &before.endpoints {
            let same = |new: &&EndpointStatus| new.name == old.name && new.address == old.address;
            if let Some(new) = after.endpoints.iter().find(same) {
                ensure!(new.id == old.id, "{} is forgotten", old.name);
            }
        }
        Ok(())
    }

    pub(super) fn check_recovered(&self, begin: &ClusterStatus) -> Checked {
        let status = self.status();
        let roles = self.roles(&status);
        for endpoint in &status.endpoints {
            let is_member = roles
                .iter()
                .any(|role| role.id == endpoint.id && (role.works || role.on_trial));
            ensure!(!is_ejected(endpoint), "{} is still ejected", endpoint.name);
            if is_member {
                let is_up = endpoint.state == EndpointState::Up
                    && endpoint.effective_weight == endpoint.weight.get();
                ensure!(is_up, "{} has not recovered: {endpoint:?}", endpoint.name);
                let old = begin.endpoints.iter().find(|old| old.id == endpoint.id);
                let served = endpoint.leases - old.map_or(0, |old| old.leases);
                ensure!(served > 0, "{} starves", endpoint.name);
            }
        }
        Ok(())
    }

    pub(super) fn roles(&self, status: &ClusterStatus) -> Vec<Role> {
        let find = |spec: &EndpointSpec| {
            let mut endpoints = status.endpoints.iter();
            endpoints.find(|e| e.name == spec.name && e.address == spec.address)
        };
        let in_force = self.in_force();
        let listed: Listed<'_> = in_force
            .iter()
            .filter_map(|spec| Some((spec, find(spec)?)))
            .filter(|(spec, _)| is_in_service(spec))
            .collect();
        let members = match self.spec.failback {
            Failback::Auto => self.members_by_rank(&listed),
            Failback::Manual => self.members_on_duty(&listed, status.duty),
        };
        let all_floored = members
            .iter()
            .all(|(_, endpoint)| endpoint.effective_weight == 0);
        let role = |(spec, endpoint): (&EndpointSpec, &EndpointStatus)| Role {
            id: endpoint.id,
            works: all_floored || endpoint.effective_weight > 0,
            on_trial: !all_floored && endpoint.effective_weight == 0,
            has_room: spec
                .max_connections
                .is_none_or(|max| endpoint.in_flight < max.get()),
        };
        members.into_iter().map(role).collect()
    }

    /// Primaries, or else backups, or else all.
    fn members_by_rank<'a>(&self, listed: &Listed<'a>) -> Listed<'a> {
        let usable = |backup| only(listed, |spec, e| spec.backup == backup && is_usable(e));
        match (usable(false), usable(true), self.spec.when_none) {
            (primaries, _, _) if !primaries.is_empty() => primaries,
            (_, backups, _) if !backups.is_empty() => backups,
            (_, _, WhenNone::UseAll) => listed.clone(),
            (_, _, WhenNone::Fail) => Vec::new(),
        }
    }

    /// Those on duty, never both. (Whether the right ones are is checked apart: `check_duty`.)
    fn members_on_duty<'a>(&self, listed: &Listed<'a>, duty: Duty) -> Listed<'a> {
        let backup = duty == Duty::Backups;
        let usable = only(listed, |spec, e| spec.backup == backup && is_usable(e));
        let is_other_usable = listed
            .iter()
            .any(|(spec, e)| spec.backup != backup && is_usable(e));
        if !usable.is_empty() || is_other_usable || self.spec.when_none == WhenNone::Fail {
            usable
        } else {
            only(listed, |spec, _| spec.backup == backup)
        }
    }

    pub(super) fn weight_of(&self, id: EndpointId) -> Option<u32> {
        let status = self.status();
        let endpoint = status.endpoints.iter().find(|endpoint| endpoint.id == id)?;
        (endpoint.state != EndpointState::Removed).then_some(endpoint.weight.get())
    }

    /// A new configured weight changes the effective one; by how much is for tests of its own to say. It is as configured
    /// for whoever was, and at least 1 for whoever was above 0.
    pub(super) fn adopt_weights(&mut self) {
        for endpoint in self.status().endpoints {
            let shadow = self.shadow.entry(endpoint.id).or_default();
            shadow.effective = endpoint.effective_weight;
        }
    }
}

/// Endpoints in service.
type Listed<'a> = Vec<(&'a EndpointSpec, &'a EndpointStatus)>;

fn only<'a>(
    listed: &Listed<'a>,
    is: impl Fn(&EndpointSpec, &EndpointStatus) -> bool,
) -> Listed<'a> {
    let wanted = listed.iter().filter(|(spec, endpoint)| is(spec, endpoint));
    wanted.copied().collect()
}

/// Whether a session may be given this endpoint: one that it has tried only if no other is left.
fn may_use(role: &Role, tried: &Tried, roles: &[Role]) -> bool {
    !tried.contains(role.id) || roles.iter().all(|other| tried.contains(other.id))
}

/// Whether there is a free slot that this session may be given, whatever the effective weights.
pub(super) fn is_room_for(tried: &Tried, roles: &[Role]) -> bool {
    let mut roomy = roles.iter().filter(|role| role.has_room);
    roomy.any(|role| may_use(role, tried, roles))
}

/// Whether an endpoint that works can take this session, so that one at effective weight 0 is not to.
fn is_anyone_open(tried: &Tried, roles: &[Role]) -> bool {
    let mut working = roles.iter().filter(|role| role.works);
    working.any(|role| role.has_room && may_use(role, tried, roles))
}

pub(super) fn is_in_service(spec: &EndpointSpec) -> bool {
    !spec.disabled && spec.weight > Weight::ZERO
}

fn is_ejected(endpoint: &EndpointStatus) -> bool {
    matches!(endpoint.state, EndpointState::Ejected { .. })
}
