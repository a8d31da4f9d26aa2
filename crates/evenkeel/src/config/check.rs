//! Rules between keys: references, duplicates, and choices that exclude each other.
//!
//! Runs over the raw form and reports everything it finds; a value that is missing here has been reported already.

mod health;
mod http;
mod routes;
mod tls;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use evenkeel_core::units::Address;
use evenkeel_proxy::Sender;
use evenkeel_proxy::discovery::{leads_back, overlap};
use evenkeel_proxy::settings::DnsSettings;

use health::check_health;
use http::check_http;
use routes::check_routes;

use super::build;
use super::diagnostics::{Located, Problem, Problems, Span, shown};
use super::document::Understood;
use super::file::{Cluster, Dns, Ejection, Endpoint, File, Listener};
use super::read::Choice;
use super::suggest::nearest;
use super::tables::{ENDPOINTS_MAX, NAMED_TABLES_MAX};
use super::units::check_name;
use super::words::BalanceName;
use crate::regular_file;

/// Reports every rule that the files, taken together, break. Where a file could not be understood, what seems to be missing
/// may be in it, and is not missed.
pub(super) fn check(file: &File, understood: Understood, problems: &Problems) {
    let listeners = file.listeners.iter().map(|listener| &listener.name);
    let clusters = file.clusters.iter().map(|cluster| &cluster.name);
    check_unique_names("listener", listeners, problems);
    check_unique_names("cluster", clusters, problems);
    if check_counts(file, problems) == Counts::TooMany {
        return;
    }
    if understood == Understood::Wholly {
        check_something_is_served(file, problems);
        check_references(file, problems);
    }
    check_binds(file, problems);
    for listener in &file.listeners {
        check_permissions(listener, problems);
        check_senders(listener, problems);
        check_http(listener, &file.clusters, problems);
        check_routes(listener, &file.clusters, problems);
    }
    check_circles(file, problems);
    check_refresh(&file.dns, problems);
    check_server_count(&file.dns, problems);
    check_name_count(&file.clusters, problems);
    for cluster in &file.clusters {
        check_cluster(cluster, problems);
    }
}

/// Whatever lies there would be replaced, or be waited for.
pub(super) fn check_state_file(file: &File, folder: &Path, problems: &Problems) {
    let (Some(written), Some(path)) = (
        &file.process.state_file,
        build::state_file(&file.process, folder),
    ) else {
        return;
    };
    // What cannot be looked at may be there later.
    if let Err(error) = regular_file::may_be_replaced(&path)
        && error.kind() == io::ErrorKind::InvalidInput
    {
        let message = format!(
            "{} cannot be the state file: {error}",
            shown(&path.display().to_string())
        );
        let problem = Problem::at(&written.span, message);
        problems.report(problem.help("name a file of its own, or leave `state_file` out"));
    }
}

/// Whether rules that compare tables with each other can be held against them in bounded time.
#[derive(PartialEq, Eq)]
enum Counts {
    Bounded,
    TooMany,
}

fn check_counts(file: &File, problems: &Problems) -> Counts {
    let listeners = file.listeners.iter().map(|listener| &listener.name);
    let clusters = file.clusters.iter().map(|cluster| &cluster.name);
    let verdicts = [
        check_count("listeners", listeners, problems),
        check_count("clusters", clusters, problems),
    ];
    if verdicts.contains(&Counts::TooMany) {
        Counts::TooMany
    } else {
        Counts::Bounded
    }
}

fn check_count<'f>(
    kind: &str,
    mut names: impl ExactSizeIterator<Item = &'f Located<String>>,
    problems: &Problems,
) -> Counts {
    let count = names.len();
    let Some(beyond) = names.nth(NAMED_TABLES_MAX) else {
        return Counts::Bounded;
    };
    let message = format!("there are {count} {kind}; at most {NAMED_TABLES_MAX} are possible");
    let problem = Problem::at(&beyond.span, message);
    problems.report(problem.help("this is the first of those beyond; run them in another process"));
    Counts::TooMany
}

fn check_something_is_served(file: &File, problems: &Problems) {
    if file.listeners.is_empty() {
        let problem = Problem::anywhere("there is no listener, so nothing would be served");
        problems.report(problem.help("add a `[listener.NAME]` with `bind` and `to`; `evenkeel init` writes a file to start from"));
    }
}

