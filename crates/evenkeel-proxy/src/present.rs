//! What is in force: the settings, and the run-time objects made of them, as one immutable value that a reload swaps whole.
//!
//! What lives on from one value to the next is inside: a listener's sockets (under its number) and counts, and the clusters.
//! How the next value is made and brought to the workers is in [`reload`](crate::reload).

use std::sync::{Arc, Weak};

use evenkeel_core::Cluster;

use crate::discovery::Composition;
use crate::listener::ListenerState;
use crate::settings::Settings;
use crate::tier::BalanceTier;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Present {
    /// Grows with every change.
    pub(crate) version: u64,
    /// As configured.
    pub(crate) settings: Arc<Settings>,
    /// The clusters of the settings, with what their names led to when the directory had this version.
    pub(crate) compositions: Arc<[Composition]>,
    pub(crate) names_version: u64,
    /// In the order of the settings, as the tiers.
    pub(crate) listeners: Vec<Arc<ListenerState>>,
    pub(crate) tiers: Vec<Arc<BalanceTier>>,
    /// No longer configured, but perhaps in use. As many as there are sessions on them, at the most, once a reload has looked.
    pub(crate) leaving: Vec<Leaving>,
    /// For the next listener that is bound.
    pub(crate) next_number: u32,
}

/// A cluster that lives as long as its last session.
#[derive(Clone)]
pub(crate) struct Leaving {
    pub(crate) name: Arc<str>,
    pub(crate) cluster: Weak<Cluster>,
}

impl Present {
    /// All clusters for which time passes: the configured ones and those that sessions still use.
    pub(crate) fn living_clusters(&self) -> impl Iterator<Item = Arc<Cluster>> + '_ {
        let configured = self.tiers.iter().map(|tier| Arc::clone(&tier.cluster));
        let leaving = self.leaving.iter();
        configured.chain(leaving.filter_map(|leaving| leaving.cluster.upgrade()))
    }

    pub(crate) fn listener(&self, name: &str) -> Option<&Arc<ListenerState>> {
        let mut listeners = self.listeners.iter();
        listeners.find(|listener| &*listener.settings.name == name)
    }

    pub(crate) fn tier(&self, name: &str) -> Option<&Arc<BalanceTier>> {
        self.tiers.iter().find(|tier| &**tier.name() == name)
    }

    /// A cluster of that name that is not configured and not gone.
    pub(crate) fn leaving(&self, name: &str) -> Option<Arc<Cluster>> {
        let mut leaving = self.leaving.iter();
        leaving
            .find(|leaving| &*leaving.name == name)
            .and_then(|leaving| leaving.cluster.upgrade())
    }
}
