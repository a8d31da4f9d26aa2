//! Rules for the routes of a listener: each for something else, and none that its other keys rule out.

use std::collections::HashMap;

use evenkeel_proxy::HostPattern;
use evenkeel_proxy::settings::{KeySource, ListenerSettings};

use super::super::diagnostics::{Problem, Problems, Span};
use super::super::file::{Cluster, Listener, Rule};
use super::super::read::Choice;
use super::super::words::Protocol;

pub(super) fn check_routes(listener: &Listener, clusters: &[Cluster], problems: &Problems) {
    let Some(routes) = &listener.routes else {
        return;
    };
    check_count(routes.value.len(), &routes.span, problems);
    check_twice(listener, problems);
    if listener.spoken() == Protocol::Http {
        return;
    }
    check_names(listener, problems);
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

/// Without requests there is nothing else to go by.
fn check_names(listener: &Listener, problems: &Problems) {
    let by_request = |rule: &&Rule| rule.host.is_some() || rule.path.is_some();
    let rules = listener.rules().iter();
    for rule in rules.filter(|rule| rule.sni.is_none() && !by_request(rule)) {
        let problem = Problem::at(&rule.at, "this route has no `sni`");
        problems.report(problem.help("add `sni = \"…\"`: the name that a TLS client asks for"));
    }
}

fn check_twice(listener: &Listener, problems: &Problems) {
    let mut first: HashMap<_, &Span> = HashMap::new();
    for rule in listener.rules() {
        let name = rule
            .sni
            .as_ref()
            .or(rule.host.as_ref())
            .map(|name| &name.value);
        let path = rule.path.as_ref().map(|path| &*path.value);
        if let Some(earlier) = first.insert((name, path), &rule.at) {
            let message = format!("there are two routes for `{}`", shown(name, path));
            let problem = Problem::at(&rule.at, message).related(earlier, "the other one");
            problems
                .report(problem.help("leave one of them out: the order of routes does not matter"));
        }
    }
}

fn shown(name: Option<&HostPattern>, path: Option<&str>) -> String {
    let name = name.map_or_else(|| "*".to_owned(), ToString::to_string);
    name + path.unwrap_or_default()
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
