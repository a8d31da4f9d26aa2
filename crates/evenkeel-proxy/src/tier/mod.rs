//! What is done with a session: the one closed list of it.
//!
//! Resolving is pure and synchronous for every protocol: facts in, a placement out. A new tier is a new variant, matched in
//! [`Tier::resolve`] alone; tiers nest. How an endpoint is then chosen is `evenkeel-core`'s part.

mod balance;

use std::sync::Arc;

use evenkeel_core::units::HashKey;

pub(crate) use balance::BalanceTier;

use crate::route::Facts;

/// What is done with a session.
#[derive(Clone)]
pub(crate) enum Tier {
    /// Put onto one endpoint of a cluster.
    Balance(Arc<BalanceTier>),
}

/// Where a session goes: the cluster, and what a hash balancer places it by.
#[derive(Clone)]
pub(crate) struct Placement {
    pub(crate) tier: Arc<BalanceTier>,
    pub(crate) key: Option<HashKey>,
}

impl Tier {
    /// Where a session with these facts goes.
    pub(crate) fn resolve(&self, facts: &Facts<'_>) -> Placement {
        match self {
            Self::Balance(tier) => Placement {
                tier: Arc::clone(tier),
                key: tier.key(facts),
            },
        }
    }

    /// Whether both lead to the same place, under the same settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (Self::Balance(one), Self::Balance(other)) = (self, other);
        Arc::ptr_eq(one, other)
    }

    /// Whether a placement takes the client's first line.
    pub(crate) fn needs_first_line(&self) -> bool {
        match self {
            Self::Balance(tier) => tier.needs_first_line(),
        }
    }
}