/// Over all files: within one, the parser has seen to it.
fn check_unique_names<'f>(
    kind: &str,
    names: impl Iterator<Item = &'f Located<String>>,
    problems: &Problems,
) {
    let mut first: HashMap<&str, &Span> = HashMap::new();
    for name in names {
        if let Some(earlier) = first.insert(&name.value, &name.span) {
            let message = format!("there are two {kind}s `{}`", shown(&name.value));
            let problem = Problem::at(&name.span, message).related(earlier, "the other one");
            problems.report(problem.help("give one of them another name"));
        }
    }
}

fn check_references(file: &File, problems: &Problems) {
    let clusters = file.clusters.iter();
    let known: Vec<&str> = clusters
        .map(|cluster| cluster.name.value.as_str())
        .collect();
    let set: HashSet<&str> = known.iter().copied().collect();
    let targets = file.listeners.iter().flat_map(Listener::targets);
    for to in targets.filter(|to| !set.contains(to.value.as_str())) {
        let message = format!("there is no cluster `{}`", shown(&to.value));
        problems.report(Problem::at(&to.span, message).help(advise_reference(&to.value, &known)));
    }
}

fn advise_reference(written: &str, known: &[&str]) -> String {
    /// More names than this are no help in one line.
    const LISTED_MAX: usize = 8;
    /// Comparing each of 4096 dangling names with each of 4096 known ones would take seconds.
    const COMPARED_MAX: usize = 256;
    match nearest(written, known.iter().copied().take(COMPARED_MAX)) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None if known.is_empty() || known.len() > LISTED_MAX => {
            format!("add `[cluster.{}]`", shown(written))
        }
        None => format!("add it, or use one of {}", known.join(", ")),
    }
}

fn check_binds(file: &File, problems: &Problems) {
    let mut by_port: HashMap<Option<u16>, Vec<&Located<Address>>> = HashMap::new();
    let listeners = file.listeners.iter();
    let binds = listeners.filter_map(|listener| listener.bind.as_ref());
    for bind in file.admin.bind.iter().chain(binds) {
        let earlier = by_port.entry(port(&bind.value)).or_default();
        if let Some(other) = earlier
            .iter()
            .find(|other| overlap(&other.value, &bind.value))
        {
            let message = format!("`{}` is taken by another listener", bind.value);
            let problem = Problem::at(&bind.span, message).related(&other.span, "here");
            problems.report(problem.help("give each listener an address of its own"));
        }
        earlier.push(bind);
    }
}

fn check_permissions(listener: &Listener, problems: &Problems) {
    if let (Some(permissions), Some(bind)) = (&listener.permissions, &listener.bind)
        && bind.value.ip().is_some()
    {
        let problem = Problem::at(
            &permissions.span,
            "`permissions` goes with a Unix socket alone",
        );
        let problem = problem.related(&bind.span, "has no file");
        problems.report(problem.help("leave it out, or listen on \"unix:/path\""));
    }
}

/// Clients of a Unix socket have no address, and all others have one.
fn check_senders(listener: &Listener, problems: &Problems) {
    let (Some(senders), Some(bind)) = (&listener.proxy_protocol, &listener.bind) else {
        return;
    };
    let is_unix = bind.value.ip().is_none();
    let may_come = |sender: &Sender| matches!(sender, Sender::Unix) == is_unix;
    if senders.value.is_empty() || senders.value.iter().any(may_come) {
        return;
    }
    let problem = Problem::at(
        &senders.span,
        "nobody on this list can connect to this listener",
    );
    let problem = problem.related(&bind.span, "where it listens");
    problems.report(problem.help(if is_unix {
        "write \"unix\": the clients of a Unix socket have no address"
    } else {
        "write networks: \"unix\" stands for the clients of a Unix socket"
    }));
}

fn port(address: &Address) -> Option<u16> {
    address.ip().map(|address| address.port())
}

