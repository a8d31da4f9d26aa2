//! What a cluster is configured to be: its endpoints and its policies, as immutable values.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::units::{Address, Weight};

/// A named set of interchangeable endpoints and the policies they are used by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The cluster's name.
    pub name: Arc<str>,
    /// At most [`ClusterSpec::ENDPOINTS_MAX`]; names are unique.
    pub endpoints: Vec<EndpointSpec>,
    /// Who gets the next session.
    pub balance: Balance,
    /// How failures fade an endpoint out.
    pub trials: TrialPolicy,
    /// When failures in a row take an endpoint out; `None` never.
    pub ejection: Option<EjectionPolicy>,
    /// How long a new or returned endpoint takes to reach its weight; zero is at once. Never at process start.
    pub slow_start: Duration,
    /// The most sessions that may wait for a free slot.
    pub queue_max: usize,
    /// What to do when no endpoint is usable.
    pub when_none: WhenNone,
    /// When probes take an endpoint out and bring it back; `None` where nothing probes.
    pub health: Option<HealthPolicy>,
    /// What happens when primaries return while backups have the work.
    pub failback: Failback,
    /// Which endpoints nobody can list yet.
    pub awaited: Awaited,
}

impl ClusterSpec {
    /// The most endpoints in one cluster.
    pub const ENDPOINTS_MAX: usize = 4096;
}

/// Whether endpoints may come that are configured by name, while nobody knows yet where the name leads. Manual failback
/// waits for them as for endpoints before their first probe; nothing else does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Ordinary ones.
    pub primaries: bool,
    /// Such as stand in for them.
    pub backups: bool,
}

/// One upstream address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSpec {
    /// Unique in its cluster. Hashes and kept state go by it.
    pub name: Arc<str>,
    /// A new address under an old name starts with fresh state.
    pub address: Address,
    /// Its share.
    pub weight: Weight,
    /// Used only when no primary is usable.
    pub backup: bool,
    /// Takes no new work.
    pub disabled: bool,
    /// The most leases at one time; `None` is no limit.
    pub max_connections: Option<NonZeroU32>,
}

/// The balancing algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Smooth weighted round robin.
    #[default]
    RoundRobin,
    /// Weighted random.
    Random,
    /// The less loaded, by weight, of two drawn at random.
    TwoChoices,
    /// The smallest ratio of leases to weight; among equals, weighted round robin.
    LeastConnections,
    /// By the hash of the client's address.
    SourceHash(HashPolicy),
    /// By the hash of a key.
    Hash(HashPolicy),
}

/// How a hash balancer spreads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashPolicy {
    /// With `Some(percent)`, at least 100, an endpoint that holds more than that share of its fair part of the leases is
    /// passed over ("consistent hashing with bounded loads"); `None` has no such bound.
    pub bounded_load_percent: Option<u32>,
}

/// How effective weight works its way back (the fading itself is always on: −1 for a failure, +1 for a success).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialPolicy {
    /// How long after its last failure an endpoint at effective weight 0 gets one trial; doubles with each failed trial.
    pub every: Duration,
    /// What the doubling stops at.
    pub every_max: Duration,
}

impl Default for TrialPolicy {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(1),
            every_max: Duration::from_secs(30),
        }
    }
}

/// When failures in a row take an endpoint out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectionPolicy {
    /// How many failures in a row; at least 1.
    pub failures: u32,
    /// How long the first time; it doubles with each ejection in a row.
    pub base: Duration,
    /// What the doubling stops at.
    pub max: Duration,
    /// The largest share of a cluster's endpoints, in percent, that may be out at one time: rounded down, so that it is
    /// never passed. The last usable endpoint is never ejected, whatever the share.
    pub share_max_percent: u32,
}

impl Default for EjectionPolicy {
    fn default() -> Self {
        Self {
            failures: 5,
            base: Duration::from_secs(10),
            max: Duration::from_secs(300),
            share_max_percent: 50,
        }
    }
}

/// What to do when no endpoint is usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenNone {
    /// Refuse at once.
    #[default]
    Fail,
    /// Use every endpoint that the operator has not taken out, as if it were up: ejected, down and unknown ones too.
    UseAll,
}

/// How many probes in a row change the judgement of an endpoint; the first one of all decides alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Passed ones that bring an endpoint back that was down; at least 1.
    pub rise: u32,
    /// Failed ones that take an endpoint out that was up; at least 1. They may take the last one out.
    pub fall: u32,
}

/// Who has the work once primaries have returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failback {
    /// The primaries, at once.
    #[default]
    Auto,
    /// The backups, until the operator says otherwise or all of them are out: a primary that comes and goes does not
    /// split the work.
    Manual,
}
