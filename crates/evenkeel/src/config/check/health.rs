//! Rules between the keys of `health`.

use evenkeel_core::units::Address;

use super::tls::check_endpoint_tls;
use crate::config::build;
use crate::config::diagnostics::{Located, Problem, Problems};
use crate::config::file::{Cluster, Health};
use crate::config::read::Choice;
use crate::config::words::{CheckName, Words};

pub(super) fn check_health(cluster: &Cluster, problems: &Problems) {
    let Some(health) = &cluster.health else {
        return check_on_down(cluster, problems);
    };
    check_particular_keys(health, problems);
    check_required_keys(health, problems);
    check_timeout(health, problems);
    check_target(cluster, health, problems);
    check_account(health, problems);
    check_request(health, problems);
    if let Some(tls) = &health.tls {
        check_endpoint_tls(tls, problems);
    }
}

/// Without probes nothing is ever found down.
fn check_on_down(cluster: &Cluster, problems: &Problems) {
    if let Some(on_down) = &cluster.on_down {
        let problem = Problem::at(&on_down.span, "`on_down` goes with `health` alone");
        problems.report(problem.help("add `health = { check = \"tcp\" }`, or leave it out"));
    }
}

fn check_particular_keys(health: &Health, problems: &Problems) {
    let Choice::Made(check) = &health.check else {
        return;
    };
    let foreign = health.particular.iter();
    for key in foreign.filter(|key| !key.value.checks.contains(&check.value)) {
        let belongs: Vec<String> = key.value.checks.iter().map(quoted).collect();
        let belongs = belongs.join(" and ");
        let message = format!("`{}` goes with the checks {belongs} alone", key.value.key);
        let message = match key.value.checks {
            [_] => format!("`{}` goes with the check {belongs} alone", key.value.key),
            _ => message,
        };
        problems.report(
            Problem::at(&key.span, message)
                .related(&check.span, "does not ask for it")
                .help("leave it out, or choose that check"),
        );
    }
}

fn quoted(check: &CheckName) -> String {
    format!("\"{}\"", check.word())
}

fn check_required_keys(health: &Health, problems: &Problems) {
    let Choice::Made(check) = &health.check else {
        return;
    };
    let (needed, advice) = match check.value {
        CheckName::Mysql => (
            "user",
            "add `user = \"…\"`, an account without any privilege",
        ),
        CheckName::SendExpect => ("expect", "add `expect = \"…\"`, how the answer begins"),
        CheckName::Tcp | CheckName::Http | CheckName::Redis => return,
    };
    if !health.particular.iter().any(|key| key.value.key == needed) {
        let message = format!("the check {} needs `{needed}`", quoted(&check.value));
        problems.report(Problem::at(&check.span, message).help(advice));
    }
}

fn check_timeout(health: &Health, problems: &Problems) {
    let every = build::probe_every(health);
    let too_long = health
        .timeout
        .as_ref()
        .filter(|timeout| timeout.value.is_some_and(|timeout| timeout > every));
    if let Some(timeout) = too_long {
        let problem = Problem::at(&timeout.span, "`timeout` is longer than `every`");
        problems.report(problem.help("one probe of an endpoint ends before the next begins"));
    }
}

fn check_target(cluster: &Cluster, health: &Health, problems: &Problems) {
    let Some(port) = &health.port else {
        return;
    };
    if let Some(address) = &health.address {
        let problem = Problem::at(&port.span, "`port` and `address` exclude each other");
        let problem = problem.related(&address.span, "this has a port");
        problems.report(problem.help("write the port into the address"));
    }
    let mut paths = cluster
        .addresses()
        .filter(|(address, _)| matches!(address, Address::Unix(_)));
    if let Some((_, at)) = paths.next() {
        let problem = Problem::at(&port.span, "a Unix socket has no other `port`");
        let problem = problem.related(at, "this endpoint is one");
        problems.report(problem.help("leave `port` out, or give the endpoint an IP address"));
    }
}

fn check_account(health: &Health, problems: &Problems) {
    if let (Some(_), Some(file)) = (&health.password, &health.password_file) {
        let message = "`password` and `password_file` exclude each other";
        problems.report(Problem::at(&file.span, message).help("leave one of them out"));
    }
    let asks_redis =
        matches!(&health.check, Choice::Made(check) if check.value == CheckName::Redis);
    let has_password = health.password.is_some() || health.password_file.is_some();
    if let Some(user) = health.user.as_ref().filter(|_| asks_redis && !has_password) {
        let problem = Problem::at(&user.span, "a `user` of Redis logs in by a password");
        problems.report(problem.help("add `password_file`, or leave `user` out"));
    }
    for text in [&health.user, &health.password].into_iter().flatten() {
        if text.value.contains('\0') {
            let problem = Problem::at(&text.span, "a NUL ends a name and a password");
            problems.report(problem.help("leave it out"));
        }
    }
}

/// What goes into the head of an HTTP request must not end it.
fn check_request(health: &Health, problems: &Problems) {
    if let Some(path) = &health.path {
        check_visible(path, problems);
        if !path.value.starts_with('/') {
            let problem = Problem::at(&path.span, "a `path` begins with \"/\"");
            problems.report(problem.help("the host goes into `host`, the port into `port`"));
        }
    }
    if let Some(host) = &health.host {
        check_visible(host, problems);
    }
}

fn check_visible(text: &Located<String>, problems: &Problems) {
    if !text.value.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "a request has no spaces, control characters or other alphabets there";
        problems.report(Problem::at(&text.span, message).help("write them as %20, %C3%A4 …"));
    }
}
