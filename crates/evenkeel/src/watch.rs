//! Which changes of endpoints and clusters an operator should read about. They are found by comparing one look with the one before, so
//! that the data path has nothing to do with it; what comes and goes between two looks is not told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use evenkeel_core::units::{EndpointId, Time, Weight};
use evenkeel_core::{ClusterStatus, Duty, EndpointState, EndpointStatus, Overridden, Service};
use evenkeel_proxy::control::operator::service_code;
use evenkeel_proxy::control::report::failure_code;

use crate::span::span;

/// How well an endpoint does, as far as an operator cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It takes its share.
    Serving,
    /// An operator or the configuration decided that it does not.
    TakenOut(Service),
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
    TakenOut(Service),
    Returned,
    Weighed {
        configured: Weight,
        weight: Weight,
    },
    /// The override of its weight is gone.
    WeighedAsConfigured,
}

/// Who has the work of a cluster, as far as an operator cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shift {
    Primaries,
    Backups,
    /// Backups, though a primary is usable.
    AwaitsFailback,
}

/// What was seen at the last look. It holds as many entries as there are endpoints.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: HashMap<EndpointId, Standing>,
    /// Those whose weight an operator has set.
    weights: HashMap<EndpointId, Overridden<Weight>>,
    /// As many as there are clusters.
    shifts: HashMap<Arc<str>, Shift>,
}

impl Watch {
    /// Looks at all clusters, logs what has changed, and forgets who has gone.
    pub(crate) fn look(&mut self, clusters: &[ClusterStatus], now: Time) {
        for cluster in clusters {
            for (endpoint, change) in self.changes(cluster, now) {
                tell(&cluster.name, &endpoint, &change);
            }
            if let Some(shift) = self.shift(cluster) {
                tell_shift(&cluster.name, shift);
            }
        }
        self.forget_all_but(clusters);
    }

    fn forget_all_but(&mut self, clusters: &[ClusterStatus]) {
        let present: HashSet<EndpointId> = clusters
            .iter()
            .flat_map(|cluster| &cluster.endpoints)
            .map(|endpoint| endpoint.id)
            .collect();
        self.seen.retain(|endpoint, _| present.contains(endpoint));
        self.weights
            .retain(|endpoint, _| present.contains(endpoint));
        let names: HashSet<&str> = clusters.iter().map(|cluster| &*cluster.name).collect();
        self.shifts.retain(|name, _| names.contains(&**name));
    }

    fn shift(&mut self, cluster: &ClusterStatus) -> Option<Shift> {
        let shift = match (cluster.duty, cluster.awaits_failback) {
            (Duty::Primaries, _) => Shift::Primaries,
            (Duty::Backups, false) => Shift::Backups,
            (Duty::Backups, true) => Shift::AwaitsFailback,
        };
        let before = self.shifts.insert(Arc::clone(&cluster.name), shift);
        (before.unwrap_or(Shift::Primaries) != shift).then_some(shift)
    }

    fn changes(&mut self, cluster: &ClusterStatus, now: Time) -> Vec<(Arc<str>, Change)> {
        let mut changes = Vec::new();
        for endpoint in &cluster.endpoints {
            let found = [self.change(endpoint, now), self.weighing(endpoint)];
            let named = found.into_iter().flatten();
            changes.extend(named.map(|change| (Arc::clone(&endpoint.name), change)));
        }
        changes
    }

    fn weighing(&mut self, endpoint: &EndpointStatus) -> Option<Change> {
        let before = match endpoint.overrides.weight {
            Some(weight) => self.weights.insert(endpoint.id, weight),
            None => self.weights.remove(&endpoint.id),
        };
        match (before, endpoint.overrides.weight) {
            (before, after) if before == after => None,
            (_, None) => Some(Change::WeighedAsConfigured),
            (_, Some(Overridden { configured, value })) => Some(Change::Weighed {
                configured,
                weight: value,
            }),
        }
    }