/// A session that is sent to the listener it came in by would go round until the descriptors run out.
fn check_circles(file: &File, problems: &Problems) {
    let clusters = file.clusters.iter();
    let clusters: HashMap<&str, &Cluster> = clusters
        .map(|cluster| (cluster.name.value.as_str(), cluster))
        .collect();
    for listener in &file.listeners {
        let Some(bind) = &listener.bind else { continue };
        let targets: BTreeSet<&str> = listener.targets().map(|to| to.value.as_str()).collect();
        for cluster in targets.iter().filter_map(|to| clusters.get(to)) {
            check_circle(&listener.name.value, bind, cluster, problems);
        }
    }
}

fn check_circle(name: &str, bind: &Located<Address>, cluster: &Cluster, problems: &Problems) {
    for (address, at) in cluster
        .addresses()
        .filter(|(address, _)| leads_back(address, &bind.value))
    {
        let message = format!(
            "`{address}` is the listener `{}` itself: its sessions would go in a circle",
            shown(name)
        );
        let problem = Problem::at(at, message).related(&bind.span, "the listener");
        problems.report(problem.help("write the service's own address"));
    }
}

fn check_refresh(dns: &Dns, problems: &Problems) {
    let settings = build::dns(dns);
    let written = dns.refresh_max.as_ref().or(dns.refresh_min.as_ref());
    if let Some(written) = written.filter(|_| settings.refresh_max < settings.refresh_min) {
        let help =
            "a name is asked for after its time to live, between `refresh_min` and `refresh_max`";
        problems
            .report(Problem::at(&written.span, "`refresh_max` is below `refresh_min`").help(help));
    }
}

fn check_server_count(dns: &Dns, problems: &Problems) {
    let Some(servers) = &dns.servers else { return };
    if servers.value.len() > DnsSettings::SERVERS_MAX {
        let message = format!(
            "at most {} name servers are asked",
            DnsSettings::SERVERS_MAX
        );
        problems.report(Problem::at(&servers.span, message).help("leave the others out"));
    }
}

/// Each name takes a task and a question to a name server now and then.
fn check_name_count(clusters: &[Cluster], problems: &Problems) {
    let endpoints = clusters.iter().flat_map(Cluster::endpoints);
    let mut names = endpoints.filter_map(Endpoint::resolved_at);
    if let Some(beyond) = names.nth(DnsSettings::NAMES_MAX) {
        let message = format!("at most {} names are resolved", DnsSettings::NAMES_MAX);
        let help = "this is the first of those beyond; run them in another process";
        problems.report(Problem::at(beyond, message).help(help));
    }
}

fn check_where(endpoint: &Endpoint, problems: &Problems) {
    if let (Some(service), Some(address)) = (&endpoint.srv, &endpoint.address) {
        let message = "an endpoint has an `address` or a `srv`, not both";
        let problem = Problem::at(&service.span, message).related(&address.span, "the address");
        problems.report(problem.help("leave one of them out"));
    }
    let is_fixed = endpoint.address.is_some() && endpoint.resolved_at().is_none();
    if let Some(family) = endpoint.family.as_ref().filter(|_| is_fixed) {
        let problem = Problem::at(&family.span, "`family` goes with a name alone");
        problems.report(problem.help("leave it out: an address has its family already"));
    }
}

fn check_cluster(cluster: &Cluster, problems: &Problems) {
    check_key(cluster, problems);
    check_bounded_load(cluster, problems);
    check_ejection(cluster, problems);
    check_trials(cluster, problems);
    check_endpoint_count(cluster, problems);
    check_endpoint_names(cluster, problems);
    for endpoint in cluster.endpoints() {
        check_where(endpoint, problems);
    }
    check_usable(cluster, problems);
    check_health(cluster, problems);
}

fn check_key(cluster: &Cluster, problems: &Problems) {
    match (cluster.balance_name(), &cluster.balance, &cluster.key) {
        (Some(BalanceName::Hash), Choice::Made(balance), Choice::Absent) => {
            let problem = Problem::at(&balance.span, "`balance = \"hash\"` needs a `key`");
            problems
                .report(problem.help("add `key = \"source-address\"` or `key = \"first-line\"`"));
        }
        (None | Some(BalanceName::Hash), _, _) | (_, _, Choice::Absent | Choice::Unreadable) => {}
        (Some(_), balance, Choice::Made(key)) => {
            let problem = Problem::at(&key.span, "`key` goes with `balance = \"hash\"` alone");
            let problem = problem.help("leave `key` out, or set `balance = \"hash\"`");
            problems.report(match balance {
                Choice::Made(balance) => problem.related(&balance.span, "takes no key"),
                _ => problem,
            });
        }
    }
}

