//! What the operator sets at run time, over what is configured.
//!
//! Pure: the configured cluster and the overrides go in, the cluster that is in force comes out. An override goes by its
//! endpoint's name and remembers what was configured when it was set. It stands until that very value changes in the
//! configuration, or the operator takes it back; a restart forgets it, unless somebody keeps it (`operate.rs`). While no
//! endpoint has its name it waits: names that come from elsewhere may go and come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{ClusterSpec, EndpointSpec};
use crate::fault::{self, Fault};
use crate::units::Weight;

/// What an operator can say of an endpoint at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Use this weight. The configured one takes the override back.
    Weight(Weight),
    /// Give it nothing new; what runs on it may finish, and it is probed on.
    Drain,
    /// The same, and it is not probed.
    Disable,
    /// Take `Drain` or `Disable` back. On an endpoint that is disabled by configuration, an override that lets it work.
    /// It never overrules a probe.
    Enable,
}

/// Whether the operator lets an endpoint take new work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// It takes its share, if it is well.
    #[default]
    InService,
    /// It gets nothing new, and is probed.
    Draining,
    /// It gets nothing new, and is not probed.
    Disabled,
}

/// A value that the operator set, and the configured one that it stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overridden<T> {
    /// What was configured when the override was set. Another one beats it.
    pub configured: T,
    /// What is in force instead.
    pub value: T,
}

/// All that the operator has set on one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointOverrides {
    /// Its weight.
    pub weight: Option<Overridden<Weight>>,
    /// Whether it takes new work. Configuration knows only `InService` and `Disabled`.
    pub service: Option<Overridden<Service>>,
}

/// No endpoint of the cluster has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEndpoint;

/// A cluster as configured, and what the operator has set over it.
pub(crate) struct Plan {
    configured: ClusterSpec,
    /// By name. Bounded: [`Plan::ABSENT_MAX`] beside those of present endpoints.
    overrides: BTreeMap<Arc<str>, EndpointOverrides>,
}

impl Plan {
    /// The most overrides that are kept for names that no endpoint has.
    const ABSENT_MAX: usize = ClusterSpec::ENDPOINTS_MAX;

    pub(crate) const fn new(configured: ClusterSpec) -> Self {
        Self {
            configured,
            overrides: BTreeMap::new(),
        }
    }

    /// Takes a new configuration: overrides of values that it changes fall.
    pub(crate) fn reconfigure(&mut self, configured: ClusterSpec) {
        self.configured = configured;
        if fault::injected(Fault::OverridesForgotten) {
            self.overrides.clear();
        }
        for endpoint in &self.configured.endpoints {
            if let Some(overrides) = self.overrides.get_mut(&endpoint.name) {
                overrides.fall_to(endpoint);
            }
        }
        self.tidy();
    }

    /// Sets or takes back an override on a present endpoint.
    pub(crate) fn set(&mut self, name: &str, what: Override) -> Result<(), UnknownEndpoint> {
        let endpoint = self.find(name).ok_or(UnknownEndpoint)?;
        let (name, weight, service) = (
            Arc::clone(&endpoint.name),
            endpoint.weight,
            service_of(endpoint),
        );
        let overrides = self.overrides.entry(name).or_default();
        match what {
            Override::Weight(value) => overrides.weight = Overridden::of(weight, value),
            Override::Drain => overrides.service = Overridden::of(service, Service::Draining),
            Override::Disable => overrides.service = Overridden::of(service, Service::Disabled),
            Override::Enable => overrides.service = Overridden::of(service, Service::InService),
        }
        self.tidy();
        Ok(())
    }

    /// Takes over what another process kept; what was configured otherwise than it is now falls.
    pub(crate) fn restore(&mut self, name: &Arc<str>, mut kept: EndpointOverrides) {
        if let Some(endpoint) = self.find(name) {
            kept.fall_to(endpoint);
        }
        self.overrides.insert(Arc::clone(name), kept);
        self.tidy();
    }

    /// All overrides, also of names that no endpoint has at this moment.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (&Arc<str>, &EndpointOverrides)> {
        self.overrides.iter()
    }

    pub(crate) fn overrides_of(&self, name: &str) -> EndpointOverrides {
        self.overrides.get(name).copied().unwrap_or_default()
    }

    /// The configuration with the overrides in it.
    pub(crate) fn in_force(&self) -> ClusterSpec {
        let mut spec = self.configured.clone();
        for endpoint in &mut spec.endpoints {
            let overrides = self.overrides_of(&endpoint.name);
            endpoint.weight = overrides.weight_over(endpoint.weight);
            endpoint.disabled = overrides.service_over(endpoint) != Service::InService;
        }
        spec
    }

    /// The overrides of each configured endpoint, in their order.
    pub(crate) fn by_position(&self) -> Vec<EndpointOverrides> {
        let endpoints = self.configured.endpoints.iter();
        endpoints
            .map(|endpoint| self.overrides_of(&endpoint.name))
            .collect()
    }

    fn find(&self, name: &str) -> Option<&EndpointSpec> {
        let mut endpoints = self.configured.endpoints.iter();
        endpoints.find(|endpoint| &*endpoint.name == name)
    }

    /// Drops what says nothing, and absent names over the bound.
    fn tidy(&mut self) {
        self.overrides
            .retain(|_, overrides| *overrides != EndpointOverrides::default());
        let bound = self.configured.endpoints.len() + Self::ABSENT_MAX;
        if self.overrides.len() > bound {
            let configured = &self.configured;
            self.overrides.retain(|name, _| {
                let mut endpoints = configured.endpoints.iter();
                endpoints.any(|endpoint| endpoint.name == *name)
            });
        }
    }
}

impl<T: PartialEq> Overridden<T> {
    /// `None` where the configuration says the same.
    fn of(configured: T, value: T) -> Option<Self> {
        (configured != value).then_some(Self { configured, value })
    }
}

impl EndpointOverrides {
    /// What is in force of a configured weight.
    pub(crate) fn weight_over(&self, configured: Weight) -> Weight {
        self.weight.map_or(configured, |over| over.value)
    }

    /// What is in force of a configured endpoint's service.
    pub(crate) fn service_over(&self, configured: &EndpointSpec) -> Service {
        self.service
            .map_or_else(|| service_of(configured), |over| over.value)
    }

    /// Drops what was set over other values than `endpoint` has now.
    fn fall_to(&mut self, endpoint: &EndpointSpec) {
        if fault::injected(Fault::OverridesOutliveTheFile) {
            return;
        }
        self.weight
            .take_if(|over| over.configured != endpoint.weight);
        self.service
            .take_if(|over| over.configured != service_of(endpoint));
    }
}

const fn service_of(endpoint: &EndpointSpec) -> Service {
    if endpoint.disabled {
        Service::Disabled
    } else {
        Service::InService
    }
}
