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
            let conditions = spec
                .endpoints
                .iter()
                .map(|endpoint| Condition::at_process_start(endpoint.weight));
            let roster = Roster {
                conditions: conditions.collect(),
                draining: Vec::new(),
            };
            let snapshot = first_snapshot(spec, phase, &home);
            roster.refresh(&snapshot, now);
            Self {
                snapshot: ArcSwap::from_pointee(snapshot),
                queue: WaitQueue::new(Arc::clone(&home.waiting), phase),
                roster: Mutex::new(roster),
                reconfiguring: Mutex::new(()),
                latest: AtomicU64::new(now.as_micros()),
                home,
                phase,
            }
        })
    }

    /// Swaps the snapshot; live state of endpoints with the same name and address is kept.
    ///
    /// One with a new address is a new endpoint. New ones warm up if the cluster has a slow start. Those that are gone
    /// finish their leases, and are `Draining` in [`Cluster::status`] until then; if one of them is added again before,
    /// its counts go on, and it warms up like a new one. Raised limits and new endpoints are given to waiters at once.
    ///
    /// A slot table that must be filled anew takes the calling thread some time (about 4 ns per slot and endpoint);
    /// workers choose by the old snapshot meanwhile.
    pub fn reconfigure(&self, spec: ClusterSpec, now: Time) {
        let _reload = self.reconfiguring.lock();
        self.note_time(now);
        let before = self.snapshot.load_full();
        let kept = kept_positions(&before.spec, &spec);
        let inheritance = Inheritance {
            rotation: self.inherited_rotation(&before, &spec, &kept),
            slots: before.balancer.slots(),
        };
        let balancer = balance::build(&spec, inheritance);

        let mut roster = self.roster.lock();
        let endpoints = roster.succeed(&before, &spec, &kept, &self.home, now);
        let snapshot = Snapshot::new(spec, endpoints, balancer);
        roster.refresh(&snapshot, now);
        self.snapshot.store(Arc::new(snapshot));
        drop(roster);
        self.serve_if_waiting(now);
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
    let mut seats = Seats::default();
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
    Snapshot::new(spec, endpoints, balancer)
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
    fn succeed(
        &mut self,
        before: &Snapshot,
        after: &ClusterSpec,
        kept: &[Option<usize>],
        home: &Home,
        now: Time,
    ) -> Vec<Arc<Endpoint>> {
        let mut old = self.take_members(before);
        let mut seats = Seats::default();
        let mut endpoints = Vec::with_capacity(kept.len());
        for (position, (spec, kept)) in after.endpoints.iter().zip(kept).enumerate() {
            let member = kept
                .and_then(|position| old[position].take())
                .filter(|_| !fault::injected(Fault::ReloadForgets));
            let (endpoint, condition) = match member {
                Some(member) => member.reweighed(spec),
                None => (
                    self.take_draining(spec)
                        .unwrap_or_else(|| new_endpoint(spec, seats.take(), home)),
                    Condition::added(spec.weight, after.slow_start, now),
                ),
            };
            endpoint.place_at(position);
            endpoints.push(endpoint);
            self.conditions.push(condition);
        }
        self.drain(old.into_iter().flatten());
        endpoints
    }

    /// Empties the list of conditions.
    fn take_members(&mut self, before: &Snapshot) -> Vec<Option<Member>> {
        let conditions = std::mem::take(&mut self.conditions).into_iter();
        let listed = before.endpoints.iter().zip(&before.spec.endpoints);
        let members = listed.zip(conditions).map(|((endpoint, spec), condition)| {
            Some(Member {
                endpoint: Arc::clone(endpoint),
                condition,
                spec: spec.clone(),
            })
        });
        members.collect()
    }

    /// An endpoint that is added again while its last leases finish: its counts go on, so that its limit holds.
    fn take_draining(&mut self, spec: &EndpointSpec) -> Option<Arc<Endpoint>> {
        let index = self.draining.iter().position(|draining| {
            draining.spec.name == spec.name && draining.spec.address == spec.address
        })?;
        Some(self.draining.swap_remove(index).endpoint)
    }

    /// Also those without a lease, until the next tick: a session that still chooses by the snapshot before may be
    /// about to take one.
    fn drain(&mut self, removed: impl Iterator<Item = Member>) {
        for member in removed {
            member.endpoint.detach();
            self.draining.push(member);
        }
    }
}

impl Member {
    fn reweighed(mut self, spec: &EndpointSpec) -> (Arc<Endpoint>, Condition) {
        self.condition.reweigh(self.spec.weight, spec.weight);
        (self.endpoint, self.condition)
    }
}
