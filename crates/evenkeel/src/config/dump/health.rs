//! `health` as TOML: the keys of its check, and no others. A password that is in the configuration is not printed.

use evenkeel_core::HealthPolicy;
use evenkeel_proxy::settings::{
    Check, HttpCheck, MysqlCheck, ProbeSettings, ProbeTarget, RedisCheck, Secret, SendExpectCheck,
};

use super::tls::endpoint_tls;
use super::{duration, inline, path, quoted, word};
use crate::config::units::{print_bytes, print_status_codes};
use crate::config::words::CheckName;

/// What is printed in a password's place.
pub(in crate::config) const NOT_SHOWN: &str = "(not shown)";

type Pair = (&'static str, String);

pub(super) fn health(probe: &ProbeSettings, policy: HealthPolicy) -> String {
    let (name, particular) = check(&probe.check);
    let mut keys = vec![
        ("check", word(name)),
        ("every", duration(probe.every)),
        ("timeout", duration(probe.timeout)),
        ("rise", policy.rise.to_string()),
        ("fall", policy.fall.to_string()),
    ];
    keys.extend(target(&probe.target));
    keys.extend(probe.tls.as_ref().map(|tls| ("tls", endpoint_tls(tls))));
    keys.extend(particular);
    inline(&keys)
}

fn target(target: &ProbeTarget) -> Option<Pair> {
    match target {
        ProbeTarget::Endpoint => None,
        ProbeTarget::Port(port) => Some(("port", port.to_string())),
        ProbeTarget::Address(address) => Some(("address", quoted(&address.to_string()))),
    }
}

fn check(check: &Check) -> (CheckName, Vec<Pair>) {
    match check {
        Check::Tcp => (CheckName::Tcp, Vec::new()),
        Check::Http(check) => (CheckName::Http, http(check)),
        Check::Mysql(check) => (CheckName::Mysql, mysql(check)),
        Check::Redis(check) => (CheckName::Redis, redis(check)),
        Check::SendExpect(check) => (CheckName::SendExpect, send_expect(check)),
    }
}

fn http(check: &HttpCheck) -> Vec<Pair> {
    let mut keys = vec![
        ("method", word(check.method)),
        ("path", quoted(&check.path)),
    ];
    keys.extend(check.host.as_ref().map(|host| ("host", quoted(host))));
    keys.push(("status", quoted(&print_status_codes(&check.status))));
    keys
}

fn mysql(check: &MysqlCheck) -> Vec<Pair> {
    let mut keys = vec![("user", quoted(&check.user))];
    keys.extend(check.password.as_ref().map(secret));
    keys.extend(check.query.as_ref().map(|query| ("query", quoted(query))));
    keys
}

fn redis(check: &RedisCheck) -> Vec<Pair> {
    let user = check.user.as_ref().map(|user| ("user", quoted(user)));
    let role = check.role.map(|role| ("role", word(role)));
    let password = check.password.as_ref().map(secret);
    user.into_iter().chain(password).chain(role).collect()
}

fn send_expect(check: &SendExpectCheck) -> Vec<Pair> {
    let send = check.send.as_ref();
    let send = send.map(|send| ("send", quoted(&print_bytes(send))));
    let expect = ("expect", quoted(&print_bytes(&check.expect)));
    let at = ("expect_at", word(check.at));
    send.into_iter().chain([expect, at]).collect()
}

fn secret(secret: &Secret) -> Pair {
    match secret {
        Secret::Text(_) => ("password", quoted(NOT_SHOWN)),
        Secret::File(file) => ("password_file", path(file)),
    }
}
