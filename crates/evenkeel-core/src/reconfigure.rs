//! The life of a cluster: its start, its reloads, the passing of time.
//!
//! A reload builds a whole new snapshot and swaps it in one step. Live state is kept by name and address, so a reload
//! forgets nothing: counts, effective weights, ejections, slow starts and the place in the rotation go on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::acquire::Cluster;
use crate::balance::{self, Inheritance, Rotation};
use crate::cluster::{ClusterSpec, EndpointSpec};
use crate::condition::Condition;
use crate::counts::{Seat, Seats};
use crate::endpoint::{Endpoint, Home};
use crate::fault::{self, Fault};
use crate::health::Health;
use crate::overrides::{EndpointOverrides, Plan, Service};
use crate::roster::{Member, Roster};
use crate::snapshot::Snapshot;
use crate::units::{Address, Time};
use crate::wait::WaitQueue;

impl Cluster {
    /// A cluster at process start: everything up, all weights as configured.
    ///
    /// `phase` shifts the start of round robin (random per process, so that a fleet that starts together does not send
    /// its first sessions to the same endpoint; 0 in exact tests). `now` is process start.
    pub fn new(spec: ClusterSpec, phase: u64, now: Time) -> Arc<Self> {
        Arc::new_cyclic(|cluster| {
            let home = Home {
                cluster: Weak::clone(cluster),
                waiting: Arc::new(AtomicUsize::new(0)),
            };
            let health = Health::at_first(spec.health.as_ref());
            let conditions = spec
                .endpoints
                .iter()
                .map(|endpoint| Condition::at_process_start(endpoint.weight, health));
            let mut roster = Roster {
                conditions: conditions.collect(),
                ..Roster::default()
            };
            let plan = Plan::new(spec.clone());
            let snapshot = first_snapshot(spec, phase, &home);
            roster.refresh(&snapshot, now);
            Self {
                snapshot: ArcSwap::from_pointee(snapshot),
                queue: WaitQueue::new(Arc::clone(&home.waiting), phase),
                roster: Mutex::new(roster),
                plan: Mutex::new(plan),
                latest: AtomicU64::new(now.as_micros()),
                home,
                phase,
            }
        })
    }

    /// Swaps the snapshot; live state of endpoints with the same name and address is kept.
    ///
    /// One with a new address is a new endpoint. New ones warm up if the cluster has a slow start. Those that are gone
    /// finish their leases, and are `Removed` in [`Cluster::status`] until then; if one of them is added again before,
    /// its counts go on, and it warms up like a new one. Raised limits and new endpoints are given to waiters at once.
    ///
    /// Where probes are new, endpoints that are there stay in use until a probe says otherwise; new ones get nothing before
    /// their first passed probe. Where probes are gone, those that were down are used again. What the operator has
    /// overridden stays so, except values that `spec` changes.
    ///
    /// A slot table that must be filled anew takes the calling thread some time (about 4 ns per slot and endpoint);
    /// workers choose by the old snapshot meanwhile.
    pub fn reconfigure(&self, spec: ClusterSpec, now: Time) {
        let mut plan = self.plan.lock();
        plan.reconfigure(spec);
        self.install(&plan, now);
        drop(plan);
        self.serve_if_waiting(now);
    }

    /// Puts into force what is configured and overridden. Those who wait are served by the caller, without the plan's lock.
    pub(crate) fn install(&self, plan: &Plan, now: Time) {
        self.note_time(now);
        let spec = plan.in_force();
        let overrides = plan.by_position();
        let before = self.snapshot.load_full();
        let kept = kept_positions(&before.spec, &spec);
        let inheritance = Inheritance {
            rotation: self.inherited_rotation(&before, &spec, &kept),
            slots: before.balancer.slots(),
        };
        let balancer = balance::build(&spec, inheritance);

        let mut roster = self.roster.lock();
        let next = Next {
            spec: &spec,
            overrides: &overrides,
            kept: &kept,
            now,
        };
        let endpoints = roster.succeed(&before, &next, &self.home);
        let snapshot = Snapshot::new(spec, overrides, endpoints, balancer);
        roster.refresh(&snapshot, now);
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Lets time pass: ends ejections, advances slow start, makes trials due, grants slots that became free.
    ///
    /// Call it every 100 ms or so: ejections and slow starts are as fine as that.
    pub fn tick(&self, now: Time) {
        self.note_time(now);
        let mut roster = self.roster.lock();
        roster.pass_time(&self.snapshot.load(), now);
        drop(roster);
        self.serve_if_waiting(now);
    }

    /// The place in the rotation is kept with the endpoints; if none of them is kept, it starts at the phase again.
    fn inherited_rotation(
        &self,
        before: &Snapshot,
        spec: &ClusterSpec,
        kept: &[Option<usize>],
    ) -> Rotation {
        let Some(rotation) = before.balancer.rotation() else {
            return Rotation::at_phase(spec, self.phase);
        };
        if kept.iter().all(Option::is_none) {
            return Rotation::at_phase(spec, self.phase);
        }
        let rotation = rotation.lock();
        let credits = kept.iter().map(|kept| {
            kept.and_then(|position| rotation.credit_at(position))
                .unwrap_or(0)
        });
        Rotation::carried(credits.collect(), rotation.total())
    }
}

fn first_snapshot(spec: ClusterSpec, phase: u64, home: &Home) -> Snapshot {
    let mut seats = Seats::suiting(&spec.balance);
    let endpoints = spec
        .endpoints
        .iter()
        .enumerate()
        .map(|(position, endpoint)| {
            let endpoint = new_endpoint(endpoint, seats.take(), home);
            endpoint.place_at(position);
            endpoint
        });
    let endpoints = endpoints.collect();
    let inheritance = Inheritance {
        rotation: Rotation::at_phase(&spec, phase),
        slots: None,
    };
    let balancer = balance::build(&spec, inheritance);
    let overrides = vec![EndpointOverrides::default(); spec.endpoints.len()];
    Snapshot::new(spec, overrides, endpoints, balancer)
}

/// What comes into force.
struct Next<'a> {
    spec: &'a ClusterSpec,
    /// By position, as `kept`.
    overrides: &'a [EndpointOverrides],
    /// Where an endpoint was before.
    kept: &'a [Option<usize>],
    now: Time,
}

