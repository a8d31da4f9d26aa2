//! The operator's orders for a running cluster: finds who is meant, passes the order on to the core, tells how things are then.

use std::sync::Arc;

use evenkeel_core::units::Weight;
use evenkeel_core::{Cluster, EndpointSpec, EndpointStatus, FailbackRefusal, Service};
use evenkeel_proxy::Proxy;
use evenkeel_proxy::control::operator::{EndpointAct, EndpointAnswer, FailbackAnswer, Kept};
use evenkeel_proxy::control::protocol::{Fault, FaultKind};
use evenkeel_proxy::control::report::EndpointReport;

use crate::config::{endpoint_line, nearest};

/// The most names that an error lists.
const NAMES_SHOWN_MAX: usize = 20;

/// Carries out what is said of `CLUSTER/NAME`. What becomes of it at a restart is for the caller to fill in.
pub(crate) fn order(proxy: &Proxy, path: &str, act: EndpointAct) -> Result<EndpointAnswer, Fault> {
    let (cluster, name) = find(proxy, path)?;
    let what = act.to_override();
    let what = what.map_err(|error| Fault::new(FaultKind::BadRequest, error))?;
    if let Some(what) = what {
        let done = cluster.override_endpoint(name, what, proxy.now());
        done.map_err(|_| unknown_endpoint(&cluster, proxy, name))?;
    }
    let status = cluster.status(proxy.now());
    let mut endpoints = status.endpoints.iter();
    let endpoint = endpoints
        .find(|endpoint| &*endpoint.name == name)
        .ok_or_else(|| unknown_endpoint(&cluster, proxy, name))?;
    Ok(EndpointAnswer {
        cluster: status.name.to_string(),
        endpoint: EndpointReport::new(endpoint, proxy.now()),
        permanent: permanent(proxy, &status.name, endpoint),
        kept: Kept::UntilRestart,
    })
}

/// Gives the work back to the primaries.
pub(crate) fn fail_back(proxy: &Proxy, name: &str) -> Result<FailbackAnswer, Fault> {
    let cluster = named(proxy, name).ok_or_else(|| unknown_cluster(proxy, name))?;
    cluster.fail_back(proxy.now()).map_err(|refusal| {
        let why = match refusal {
            FailbackRefusal::OnDuty => "its primaries have the work",
            FailbackRefusal::NoPrimaryUsable => "none of its primaries is usable; see `status`",
        };
        Fault::new(FaultKind::NotPossible, format_args!("{name}: {why}"))
    })?;
    Ok(FailbackAnswer {
        cluster: name.to_owned(),
    })
}

/// The cluster, and the endpoint's name in it. Endpoints may have a `/` in their names, so the first part that is a cluster
/// counts.
fn find<'p>(proxy: &Proxy, path: &'p str) -> Result<(Arc<Cluster>, &'p str), Fault> {
    let mut splits = path.match_indices('/');
    let found = splits.find_map(|(at, _)| Some((named(proxy, &path[..at])?, &path[at + 1..])));
    found.ok_or_else(|| match path.split_once('/') {
        Some((cluster, _)) => unknown_cluster(proxy, cluster),
        None => Fault::new(
            FaultKind::BadRequest,
            format_args!("{path:?} is not CLUSTER/NAME, as mysql/db1"),
        ),
    })
}

fn named(proxy: &Proxy, name: &str) -> Option<Arc<Cluster>> {
    let mut clusters = proxy.clusters().into_iter();
    clusters.find(|cluster| *cluster.name() == *name)
}

fn unknown_cluster(proxy: &Proxy, name: &str) -> Fault {
    let clusters = proxy.clusters().into_iter();
    let names: Vec<String> = clusters.map(|cluster| cluster.name().to_string()).collect();
    unknown(FaultKind::UnknownCluster, "cluster", name, &names)
}

fn unknown_endpoint(cluster: &Cluster, proxy: &Proxy, name: &str) -> Fault {
    let endpoints = cluster.status(proxy.now()).endpoints.into_iter();
    let names: Vec<String> = endpoints
        .map(|endpoint| endpoint.name.to_string())
        .collect();
    let what = format!("endpoint in {}", cluster.name());
    if let Some(fault) = stands_for(&what, name, &names) {
        return fault;
    }
    unknown(FaultKind::UnknownEndpoint, &what, name, &names)
}

/// A name that leads to addresses is no endpoint itself, but they are. To offer a neighbour's name would put the wrong one out of
/// work.
fn stands_for(what: &str, name: &str, names: &[String]) -> Option<Fault> {
    let of_name = |known: &&String| {
        let address = known.strip_prefix(name);
        address.is_some_and(|rest| rest.starts_with('/'))
    };
    let led_to: Vec<String> = names.iter().filter(of_name).cloned().collect();
    let meant = listed(&led_to);
    (!led_to.is_empty()).then(|| {
        Fault::new(
            FaultKind::UnknownEndpoint,
            format_args!(
                "there is no {what} named {name:?}, but that name leads to: {meant}; say which"
            ),
        )
    })
}

/// Names what is nearest, and what there is.
fn unknown(kind: FaultKind, what: &str, name: &str, names: &[String]) -> Fault {
    let meant = nearest(name, names.iter().map(String::as_str))
        .map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default();
    let there_are = listed(names);
    Fault::new(
        kind,
        format_args!("there is no {what} named {name:?}{meant}; there are: {there_are}"),
    )
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN_MAX).map(String::as_str);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The endpoint's line in the configuration, if it said what is in force; `None` where it does.
fn permanent(proxy: &Proxy, cluster: &str, endpoint: &EndpointStatus) -> Option<String> {
    let settings = proxy.settings();
    let mut clusters = settings.clusters.iter();
    let configured = clusters.find(|settings| *settings.spec.name == *cluster)?;
    let mut endpoints = configured.spec.endpoints.iter();
    let spec = endpoints.find(|spec| spec.name == endpoint.name)?;
    let in_force = in_force(spec, endpoint.weight, endpoint.service);
    (in_force != *spec).then(|| endpoint_line(&in_force))
}

/// A configuration knows no draining: it disables.
fn in_force(spec: &EndpointSpec, weight: Weight, service: Service) -> EndpointSpec {
    EndpointSpec {
        weight,
        disabled: service != Service::InService,
        ..spec.clone()
    }
}
