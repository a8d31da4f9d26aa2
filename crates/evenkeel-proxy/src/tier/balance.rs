//! A cluster as a session sees it: its settings, its live state, and the key it places by.

use std::sync::Arc;

use evenkeel_core::units::{HashKey, Time};
use evenkeel_core::{Balance, Cluster};

use crate::route::Facts;
use crate::settings::{ClusterSettings, KeySource};

/// One cluster, shared by all workers.
pub(crate) struct BalanceTier {
    pub(crate) settings: ClusterSettings,
    pub(crate) cluster: Arc<Cluster>,
}

impl BalanceTier {
    /// The cluster comes to life, with all endpoints as configured. `phase` shifts where round robin starts.
    pub(crate) fn start(settings: ClusterSettings, phase: u64, now: Time) -> Arc<Self> {
        let cluster = Cluster::new(settings.spec.clone(), phase, now);
        Arc::new(Self { settings, cluster })
    }

    /// The cluster's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.settings.spec.name
    }

    pub(super) fn key(&self, facts: &Facts<'_>) -> Option<HashKey> {
        match (self.settings.spec.balance, self.settings.key) {
            (Balance::SourceHash(_), _) | (Balance::Hash(_), Some(KeySource::SourceAddress)) => {
                Some(HashKey::of_address(facts.client.ip()))
            }
            (Balance::Hash(_), Some(KeySource::FirstLine)) => {
                facts.first_line.map(HashKey::of_bytes)
            }
            _ => None,
        }
    }

    pub(super) fn needs_first_line(&self) -> bool {
        self.settings.key == Some(KeySource::FirstLine)
    }
}
