//! What an operator can say of endpoints on the control socket, and how it is answered: values only.

use std::fmt;

use evenkeel_core::units::Weight;
use evenkeel_core::{Duty, EndpointOverrides, Failback, Judgement, Overridden, Override, Service};
use serde::{Deserialize, Serialize};

use super::report::EndpointReport;

/// What is to be done with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointAct {
    /// Nothing: only tell how it is.
    Show,
    /// Use this weight.
    Weight(u32),
    /// Give it nothing new; probe it on.
    Drain,
    /// Give it nothing new, and don't probe it.
    Disable,
    /// Take the other two back.
    Enable,
}

impl EndpointAct {
    /// What the core is told. `Ok(None)` changes nothing.
    ///
    /// # Errors
    ///
    /// A weight that is none.
    pub fn to_override(self) -> Result<Option<Override>, WeightTooLarge> {
        Ok(Some(match self {
            Self::Show => return Ok(None),
            Self::Weight(weight) => Override::Weight(Weight::new(weight).ok_or(WeightTooLarge)?),
            Self::Drain => Override::Drain,
            Self::Disable => Override::Disable,
            Self::Enable => Override::Enable,
        }))
    }
}

/// A weight above the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightTooLarge;

impl fmt::Display for WeightTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a weight is at most {}", Weight::MAX)
    }
}

/// An endpoint after the operator's word, or as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointAnswer {
    /// Its cluster's name.
    pub cluster: String,
    /// The endpoint.
    pub endpoint: EndpointReport,
    /// The line that would say the same in the configuration, under `[cluster.…]`; `None` where that says it already.
    pub permanent: Option<String>,
    /// What becomes of it at a restart.
    pub kept: Kept,
}

/// Whether an override outlives the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// There is no state file: a restart forgets it.
    UntilRestart,
    /// It is in this file.
    InFile(String),
    /// It should be in a file, and could not be written; what is in the way.
    NotWritten(String),
}

/// A cluster whose primaries have the work again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailbackAnswer {
    /// The cluster's name.
    pub cluster: String,
}

/// What the operator has set on an endpoint; values that are not overridden are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverridesReport {
    /// Its weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<OverrideReport<u32>>,
    /// `in-service`, `draining` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<OverrideReport<String>>,
}

/// A value that an operator set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverrideReport<T> {
    /// As the configuration has it.
    pub configured: T,
    /// As it is.
    pub value: T,
}

impl From<&EndpointOverrides> for OverridesReport {
    fn from(overrides: &EndpointOverrides) -> Self {
        Self {
            weight: overrides.weight.map(|over| report(over, Weight::get)),
            service: overrides
                .service
                .map(|over| report(over, |service| service_code(service).to_owned())),
        }
    }
}

fn report<T, R>(
    Overridden { configured, value }: Overridden<T>,
    told: fn(T) -> R,
) -> OverrideReport<R> {
    OverrideReport {
        configured: told(configured),
        value: told(value),
    }
}

/// Whether an endpoint takes work, in one word.
pub const fn service_code(service: Service) -> &'static str {
    match service {
        Service::InService => "in-service",
        Service::Draining => "draining",
        Service::Disabled => "disabled",
    }
}

/// The word's meaning; the way back from [`service_code`].
pub fn service_of(code: &str) -> Option<Service> {
    let all = [Service::InService, Service::Draining, Service::Disabled];
    all.into_iter()
        .find(|service| service_code(*service) == code)
}

/// What probes led to, in one word.
pub const fn judgement_code(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Unknown => "unknown",
        Judgement::Up => "up",
        Judgement::Down => "down",
    }
}

/// Who has the work, in one word.
pub const fn duty_code(duty: Duty) -> &'static str {
    match duty {
        Duty::Primaries => "primaries",
        Duty::Backups => "backups",
    }
}

/// How primaries get the work back, in one word.
pub const fn failback_code(failback: Failback) -> &'static str {
    match failback {
        Failback::Auto => "auto",
        Failback::Manual => "manual",
    }
}
