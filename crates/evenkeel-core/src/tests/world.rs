//! A small world for tests: clusters of endpoints named a, b, c, a clock in seconds, waiters that keep what they get.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;

use crate::units::{Address, HashKey, Time, Weight};
use crate::{
    Acquired, Awaited, Balance, Cluster, ClusterSpec, EjectionPolicy, EndpointSpec, EndpointStatus,
    Failback, Failure, Lease, Outcome, Refusal, Request, Ticket, TrialPolicy, Tried, Waiter,
    WhenNone,
};

/// An endpoint whose address follows from its name.
pub(crate) fn endpoint(name: &str, weight: u32) -> EndpointSpec {
    let port = name.bytes().fold(1000_u16, |port, byte| {
        port.wrapping_mul(31) ^ u16::from(byte)
    });
    EndpointSpec {
        name: name.into(),
        address: Address::Ip(SocketAddr::from(([127, 0, 0, 1], port))),
        weight: Weight::new(weight).unwrap(),
        backup: false,
        disabled: false,
        max_connections: None,
    }
}

pub(crate) fn limited(name: &str, weight: u32, max: u32) -> EndpointSpec {
    EndpointSpec {
        max_connections: NonZeroU32::new(max),
        ..endpoint(name, weight)
    }
}

pub(crate) fn backup(name: &str) -> EndpointSpec {
    EndpointSpec {
        backup: true,
        ..endpoint(name, 1)
    }
}

pub(crate) fn disabled(name: &str) -> EndpointSpec {
    EndpointSpec {
        disabled: true,
        ..endpoint(name, 1)
    }
}

/// Round robin, trials after 1 s, no ejection, no slow start, a queue of 100.
pub(crate) fn cluster_spec(endpoints: Vec<EndpointSpec>) -> ClusterSpec {
    ClusterSpec {
        name: "cluster".into(),
        endpoints,
        balance: Balance::RoundRobin,
        trials: TrialPolicy::default(),
        ejection: None,
        slow_start: Duration::ZERO,
        queue_max: 100,
        when_none: WhenNone::Fail,
        health: None,
        failback: Failback::Auto,
        awaited: Awaited::default(),
    }
}

pub(crate) fn ejecting(failures: u32, share_max_percent: u32) -> Option<EjectionPolicy> {
    Some(EjectionPolicy {
        failures,
        share_max_percent,
        ..EjectionPolicy::default()
    })
}

/// `seconds` after process start.
pub(crate) fn at(seconds: f64) -> Time {
    Time::ZERO.after(Duration::from_secs_f64(seconds))
}

/// A cluster, a clock and a seeded random source.
pub(crate) struct World {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) now: Time,
    pub(crate) rng: Rng,
}

impl World {
    pub(crate) fn new(spec: ClusterSpec) -> Self {
        Self {
            cluster: Cluster::new(spec, 0, Time::ZERO),
            now: Time::ZERO,
            rng: Rng::with_seed(7),
        }
    }

    pub(crate) fn of(endpoints: Vec<EndpointSpec>) -> Self {
        Self::new(cluster_spec(endpoints))
    }

    /// Time passes, and the cluster is told.
    pub(crate) fn wait_until(&mut self, seconds: f64) {
        self.now = at(seconds);
        self.cluster.tick(self.now);
    }

    pub(crate) fn acquire(&mut self, request: &Request<'_>) -> Acquired {
        self.cluster.acquire(request, self.now, &mut self.rng)
    }

    pub(crate) fn try_lease(
        &mut self,
        key: Option<HashKey>,
        tried: &Tried,
    ) -> Result<Lease, Refusal> {
        match self.acquire(&Request {
            key,
            tried,
            waiter: None,
        }) {
            Acquired::Lease(lease) => Ok(lease),
            Acquired::Refused(refusal) => Err(refusal),
            Acquired::Wait(_) => panic!("waits without a waiter"),
        }
    }

    pub(crate) fn lease(&mut self) -> Lease {
        self.try_lease(None, &Tried::default()).unwrap()
    }

    pub(crate) fn lease_for(&mut self, key: u64) -> Lease {
        self.try_lease(Some(HashKey(key)), &Tried::default())
            .unwrap()
    }

    /// Leases until `name` is the one, abandoning the others.
    pub(crate) fn lease_on(&mut self, name: &str) -> Lease {
        (0..10_000)
            .map(|key| self.lease_for(key))
            .find(|lease| &**lease.name() == name)
            .unwrap()
    }

    pub(crate) fn refusal(&mut self) -> Refusal {
        self.try_lease(None, &Tried::default()).unwrap_err()
    }

    /// Who serves the next `count` sessions that succeed and end one after the other.
    pub(crate) fn served(&mut self, count: usize) -> String {
        (0..count).map(|_| self.serve_one()).collect()
    }

    fn serve_one(&mut self) -> String {
        let mut lease = self.lease();
        let name = lease.name().to_string();
        lease.established(self.now);
        lease.finish(Outcome::Completed, self.now);
        name
    }

    /// Who is given the next `count` sessions, which say nothing about the endpoint.
    pub(crate) fn visited(&mut self, count: usize) -> String {
        (0..count)
            .map(|_| self.lease().name().to_string())
            .collect()
    }

    pub(crate) fn fail(&self, lease: Lease) {
        lease.finish(Outcome::Failed(Failure::Refused), self.now);
    }

    /// The next session on `name` fails.
    pub(crate) fn fail_on(&mut self, name: &str) {
        let lease = self.lease_on(name);
        self.fail(lease);
    }

    pub(crate) fn status(&self, name: &str) -> EndpointStatus {
        let status = self.cluster.status(self.now);
        let mut endpoints = status.endpoints.into_iter();
        endpoints.find(|endpoint| &*endpoint.name == name).unwrap()
    }

    pub(crate) fn wait(&mut self, queue: &Queue, token: u64) -> Ticket {
        self.wait_having_tried(queue, token, &Tried::default())
    }

    pub(crate) fn wait_having_tried(&mut self, queue: &Queue, token: u64, tried: &Tried) -> Ticket {
        match self.acquire(&queue.request(token, tried)) {
            Acquired::Wait(ticket) => ticket,
            Acquired::Lease(lease) => panic!("got {lease:?} instead of waiting"),
            Acquired::Refused(refusal) => panic!("{refusal:?} instead of waiting"),
        }
    }
}

/// Waiters of one worker: keeps what is granted, with the tokens, in order.
pub(crate) struct Queue {
    grants: Arc<Grants>,
    waiter: Arc<dyn Waiter>,
}

#[derive(Default)]
struct Grants(Mutex<Vec<(u64, Lease)>>);

impl Waiter for Grants {
    fn grant(&self, token: u64, lease: Lease) {
        self.0.lock().push((token, lease));
    }
}

impl Queue {
    pub(crate) fn new() -> Self {
        let grants = Arc::new(Grants::default());
        let waiter: Arc<dyn Waiter> = Arc::<Grants>::clone(&grants);
        Self { grants, waiter }
    }

    pub(crate) fn request<'a>(&'a self, token: u64, tried: &'a Tried) -> Request<'a> {
        Request {
            key: None,
            tried,
            waiter: Some((&self.waiter, token)),
        }
    }

    /// What has been granted since the last call.
    pub(crate) fn take(&self) -> Vec<(u64, Lease)> {
        std::mem::take(&mut self.grants.0.lock())
    }

    /// The tokens of it; the leases are dropped.
    pub(crate) fn take_tokens(&self) -> Vec<u64> {
        self.take().into_iter().map(|(token, _)| token).collect()
    }
}
