//! Figures of each cluster and its endpoints.

use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_core::{ClusterStatus, Duty, EndpointOverrides, EndpointStatus, Failure};
use evenkeel_proxy::control::operator::duty_code;
use evenkeel_proxy::control::report::{STATE_CODES, failure_code, state_code};
use evenkeel_proxy::telemetry::counters::{ClusterTally, Counters};

use super::text::Page;
use super::{family, probes};
use crate::desk::Desk;

pub(super) fn write(desk: &Desk, page: &mut Page) {
    let now = desk.proxy.now();
    let clusters: Vec<ClusterStatus> = desk
        .proxy
        .clusters()
        .iter()
        .map(|cluster| cluster.status(now))
        .collect();
    let counters = desk.telemetry.counters();
    write_queues(&clusters, page);
    write_times(&clusters, counters, page);
    write_duties(&clusters, page);
    let endpoints = endpoints(&clusters);
    write_states(&endpoints, page);
    write_gauges(&endpoints, page);
    write_attempts(&endpoints, page);
    write_bytes(&endpoints, counters, page);
    let mut ejections = page.family(&family::ENDPOINT_EJECTIONS);
    for (cluster, endpoint) in &endpoints {
        ejections.put(&[cluster, &endpoint.name], endpoint.losses.ejections);
    }
    probes::write(&endpoints, &desk.probes, page);
}

fn write_queues(clusters: &[ClusterStatus], page: &mut Page) {
    let mut waiting = page.family(&family::CLUSTER_WAITING);
    for cluster in clusters {
        waiting.put(&[&cluster.name], cluster.waiting);
    }
    let mut most = page.family(&family::CLUSTER_QUEUE_MAX);
    for cluster in clusters {
        most.put(&[&cluster.name], cluster.queue_max);
    }
}

fn write_times(clusters: &[ClusterStatus], counters: &Counters, page: &mut Page) {
    let counted: Vec<(&str, Arc<ClusterTally>)> = clusters
        .iter()
        .filter_map(|cluster| Some((&*cluster.name, counters.cluster(&cluster.name)?)))
        .collect();
    let mut waits = page.family(&family::CLUSTER_WAITS);
    for (name, tally) in &counted {
        waits.put_histogram(&[name], &tally.waits);
    }
    let mut connects = page.family(&family::CLUSTER_CONNECTS);
    for (name, tally) in &counted {
        connects.put_histogram(&[name], &tally.connects);
    }
    let mut first_bytes = page.family(&family::CLUSTER_FIRST_BYTES);
    for (name, tally) in &counted {
        first_bytes.put_histogram(&[name], &tally.exchanges.first_bytes);
    }
    let mut exchanges = page.family(&family::CLUSTER_EXCHANGES);
    for (name, tally) in &counted {
        exchanges.put_histogram(&[name], &tally.exchanges.totals);
    }
}

fn write_duties(clusters: &[ClusterStatus], page: &mut Page) {
    let mut duties = page.family(&family::CLUSTER_DUTY);
    for cluster in clusters {
        for duty in [Duty::Primaries, Duty::Backups] {
            let is_so = cluster.duty == duty;
            duties.put(&[&cluster.name, duty_code(duty)], u8::from(is_so));
        }
    }
}

/// An endpoint, with its cluster's name.
pub(super) type Named<'s> = (&'s str, &'s EndpointStatus);

/// All of them, each name once: where a removed endpoint still drains beside a new one of its name, the new one counts.
fn endpoints(clusters: &[ClusterStatus]) -> Vec<Named<'_>> {
    let all = clusters.iter().flat_map(|cluster| {
        let name = &*cluster.name;
        cluster
            .endpoints
            .iter()
            .map(move |endpoint| (name, endpoint))
    });
    let mut seen = HashSet::new();
    all.filter(|(cluster, endpoint)| seen.insert((*cluster, &*endpoint.name)))
        .collect()
}

fn write_states(endpoints: &[Named<'_>], page: &mut Page) {
    let mut states = page.family(&family::ENDPOINT_STATE);
    for (cluster, endpoint) in endpoints {
        for code in STATE_CODES {
            let is_so = code == state_code(endpoint.state);
            states.put(&[cluster, &endpoint.name, code], u8::from(is_so));
        }
    }
}

fn write_gauges(endpoints: &[Named<'_>], page: &mut Page) {
    let mut weights = page.family(&family::ENDPOINT_WEIGHT);
    for (cluster, endpoint) in endpoints {
        weights.put(&[cluster, &endpoint.name], endpoint.weight.get());
    }
    let mut effective = page.family(&family::ENDPOINT_EFFECTIVE_WEIGHT);
    for (cluster, endpoint) in endpoints {
        effective.put(&[cluster, &endpoint.name], endpoint.effective_weight);
    }
    write_overridden(endpoints, page);
    let mut in_flight = page.family(&family::ENDPOINT_IN_FLIGHT);
    for (cluster, endpoint) in endpoints {
        in_flight.put(&[cluster, &endpoint.name], endpoint.in_flight);
    }
    let mut most = page.family(&family::ENDPOINT_MAX_CONNECTIONS);
    for (cluster, endpoint) in endpoints {
        if let Some(limit) = endpoint.max_connections {
            most.put(&[cluster, &endpoint.name], limit);
        }
    }
}

fn write_overridden(endpoints: &[Named<'_>], page: &mut Page) {
    let mut overridden = page.family(&family::ENDPOINT_OVERRIDDEN);
    for (cluster, endpoint) in endpoints {
        let EndpointOverrides { weight, service } = endpoint.overrides;
        let mut put =
            |value, is_so| overridden.put(&[cluster, &endpoint.name, value], u8::from(is_so));
        put("weight", weight.is_some());
        put("service", service.is_some());
    }
}

fn write_attempts(endpoints: &[Named<'_>], page: &mut Page) {
    let mut attempts = page.family(&family::ATTEMPTS);
    for (cluster, endpoint) in endpoints {
        let mut put = |outcome, count| attempts.put(&[cluster, &endpoint.name, outcome], count);
        put("established", endpoint.established);
        put("abandoned", endpoint.losses.abandoned);
        for (failure, count) in Failure::ALL.into_iter().zip(endpoint.losses.failed) {
            put(failure_code(failure), count);
        }
    }
}

fn write_bytes(endpoints: &[Named<'_>], counters: &Counters, page: &mut Page) {
    let mut bytes = page.family(&family::ENDPOINT_BYTES);
    for (cluster, endpoint) in endpoints {
        if let Some(tally) = counters.endpoint(cluster, &endpoint.name) {
            bytes.put(&[cluster, &endpoint.name, "up"], tally.bytes_up());
            bytes.put(&[cluster, &endpoint.name, "down"], tally.bytes_down());
        }
    }
}
