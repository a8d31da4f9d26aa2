//! A cluster as a session sees it: its settings, its live state, and the key it places by.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{HashKey, Time};
use evenkeel_core::{Balance, Cluster};
use evenkeel_reactor::Origin;

use crate::route::Facts;
use crate::settings::{ClusterSettings, KeySource, PoolPolicy, ProxyVersion};

/// One cluster as one reload left it, shared by all workers. The cluster itself lives on from reload to reload.
pub(crate) struct BalanceTier {
    pub(crate) settings: TierSettings,
    pub(crate) cluster: Arc<Cluster>,
}

/// What a session has to know of its cluster. A session keeps the value that it was placed by; endpoints and policies are not in
/// it, since these it asks the cluster for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TierSettings {
    pub(crate) name: Arc<str>,
    balance: Balance,
    key: Option<KeySource>,
    pub(crate) proxy_protocol: Option<ProxyVersion>,
    pub(crate) connect_timeout: Duration,
    pub(crate) queue_timeout: Duration,
    pub(crate) first_byte_timeout: Option<Duration>,
    pub(crate) attempts: usize,
    pub(crate) replay: usize,
    pub(crate) pool: PoolPolicy,
}

impl From<&ClusterSettings> for TierSettings {
    fn from(settings: &ClusterSettings) -> Self {
        Self {
            name: Arc::clone(&settings.spec.name),
            balance: settings.spec.balance,
            key: settings.key,
            proxy_protocol: settings.proxy_protocol,
            connect_timeout: settings.connect_timeout,
            queue_timeout: settings.queue_timeout,
            first_byte_timeout: settings.first_byte_timeout,
            attempts: settings.attempts,
            replay: settings.replay,
            pool: settings.pool,
        }
    }
}

impl BalanceTier {
    /// The cluster comes to life, with all endpoints as configured. `phase` shifts where round robin starts.
    pub(crate) fn start(settings: &ClusterSettings, phase: u64, now: Time) -> Arc<Self> {
        let cluster = Cluster::new(settings.spec.clone(), phase, now);
        let settings = settings.into();
        Arc::new(Self { settings, cluster })
    }

    /// A cluster that lives already.
    pub(crate) fn of(cluster: Arc<Cluster>, settings: &ClusterSettings) -> Arc<Self> {
        let settings = settings.into();
        Arc::new(Self { settings, cluster })
    }

    /// The same cluster under other settings; the very same value where these are no others.
    pub(crate) fn under(self: &Arc<Self>, settings: &ClusterSettings) -> Arc<Self> {
        let settings = settings.into();
        if self.settings == settings {
            return Arc::clone(self);
        }
        let cluster = Arc::clone(&self.cluster);
        Arc::new(Self { settings, cluster })
    }

    /// The cluster's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.settings.name
    }

    pub(super) fn key(&self, facts: &Facts<'_>) -> Option<HashKey> {
        match (self.settings.balance, self.settings.key) {
            (Balance::SourceHash(_), _) | (Balance::Hash(_), Some(KeySource::SourceAddress)) => {
                Some(source_key(facts.client))
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

/// All clients of a Unix socket are of one machine, so they have one key, as all clients of one IP address have.
fn source_key(client: Origin) -> HashKey {
    client
        .ip()
        .map_or_else(|| HashKey::of_bytes(b"unix"), HashKey::of_address)
}
