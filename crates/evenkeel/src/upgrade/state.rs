//! What is known of endpoints, as the file that one process hands to the next: what the operator has set, what probes and sessions
//! have taught. JSON; a field that is not known is passed over, and one that is missing has its default.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{Address, Weight};
use evenkeel_core::{
    Duty, EndpointOverrides, Judgement, KeptCluster, KeptEndpoint, KeptStanding, Overridden,
    Service,
};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// It changes when a field changes its meaning.
const VERSION: u32 = 1;
/// About 200,000 endpoints.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Writes it into a file that has no name.
pub(super) fn write(clusters: &[KeptCluster]) -> io::Result<File> {
    let state = State {
        version: VERSION,
        clusters: clusters.iter().map(ClusterState::from).collect(),
    };
    let mut file = File::from(memfd_create("evenkeel-state", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(&state)?)?;
    Ok(file)
}

/// Reads it from its beginning. What cannot be understood of one cluster or endpoint is left out.
///
/// # Errors
///
/// It is too large, of another version, or not of this shape at all.
pub(super) fn read(mut file: File) -> io::Result<Vec<KeptCluster>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let OnlyVersion { version } = serde_json::from_slice(&bytes)?;
    if version != VERSION {
        return Err(io::Error::other(format!(
            "its version is {version}, not {VERSION}"
        )));
    }
    let state: State = serde_json::from_slice(&bytes)?;
    Ok(state.clusters.iter().map(ClusterState::kept).collect())
}

#[derive(Deserialize)]
struct OnlyVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    clusters: Vec<ClusterState>,
}

#[derive(Serialize, Deserialize)]
struct ClusterState {
    name: String,
    #[serde(default)]
    on_duty: DutyWord,
    #[serde(default)]
    overrides: Vec<OverrideState>,
    #[serde(default)]
    endpoints: Vec<EndpointState>,
}