impl Next<'_> {
    fn service(&self, position: usize) -> Service {
        self.overrides[position].service_over(&self.spec.endpoints[position])
    }

    /// Nothing is known of it. It warms up once it may be used.
    fn new_condition(&self, position: usize) -> Condition {
        let health = Health::at_first(self.spec.health.as_ref());
        let weight = self.spec.endpoints[position].weight;
        Condition::added(weight, health, self.spec.slow_start, self.now)
    }
}

/// For every endpoint of `after`, where it was in `before`.
fn kept_positions(before: &ClusterSpec, after: &ClusterSpec) -> Vec<Option<usize>> {
    let mut positions: HashMap<(&str, &Address), usize> = before
        .endpoints
        .iter()
        .enumerate()
        .map(|(position, endpoint)| ((&*endpoint.name, &endpoint.address), position))
        .collect();
    after
        .endpoints
        .iter()
        .map(|endpoint| positions.remove(&(&*endpoint.name, &endpoint.address)))
        .collect()
}

fn new_endpoint(spec: &EndpointSpec, seat: Seat, home: &Home) -> Arc<Endpoint> {
    Arc::new(Endpoint::new(
        Arc::clone(&spec.name),
        spec.address.clone(),
        seat,
        home.clone(),
    ))
}

impl Roster {
    /// Makes this the roster of `after` and returns its endpoints; who is not in it drains.
    fn succeed(&mut self, before: &Snapshot, next: &Next<'_>, home: &Home) -> Vec<Arc<Endpoint>> {
        let mut old = self.take_members(before);
        let mut seats = Seats::suiting(&next.spec.balance);
        let mut endpoints = Vec::with_capacity(next.kept.len());
        for (position, (spec, kept)) in next.spec.endpoints.iter().zip(next.kept).enumerate() {
            let member = kept
                .and_then(|position| old[position].take())
                .filter(|_| !fault::injected(Fault::ReloadForgets));
            let (endpoint, condition) = match member {
                Some(member) => member.carried_over(next, position),
                None => (
                    self.take_removed(spec)
                        .unwrap_or_else(|| new_endpoint(spec, seats.take(), home)),
                    next.new_condition(position),
                ),
            };
            endpoint.place_at(position);
            endpoints.push(endpoint);
            self.conditions.push(condition);
        }
        self.remove(old.into_iter().flatten());
        endpoints
    }

    /// Empties the list of conditions.
    fn take_members(&mut self, before: &Snapshot) -> Vec<Option<Member>> {
        let conditions = std::mem::take(&mut self.conditions).into_iter();
        let members = conditions.enumerate().map(|(position, condition)| {
            Some(Member {
                endpoint: Arc::clone(&before.endpoints[position]),
                condition,
                spec: before.spec.endpoints[position].clone(),
                service: before.service(position),
            })
        });
        members.collect()
    }

    /// An endpoint that is added again while its last leases finish: its counts go on, so that its limit holds.
    fn take_removed(&mut self, spec: &EndpointSpec) -> Option<Arc<Endpoint>> {
        let index = self.removed.iter().position(|removed| {
            removed.spec.name == spec.name && removed.spec.address == spec.address
        })?;
        Some(self.removed.swap_remove(index).endpoint)
    }

    /// Also those without a lease, until the next tick: a session that still chooses by the snapshot before may be
    /// about to take one.
    fn remove(&mut self, removed: impl Iterator<Item = Member>) {
        for member in removed {
            member.endpoint.detach();
            self.removed.push(member);
        }
    }
}

impl Member {
    fn carried_over(mut self, next: &Next<'_>, position: usize) -> (Arc<Endpoint>, Condition) {
        let weight = next.spec.endpoints[position].weight;
        let policy = next.spec.health.as_ref();
        let moment = (next.spec.slow_start, next.now);
        let condition = &mut self.condition;
        condition.reweigh(self.spec.weight, weight);
        match (self.service, next.service(position)) {
            (_, Service::Disabled) => condition.leave_service(policy),
            (Service::Disabled, _) => condition.enter_service(policy, weight, moment),
            _ => condition.judge_under(policy, weight, moment),
        }
        (self.endpoint, self.condition)
    }
}