    fn change(&mut self, endpoint: &EndpointStatus, now: Time) -> Option<Change> {
        let standing = standing(endpoint.state);
        // What the configuration says at a start is no news; what an operator had set before it is.
        let at_first = match standing {
            Standing::TakenOut(_) if endpoint.overrides.service.is_none() => standing,
            _ => Standing::Serving,
        };
        let before = self.seen.insert(endpoint.id, standing).unwrap_or(at_first);
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
            // What probes find, the prober tells itself, with the reason.
            (_, Standing::Down) | (Standing::Down, Standing::Serving) => None,
            (_, Standing::TakenOut(service)) => Some(Change::TakenOut(service)),
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
        | EndpointState::Removed => Standing::Serving,
        EndpointState::Disabled => Standing::TakenOut(Service::Disabled),
        EndpointState::Draining => Standing::TakenOut(Service::Draining),
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
        Change::TakenOut(service) => {
            let state = service_code(*service);
            tracing::info!(
                cluster,
                endpoint,
                state,
                "endpoint taken out: it gets nothing new"
            );
        }
        Change::Weighed { configured, weight } => {
            tracing::info!(cluster, endpoint, %weight, %configured, "weight set by an operator");
        }
        Change::WeighedAsConfigured => {
            tracing::info!(cluster, endpoint, "weight as configured again");
        }
        Change::Returned => tracing::info!(cluster, endpoint, "endpoint returned"),
    }
}

fn tell_shift(cluster: &str, shift: Shift) {
    match shift {
        Shift::Primaries => tracing::info!(cluster, "the primaries have the work again"),
        Shift::Backups => {
            tracing::warn!(cluster, "the backups have taken over: no primary is usable");
        }
        Shift::AwaitsFailback => {
            tracing::warn!(
                cluster,
                "a primary is usable again; the backups keep the work until `evenkeel failback`"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::units::Address;
    use evenkeel_core::{EndpointOverrides, Failback, Failure, Losses};

    use super::*;

    fn look(watch: &mut Watch, state: EndpointState) -> Option<Change> {
        let endpoint = EndpointStatus {
            id: EndpointId(7),
            name: Arc::from("db1"),
            address: Address::Ip("10.0.0.11:3306".parse().unwrap()),
            state,
            slow_start_percent: None,
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
        watch
            .changes(&cluster(vec![endpoint]), Time::ZERO)
            .pop()
            .map(|(_, change)| change)
    }

    fn cluster(endpoints: Vec<EndpointStatus>) -> ClusterStatus {
        ClusterStatus {
            name: Arc::from("web"),
            waiting: 0,
            queue_max: 0,
            failback: Failback::Manual,
            duty: Duty::Primaries,
            awaits_failback: false,
            endpoints,
        }
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

    /// What the configuration says at the start is no news; what changes later is.
    #[test]
    fn an_endpoint_that_is_taken_out_is_news_unless_it_was_so_from_the_start() {
        let mut watch = Watch::default();

        assert_eq!(look(&mut watch, EndpointState::Disabled), None);
        assert_eq!(look(&mut watch, EndpointState::Up), Some(Change::Returned));
        let drained = Some(Change::TakenOut(Service::Draining));
        assert_eq!(look(&mut watch, EndpointState::Draining), drained);
        assert_eq!(look(&mut watch, EndpointState::Draining), None);
    }

    /// Backups take over, a primary returns and waits, the operator gives it the work: three lines.
    #[test]
    fn who_has_the_work_is_told() {
        let mut watch = Watch::default();
        let mut told = |duty, awaits_failback| {
            watch.shift(&ClusterStatus {
                duty,
                awaits_failback,
                ..cluster(Vec::new())
            })
        };

        assert_eq!(told(Duty::Primaries, false), None);
        assert_eq!(told(Duty::Backups, false), Some(Shift::Backups));
        assert_eq!(told(Duty::Backups, true), Some(Shift::AwaitsFailback));
        assert_eq!(told(Duty::Backups, true), None);
        assert_eq!(told(Duty::Primaries, false), Some(Shift::Primaries));
    }

    /// What was seen of an endpoint goes with it.
    #[test]
    fn who_has_gone_is_forgotten() {
        let mut watch = Watch::default();
        look(&mut watch, EJECTED);

        watch.look(&[], Time::ZERO);

        assert!(watch.seen.is_empty());
    }
}
