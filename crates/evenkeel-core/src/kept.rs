//! What of a cluster can outlive the process: plain values, to be written down or handed over by whoever calls.
//!
//! What the operator said is for every successor. What was found out of the endpoints' state is for one that starts at once
//! (an upgrade): after a while it is hearsay, and probes and sessions find it out anew.

use std::sync::Arc;
use std::time::Duration;

use crate::duty::Duty;
use crate::health::Judgement;
use crate::overrides::EndpointOverrides;
use crate::units::{Address, Weight};

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCluster {
    /// The cluster's name.
    pub name: Arc<str>,
    /// What the operator has set, by the endpoints' names.
    pub overrides: Vec<(Arc<str>, EndpointOverrides)>,
    /// Who is on duty. With manual failback, a successor that did not know would fail back by itself.
    pub duty: Duty,
    /// What was found out; may be left empty.
    pub endpoints: Vec<KeptEndpoint>,
}

/// What was found out of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEndpoint {
    /// Its name.
    pub name: Arc<str>,
    /// Where it listens. At another address, it is another endpoint.
    pub address: Address,
    /// The weight in force.
    pub weight: Weight,
    /// Between 0 and `weight`; says nothing about another weight.
    pub effective_weight: u32,
    /// What probes led to; `None` where nothing probed it.
    pub judgement: Option<Judgement>,
    /// What sessions led to.
    pub standing: KeptStanding,
    /// Ejections since its last success: the next one lasts the longer for them.
    pub ejections: u32,
}

/// Whether an endpoint stands in the ordinary way. In spans of time: another process has a clock of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptStanding {
    /// It does.
    #[default]
    Up,
    /// It warms up.
    SlowStart {
        /// For so long already.
        elapsed: Duration,
    },
    /// It is out.
    Ejected {
        /// For so long yet.
        remaining: Duration,
    },
}
