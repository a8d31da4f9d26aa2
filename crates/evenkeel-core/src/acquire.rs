//! CONTRACT STUB: the signatures other crates build against. The core's author replaces the bodies.
use std::sync::Arc;

use crate::cluster::ClusterSpec;
use crate::units::{Address, EndpointId, HashKey, Time, Weight};

/// A cluster at run time, shared by all workers. (Live state: in-flight counts, effective weights, ejections, wait queue.)
pub struct Cluster {}

/// What a balancer may know of a session: never the request itself.
pub struct Request<'a> {
    /// The key for hash balancers (for `source-hash`, of the client's address).
    pub key: Option<HashKey>,
    /// Endpoints this session has tried already; used again only when no other is usable.
    pub tried: &'a Tried,
    /// Who waits when every usable endpoint is full, and the token to wake it by; `None` refuses instead of waiting.
    pub waiter: Option<(&'a Arc<dyn Waiter>, u64)>,
}

/// A short, bounded list of endpoints, without allocation (capacity 16; pushing beyond it forgets the oldest).
#[derive(Clone, Debug, Default)]
pub struct Tried {}
impl Tried {
    pub fn push(&mut self, endpoint: EndpointId) {
        let _ = endpoint;
        todo!()
    }
    pub fn contains(&self, endpoint: EndpointId) -> bool {
        let _ = endpoint;
        todo!()
    }
}

/// Someone who can be handed a freed slot, from any thread. Called without locks held; must not block.
pub trait Waiter: Send + Sync {
    /// `token` is the one it waited by. A waiter that has left meanwhile just drops the lease: the slot passes on.
    fn grant(&self, token: u64, lease: Lease);
}

pub enum Acquired {
    Lease(Lease),
    Wait(Ticket),
    Refused(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoEndpoint,
    QueueFull,
    /* full, and `waiter` was None */ Full,
}

/// A place in the wait queue. Dropping it leaves the queue.
pub struct Ticket {}

/// The right to use one endpoint. `established` at most once, `finish` exactly once; dropping it is `Outcome::Abandoned`.
pub struct Lease {}
impl Lease {
    pub fn endpoint(&self) -> EndpointId {
        todo!()
    }
    pub fn name(&self) -> &Arc<str> {
        todo!()
    }
    pub fn address(&self) -> &Address {
        todo!()
    }
    /// The first answer byte arrived: a success. Later calls do nothing.
    pub fn established(&mut self, now: Time) {
        let _ = now;
        todo!()
    }
    pub fn finish(self, outcome: Outcome, now: Time) {
        let _ = (outcome, now);
        todo!()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended as it should.
    Completed,
    /// The endpoint failed before its first answer byte (ignored for weight and ejection after `established`).
    Failed(Failure),
    /// Ended by the client, the operator or this machine: says nothing about the endpoint.
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Refused,
    Unreachable,
    ConnectTimeout,
    Reset,
    Closed,
    FirstByteTimeout,
}

impl Cluster {
    /// `phase` shifts the start of round robin (random per process; 0 in exact tests). `now` is process start.
    pub fn new(spec: ClusterSpec, phase: u64, now: Time) -> Arc<Self> {
        let _ = (spec, phase, now);
        todo!()
    }
    /// Swaps the snapshot; live state of endpoints with the same name and address is kept.
    pub fn reconfigure(&self, spec: ClusterSpec, now: Time) {
        let _ = (spec, now);
        todo!()
    }
    pub fn acquire(
        self: &Arc<Self>,
        request: &Request<'_>,
        now: Time,
        rng: &mut fastrand::Rng,
    ) -> Acquired {
        let _ = (request, now, rng);
        todo!()
    }
    /// Lets time pass: ends ejections, advances slow start, grants slots that became free. Call it every 100 ms or so.
    pub fn tick(&self, now: Time) {
        let _ = now;
        todo!()
    }
    pub fn status(&self, now: Time) -> ClusterStatus {
        let _ = now;
        todo!()
    }
    /// Dry run: who would get this request, and why not each other one. Changes nothing.
    pub fn explain(&self, request: &Request<'_>, now: Time) -> Explanation {
        let _ = (request, now);
        todo!()
    }
}

pub struct ClusterStatus {
    pub name: Arc<str>,
    pub waiting: usize,
    pub queue_max: usize,
    pub endpoints: Vec<EndpointStatus>,
}

pub struct EndpointStatus {
    pub id: EndpointId,
    pub name: Arc<str>,
    pub address: Address,
    pub state: EndpointState,
    pub backup: bool,
    pub weight: Weight,
    pub effective_weight: u32,
    pub in_flight: u32,
    pub max_connections: Option<u32>,
    /// Leases given out, sessions established, failures: since process start.
    pub leases: u64,
    pub established: u64,
    pub failures: u64,
    pub last_failure: Option<(Failure, Time)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    Up,
    SlowStart,
    /* at effective weight 0 */ OnTrial,
    Ejected { until: Time },
    Disabled,
    /* removed by a reload, finishing */ Draining,
}

pub struct Explanation {
    pub chosen: Option<EndpointId>,
    pub verdicts: Vec<(EndpointId, Arc<str>, Verdict)>,
}

/// Why an endpoint would, or would not, get a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Chosen,
    /* usable; the text says why another is preferred, e.g. "current 3 < 5" */
    Usable(String),
    WeightZero,
    Disabled,
    Ejected { until: Time },
    Full { in_flight: u32, max: u32 },
    OnTrial { next: Time },
    BackupIdle,
    AlreadyTried,
    OverBoundedLoad,
}
