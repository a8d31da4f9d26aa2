//! Which changes of endpoints an operator should read about. They are found by comparing one look with the one before, so
//! that the data path has nothing to do with it; what comes and goes between two looks is not told.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_core::{ClusterStatus, EndpointState, EndpointStatus};
use evenkeel_proxy::control::report::failure_code;

use crate::span::span;

/// How well an endpoint does, as far as an operator cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It takes its share, or an operator decided that it does not.
    Serving,
    /// At effective weight 0.
    OnTrial,
    /// Out, after failures in a row.
    Ejected,
    /// Out, after failed probes.
    Down,
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Ejected {
        for_millis: u64,
        last_failure: &'static str,
    },
    Faded {
        last_failure: &'static str,
    },
    Down,
    Returned,
}

/// What was seen at the last look. It holds as many entries as there are endpoints.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: HashMap<EndpointId, Standing>,
}

impl Watch {
    /// Looks at a cluster, and logs what has changed.
    pub(crate) fn look(&mut self, cluster: &ClusterStatus, now: Time) {
        for (endpoint, change) in self.changes(cluster, now) {
            tell(&cluster.name, &endpoint, &change);
        }
    }

    fn changes(&mut self, cluster: &ClusterStatus, now: Time) -> Vec<(Arc<str>, Change)> {
        let endpoints = cluster.endpoints.iter();
        endpoints
            .filter_map(|endpoint| Some((Arc::clone(&endpoint.name), self.change(endpoint, now)?)))
            .collect()
    }

    fn change(&mut self, endpoint: &EndpointStatus, now: Time) -> Option<Change> {
        let standing = standing(endpoint.state);
        let before = self
            .seen
            .insert(endpoint.id, standing)
            .unwrap_or(Standing::Serving);
        let last_failure = endpoint
            .last_failure
            .map_or("-", |(failure, _)| failure_code(failure));
        match (before, standing) {
            (before, standing) if before == standing => None,
            (_, Standing::Ejected) => Some(Change::Ejected {
                for_millis: ejected_for(endpoint.state, now),
                last_failure,
            }),
            // From ejection to trials is one step on the way back, not a new fault.
            (Standing::Ejected, Standing::OnTrial) => None,
            (_, Standing::OnTrial) => Some(Change::Faded { last_failure }),
            (_, Standing::Down) => Some(Change::Down),
            (_, Standing::Serving) => Some(Change::Returned),
        }
    }
}

fn standing(state: EndpointState) -> Standing {
    match state {
        EndpointState::Ejected { .. } => Standing::Ejected,
        EndpointState::OnTrial => Standing::OnTrial,
        EndpointState::Down => Standing::Down,
        EndpointState::Up
        | EndpointState::SlowStart
        | EndpointState::Unknown
        | EndpointState::Disabled
        | EndpointState::Draining
        | EndpointState::Removed => Standing::Serving,
    }
}

fn ejected_for(state: EndpointState, now: Time) -> u64 {
    match state {
        EndpointState::Ejected { until } => {
            u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}

fn tell(cluster: &str, endpoint: &str, change: &Change) {
    match change {
        Change::Ejected {
            for_millis,
            last_failure,
        } => {
            tracing::warn!(
                cluster,
                endpoint,
                out_for = span(*for_millis),
                last_failure,
                "endpoint ejected: it failed too often in a row"
            );
        }
        Change::Faded { last_failure } => {
            tracing::warn!(
                cluster,
                endpoint,
                last_failure,
                "endpoint on trial: its effective weight has come down to 0"
            );
        }
        Change::Down => tracing::warn!(cluster, endpoint, "endpoint down: its probes fail"),
        Change::Returned => tracing::info!(cluster, endpoint, "endpoint returned"),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::units::{Address, Weight};
    use evenkeel_core::{Duty, EndpointOverrides, Failback, Failure, Losses, Service};

    use super::*;

    fn look(watch: &mut Watch, state: EndpointState) -> Option<Change> {
        let endpoint = EndpointStatus {
            id: EndpointId(7),
            name: Arc::from("db1"),
            address: Address::Ip("10.0.0.11:3306".parse().unwrap()),
            state,
            backup: false,
            overrides: EndpointOverrides::default(),
            service: Service::InService,
            judgement: None,
            weight: Weight::ONE,
            effective_weight: 0,
            in_flight: 0,
            max_connections: None,
            leases: 0,
            established: 0,
            failures: 0,
            losses: Losses::default(),
            last_failure: Some((Failure::Refused, Time::ZERO)),
        };
        let cluster = ClusterStatus {
            name: Arc::from("web"),
            waiting: 0,
            queue_max: 0,
            failback: Failback::Auto,
            duty: Duty::Primaries,
            awaits_failback: false,
            endpoints: vec![endpoint],
        };
        watch
            .changes(&cluster, Time::ZERO)
            .pop()
            .map(|(_, change)| change)
    }

    const EJECTED: EndpointState = EndpointState::Ejected {
        until: Time::from_micros(3_000_000),
    };

    /// An endpoint that fades, is ejected, and comes back by a trial: three lines, each once.
    #[test]
    fn the_fall_and_return_of_an_endpoint() {
        let mut watch = Watch::default();
        let states = [
            EndpointState::Up,
            EndpointState::OnTrial,
            EndpointState::OnTrial,
            EJECTED,
            EJECTED,
            EndpointState::OnTrial,
            EndpointState::Up,
            EndpointState::Up,
        ];

        let told: Vec<_> = states
            .into_iter()
            .filter_map(|state| look(&mut watch, state))
            .collect();

        let last_failure = "refused";
        assert_eq!(
            told,
            [
                Change::Faded { last_failure },
                Change::Ejected {
                    for_millis: 3_000,
                    last_failure
                },
                Change::Returned
            ]
        );
    }

    /// What an operator has decided is no news to an operator.
    #[test]
    fn a_disabled_endpoint_is_no_news() {
        let mut watch = Watch::default();

        assert_eq!(look(&mut watch, EndpointState::Disabled), None);
        assert_eq!(look(&mut watch, EndpointState::Up), None);
    }
}