#[derive(Serialize, Deserialize)]
struct OverrideState {
    endpoint: String,
    weight: Option<Instead<u32>>,
    service: Option<Instead<ServiceWord>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Instead<T> {
    configured: T,
    value: T,
}

#[derive(Serialize, Deserialize)]
struct EndpointState {
    name: String,
    address: AddressState,
    weight: u32,
    effective_weight: u32,
    health: Option<HealthWord>,
    #[serde(default)]
    standing: StandingState,
    #[serde(default)]
    ejections: u32,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StandingState {
    #[default]
    Up,
    SlowStart {
        elapsed_us: u64,
    },
    Ejected {
        remaining_us: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AddressState {
    Ip(std::net::SocketAddr),
    Unix(PathBuf),
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DutyWord {
    #[default]
    Primaries,
    Backups,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ServiceWord {
    InService,
    Draining,
    Disabled,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HealthWord {
    Unknown,
    Up,
    Down,
}

impl From<&KeptCluster> for ClusterState {
    fn from(kept: &KeptCluster) -> Self {
        let overrides = kept.overrides.iter();
        Self {
            name: kept.name.to_string(),
            on_duty: match kept.duty {
                Duty::Primaries => DutyWord::Primaries,
                Duty::Backups => DutyWord::Backups,
            },
            overrides: overrides
                .map(|(endpoint, overrides)| OverrideState::new(endpoint, *overrides))
                .collect(),
            endpoints: kept.endpoints.iter().map(EndpointState::from).collect(),
        }
    }
}

impl ClusterState {
    fn kept(&self) -> KeptCluster {
        KeptCluster {
            name: self.name.as_str().into(),
            duty: match self.on_duty {
                DutyWord::Primaries => Duty::Primaries,
                DutyWord::Backups => Duty::Backups,
            },
            overrides: self.overrides.iter().map(OverrideState::kept).collect(),
            endpoints: self
                .endpoints
                .iter()
                .filter_map(EndpointState::kept)
                .collect(),
        }
    }
}

impl OverrideState {
    fn new(endpoint: &str, overrides: EndpointOverrides) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            weight: overrides.weight.map(|weight| Instead {
                configured: weight.configured.get(),
                value: weight.value.get(),
            }),
            service: overrides.service.map(|service| Instead {
                configured: service.configured.into(),
                value: service.value.into(),
            }),
        }
    }

    fn kept(&self) -> (Arc<str>, EndpointOverrides) {
        let weight = self.weight.and_then(|weight| {
            Some(Overridden {
                configured: Weight::new(weight.configured)?,
                value: Weight::new(weight.value)?,
            })
        });
        let service = self.service.map(|service| Overridden {
            configured: service.configured.into(),
            value: service.value.into(),
        });
        (
            self.endpoint.as_str().into(),
            EndpointOverrides { weight, service },
        )
    }
}

impl From<&KeptEndpoint> for EndpointState {
    fn from(kept: &KeptEndpoint) -> Self {
        Self {
            name: kept.name.to_string(),
            address: match &kept.address {
                Address::Ip(address) => AddressState::Ip(*address),
                Address::Unix(path) => AddressState::Unix(path.to_path_buf()),
            },
            weight: kept.weight.get(),
            effective_weight: kept.effective_weight,
            health: kept.judgement.map(HealthWord::from),
            standing: kept.standing.into(),
            ejections: kept.ejections,
        }
    }
}

impl EndpointState {
    fn kept(&self) -> Option<KeptEndpoint> {
        Some(KeptEndpoint {
            name: self.name.as_str().into(),
            address: match &self.address {
                AddressState::Ip(address) => Address::Ip(*address),
                AddressState::Unix(path) => Address::Unix(path.as_path().into()),
            },
            weight: Weight::new(self.weight)?,
            effective_weight: self.effective_weight.min(self.weight),
            judgement: self.health.map(Judgement::from),
            standing: self.standing.into(),
            ejections: self.ejections,
        })
    }
}

impl From<KeptStanding> for StandingState {
    fn from(standing: KeptStanding) -> Self {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        match standing {
            KeptStanding::Up => Self::Up,
            KeptStanding::SlowStart { elapsed } => Self::SlowStart {
                elapsed_us: micros(elapsed),
            },
            KeptStanding::Ejected { remaining } => Self::Ejected {
                remaining_us: micros(remaining),
            },
        }
    }
}

impl From<StandingState> for KeptStanding {
    fn from(state: StandingState) -> Self {
        match state {
            StandingState::Up => Self::Up,
            StandingState::SlowStart { elapsed_us } => Self::SlowStart {
                elapsed: Duration::from_micros(elapsed_us),
            },
            StandingState::Ejected { remaining_us } => Self::Ejected {
                remaining: Duration::from_micros(remaining_us),
            },
        }
    }
}

impl From<Service> for ServiceWord {
    fn from(service: Service) -> Self {
        match service {
            Service::InService => Self::InService,
            Service::Draining => Self::Draining,
            Service::Disabled => Self::Disabled,
        }
    }
}

impl From<ServiceWord> for Service {
    fn from(word: ServiceWord) -> Self {
        match word {
            ServiceWord::InService => Self::InService,
            ServiceWord::Draining => Self::Draining,
            ServiceWord::Disabled => Self::Disabled,
        }
    }
}

impl From<Judgement> for HealthWord {
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Unknown => Self::Unknown,
            Judgement::Up => Self::Up,
            Judgement::Down => Self::Down,
        }
    }
}

impl From<HealthWord> for Judgement {
    fn from(word: HealthWord) -> Self {
        match word {
            HealthWord::Unknown => Self::Unknown,
            HealthWord::Up => Self::Up,
            HealthWord::Down => Self::Down,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn weight(weight: u32) -> Weight {
        Weight::new(weight).unwrap()
    }

    fn endpoint(name: &str, address: Address) -> KeptEndpoint {
        KeptEndpoint {
            name: name.into(),
            address,
            weight: weight(3),
            effective_weight: 1,
            judgement: Some(Judgement::Down),
            standing: KeptStanding::Ejected {
                remaining: Duration::from_millis(4_200),
            },
            ejections: 2,
        }
    }

    fn known() -> KeptCluster {
        KeptCluster {
            name: "mysql".into(),
            duty: Duty::Backups,
            overrides: vec![(
                "db1".into(),
                EndpointOverrides {
                    weight: Some(Overridden {
                        configured: weight(3),
                        value: weight(5),
                    }),
                    service: Some(Overridden {
                        configured: Service::InService,
                        value: Service::Draining,
                    }),
                },
            )],
            endpoints: vec![
                endpoint("db1", Address::Ip("10.0.0.1:3306".parse().unwrap())),
                endpoint("db2", Address::Unix(Path::new("/run/db2.sock").into())),
            ],
        }
    }

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    /// What is written is read.
    #[test]
    fn nothing_is_forgotten() {
        let known = [known()];
        assert_eq!(read(write(&known).unwrap()).unwrap(), known);
    }

    /// Another version, and what is none, are told from a state; an absurd number costs only what it belongs to.
    #[test]
    fn strange_states_are_no_states() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"version":7,"clusters":[]}"#,
            r#"{"version":1}"#,
        ] {
            assert!(read(file(text)).is_err(), "{text}");
        }
        let heavy = r#"{"version":1,"later":true,"clusters":[{"name":"x","endpoints":[
            {"name":"a","address":{"ip":"10.0.0.1:1"},"weight":4000000000,"effective_weight":1}]}]}"#;
        assert!(read(file(heavy)).unwrap()[0].endpoints.is_empty());
    }
}
