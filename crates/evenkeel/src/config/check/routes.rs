//! Rules for the routes of a listener: each for something else, and none that its other keys rule out.

use std::collections::HashMap;

use evenkeel_proxy::HostPattern;
use evenkeel_proxy::settings::{KeySource, ListenerSettings};

use super::super::diagnostics::{Problem, Problems, Span};
use super::super::file::{Cluster, Listener};
use super::super::read::Choice;

pub(super) fn check_routes(listener: &Listener, clusters: &[Cluster], problems: &Problems) {
    let Some(routes) = &listener.routes else {
        return;
    };
    check_count(routes.value.len(), &routes.span, problems);
    check_twice(listener, problems);
    check_replies(listener, &routes.span, problems);
    check_keys(listener, clusters, problems);
}

fn check_count(count: usize, at: &Span, problems: &Problems) {
    const MAX: usize = ListenerSettings::ROUTES_MAX;
    if count > MAX {
        let message = format!("there are {count} routes; at most {MAX} are possible");
        problems.report(Problem::at(at, message).help("bring names together: \"*.example.com\""));
    }
}

fn check_twice(listener: &Listener, problems: &Problems) {
    let mut first: HashMap<&HostPattern, &Span> = HashMap::new();
    for name in listener.rules().iter().filter_map(|rule| rule.sni.as_ref()) {
        if let Some(earlier) = first.insert(&name.value, &name.span) {
            let message = format!("there are two routes for `{}`", name.value);
            let problem = Problem::at(&name.span, message).related(earlier, "the other one");
            problems
                .report(problem.help("leave one of them out: the order of routes does not matter"));
        }
    }
}

/// What a client without a first word gets is decided by the routes already.
fn check_replies(listener: &Listener, routes: &Span, problems: &Problems) {
    if let Some(reply) = &listener.empty_reply {
        let message = "`empty_reply` cannot be combined with `routes` by `sni`";
        let problem = Problem::at(&reply.span, message).related(routes, "the routes");
        let help = "leave it out: a client that sends nothing goes to `to`, or is closed";
        problems.report(problem.help(help));
    }
}

/// The first line of a TLS handshake is no line.
fn check_keys(listener: &Listener, clusters: &[Cluster], problems: &Problems) {
    let by_first_line = |cluster: &&Cluster| matches!(&cluster.key, Choice::Made(key) if key.value == KeySource::FirstLine);
    let hashed: Vec<&Cluster> = clusters.iter().filter(by_first_line).collect();
    for to in listener.targets() {
        let target = hashed.iter().find(|cluster| cluster.name.value == to.value);
        if let Some(Cluster {
            key: Choice::Made(key),
            ..
        }) = target
        {
            let message = "a listener with `routes` by `sni` cannot send to a cluster that hashes the first line";
            let problem = Problem::at(&to.span, message).related(&key.span, "its key");
            problems.report(
                problem.help("hash the \"source-address\" there: a TLS handshake has no lines"),
            );
        }
    }
}