fn check_bounded_load(cluster: &Cluster, problems: &Problems) {
    let takes_it = matches!(
        cluster.balance_name(),
        None | Some(BalanceName::Hash | BalanceName::SourceHash)
    );
    let written = cluster.bounded_load.as_ref();
    if let Some(bound) = written.filter(|bound| bound.value.is_some() && !takes_it) {
        let message = "`bounded_load` goes with the balancers \"source-hash\" and \"hash\" alone";
        problems.report(
            Problem::at(&bound.span, message)
                .help("leave it out: every other balancer spreads by itself"),
        );
    }
}

fn check_ejection(cluster: &Cluster, problems: &Problems) {
    let Some(Ejection::On(keys)) = &cluster.ejection else {
        return;
    };
    let policy = build::ejection_policy(keys);
    let written = keys.max.as_ref().or(keys.base.as_ref());
    if let Some(written) = written.filter(|_| policy.max < policy.base) {
        let message = "the `max` of an ejection is below its `base`";
        let help = "an ejection starts with `base` and doubles up to `max`";
        problems.report(Problem::at(&written.span, message).help(help));
    }
}

fn check_trials(cluster: &Cluster, problems: &Problems) {
    let keys = &cluster.trials;
    let policy = build::trial_policy(keys);
    let written = keys.every_max.as_ref().or(keys.every.as_ref());
    if let Some(written) = written.filter(|_| policy.every_max < policy.every) {
        let help = "the time between trials starts with `every` and doubles up to `every_max`";
        problems.report(Problem::at(&written.span, "`every_max` is below `every`").help(help));
    }
}

fn check_endpoint_count(cluster: &Cluster, problems: &Problems) {
    let count = cluster.endpoints().len();
    if let Some(endpoints) = cluster.endpoints.as_ref().filter(|_| count > ENDPOINTS_MAX) {
        let message = format!(
            "cluster `{}` has {count} endpoints; at most {ENDPOINTS_MAX} are possible",
            shown(&cluster.name.value)
        );
        let problem = Problem::at(&endpoints.span, message);
        problems.report(problem.help("divide them among several clusters"));
    }
}

fn check_endpoint_names(cluster: &Cluster, problems: &Problems) {
    let mut first: HashMap<String, &Span> = HashMap::new();
    for endpoint in cluster.endpoints() {
        check_endpoint_name(endpoint, problems);
        let (Some(name), at) = (endpoint.effective_name(), endpoint.name_at()) else {
            continue;
        };
        let (inside, twice) = (shown(&cluster.name.value), shown(&name));
        if let Some(earlier) = first.insert(name, at) {
            let message = format!("cluster `{inside}` has two endpoints `{twice}`");
            let problem = Problem::at(at, message).related(earlier, "the other one");
            problems.report(problem.help("leave one out, or give it a `name` of its own"));
        }
    }
}

/// An endpoint may be named by its address, which is no name by the usual rule.
fn check_endpoint_name(endpoint: &Endpoint, problems: &Problems) {
    let Some(name) = &endpoint.name else {
        return;
    };
    let own_address = build::default_name(endpoint).is_some_and(|default| default == name.value);
    match check_name(&name.value) {
        Err(advice) if !own_address => {
            let message = format!("`{}` is no name for an endpoint", shown(&name.value));
            problems.report(Problem::at(&name.span, message).help(advice));
        }
        _ => {}
    }
}

/// A cluster that can serve nobody is a mistake more often than a wish.
fn check_usable(cluster: &Cluster, problems: &Problems) {
    let endpoints = cluster.endpoints();
    if !endpoints.is_empty() && endpoints.iter().all(Endpoint::never_gets_work) {
        let message = format!(
            "no endpoint of cluster `{}` would get a session: each has weight 0 or is disabled",
            shown(&cluster.name.value)
        );
        let problem = Problem::at(&cluster.name.span, message);
        problems.report(problem.help("leave one of them a weight of at least 1"));
    }
}
