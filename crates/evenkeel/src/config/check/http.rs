//! Rules for listeners that speak HTTP: what goes with them alone, and what does not go with them.

use evenkeel_proxy::settings::KeySource;

use super::super::diagnostics::{Located, Problem, Problems, Span};
use super::super::file::{Cluster, Listener, Rule};
use super::super::read::Choice;
use super::super::words::Protocol;

pub(super) fn check_http(listener: &Listener, clusters: &[Cluster], problems: &Problems) {
    match listener.spoken() {
        Protocol::Tcp => check_tcp(listener, problems),
        Protocol::Http => {
            check_routes(listener, problems);
            check_foreign(listener, problems);
            check_via(listener, problems);
            check_targets(listener, clusters, problems);
        }
    }
}

fn check_tcp(listener: &Listener, problems: &Problems) {
    if let Some(http) = &listener.http {
        let problem = Problem::at(&http.at, "`http` goes with `protocol = \"http\"` alone");
        problems.report(problem.help("add that, or leave it out"));
    }
    for rule in listener.rules() {
        let spans = [host_of(rule), path_of(rule)];
        for (key, at) in spans.into_iter().flatten() {
            let message = format!("`{key}` goes with `protocol = \"http\"` alone");
            problems.report(Problem::at(at, message).help("add that, or go by `sni`"));
        }
    }
}

fn host_of(rule: &Rule) -> Option<(&'static str, &Span)> {
    rule.host.as_ref().map(|host| ("host", &host.span))
}

fn path_of(rule: &Rule) -> Option<(&'static str, &Span)> {
    rule.path.as_ref().map(|path| ("path", &path.span))
}

fn check_routes(listener: &Listener, problems: &Problems) {
    for rule in listener.rules() {
        if let Some(sni) = &rule.sni {
            let problem = Problem::at(&sni.span, "requests are not routed by `sni`");
            problems.report(problem.help("write `host` instead"));
        }
        if let Some(path) = &rule.path {
            check_path(path, problems);
        }
    }
}

fn check_path(path: &Located<String>, problems: &Problems) {
    if !path.value.starts_with('/') {
        let problem = Problem::at(&path.span, "a `path` begins with \"/\"");
        problems.report(problem.help("leave it out for every path"));
    } else if !path.value.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "a path has no spaces, control characters or other alphabets";
        problems.report(Problem::at(&path.span, message).help("write them as %20, %C3%A4 …"));
    }
}

/// What a TCP listener has and a request has otherwise.
fn check_foreign(listener: &Listener, problems: &Problems) {
    let timeouts = &listener.timeouts;
    let foreign = [
        (
            "empty_reply",
            listener.empty_reply.as_ref().map(|reply| &reply.span),
            "leave it out: a client without a request is closed",
        ),
        (
            "failure_reply",
            listener.failure_reply.as_ref().map(|reply| &reply.span),
            "leave it out: a client is answered with 502, 503 or 504",
        ),
        (
            "splice",
            listener.splice.as_ref().map(|splice| &splice.span),
            "leave it out",
        ),
        (
            "idle",
            timeouts.idle.as_ref().map(|idle| &idle.span),
            "write `keep_alive`, `body_idle` or `tunnel_idle` under `http`",
        ),
        (
            "half_closed",
            timeouts.half_closed.as_ref().map(|idle| &idle.span),
            "leave it out",
        ),
    ];
    for (key, at, advice) in foreign {
        if let Some(at) = at {
            let message = format!("`{key}` does not go with `protocol = \"http\"`");
            problems.report(Problem::at(at, message).help(advice));
        }
    }
}

fn check_via(listener: &Listener, problems: &Problems) {
    let via = listener.http.as_ref().and_then(|http| http.via.as_ref());
    let is_token = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
    };
    if let Some(via) = via.filter(|via| via.value.is_empty() || !is_token(&via.value)) {
        let problem = Problem::at(
            &via.span,
            "a name in `Via` has letters, digits, \"-\", \".\" and \"_\" alone",
        );
        problems.report(problem.help("write something like \"evenkeel\""));
    }
}

/// A request has no first line of its own, and a connection that many clients share is for none of them.
fn check_targets(listener: &Listener, clusters: &[Cluster], problems: &Problems) {
    for to in listener.targets() {
        let Some(cluster) = clusters
            .iter()
            .find(|cluster| cluster.name.value == to.value)
        else {
            continue;
        };
        if let Choice::Made(key) = &cluster.key
            && key.value == KeySource::FirstLine
        {
            let message = "requests cannot go to a cluster that hashes the first line";
            let problem = Problem::at(&to.span, message).related(&key.span, "its key");
            problems.report(problem.help("hash the \"source-address\" there"));
        }
        if let Some(header) = cluster.announces() {
            let message =
                "requests cannot go to a cluster whose connections begin with a PROXY header";
            let problem = Problem::at(&to.span, message).related(header, "its header");
            problems.report(problem.help("endpoints are told of clients by `X-Forwarded-For`"));
        }
    }
}
