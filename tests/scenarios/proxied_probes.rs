//! Probes of endpoints that are not simply at a port: behind the PROXY protocol, and on Unix sockets.

use std::net::SocketAddr;
use std::path::Path;

use crate::support::evenkeel::Evenkeel;
use crate::support::haproxy::HaProxy;
use crate::support::mariadb::MariaDb;
use crate::support::nginx_stream::NginxStream;
use crate::support::redis::Redis;
use crate::support::{ports, wait};

/// An endpoint `one` in the cluster `probed`, with these lines of the cluster's.
fn probing(address: &str, lines: &str) -> Evenkeel {
    Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{}"
        to = "probed"
        [cluster.probed]
        endpoints = [{{ name = "one", address = "{address}" }}]
        {lines}
        "#,
        ports::free()
    ))
}

fn wait_for(evenkeel: &Evenkeel, state: &str) {
    wait::until_so(&format!("it is {state}"), || {
        evenkeel.endpoint("probed", "one")["state"] == state
    });
}

/// With each version of the header its probes pass; without one they fail.
fn passes_with_a_header_alone(address: SocketAddr, health: &str) {
    for version in ["v1", "v2"] {
        let lines = format!("proxy_protocol = \"{version}\"\nhealth = {health}");
        wait_for(&probing(&address.to_string(), &lines), "up");
    }
    let without = format!("health = {health}");
    wait_for(&probing(&address.to_string(), &without), "down");
}

/// An HAProxy that requires the header hears its probes out, and no others.
#[test]
fn haproxy_behind_the_proxy_protocol_is_probed() {
    let bind = ports::free();
    let sections = format!(
        "frontend front\n mode http\n bind {bind} accept-proxy\n http-request return status 200\n"
    );
    let _haproxy = HaProxy::start(&sections, &[bind]);
    passes_with_a_header_alone(
        bind,
        r#"{ check = "http", path = "/healthz", every = "100ms" }"#,
    );
}

/// The same of an nginx, which speaks first here.
#[test]
fn nginx_behind_the_proxy_protocol_is_probed() {
    let bind = ports::free();
    let server = format!("server {{ listen {bind} proxy_protocol; return \"ready\"; }}");
    let _nginx = NginxStream::start(&server, &[bind]);
    passes_with_a_header_alone(
        bind,
        r#"{ check = "send-expect", expect = "ready", every = "100ms" }"#,
    );
}

/// Both programs are only knocked at: that needs no header, and they do not see it.
#[test]
fn a_knock_needs_no_header() {
    let bind = ports::free();
    let server = format!("server {{ listen {bind} proxy_protocol; return \"ready\"; }}");
    let _nginx = NginxStream::start(&server, &[bind]);
    let lines = "proxy_protocol = \"v2\"\nhealth = { check = \"tcp\", every = \"100ms\" }";
    wait_for(&probing(&bind.to_string(), lines), "up");
}

/// Probes on a Unix socket pass, and fail when there is none any more.
fn follows_a_socket(path: &Path, health: &str, end: impl FnOnce()) {
    let evenkeel = probing(
        &format!("unix:{}", path.display()),
        &format!("health = {health}"),
    );
    wait_for(&evenkeel, "up");
    end();
    wait_for(&evenkeel, "down");
}

/// A Redis on a Unix socket is asked there, by each of the kinds that fit it.
#[test]
fn redis_on_a_unix_socket_is_probed() {
    for health in [
        r#"{ check = "redis", role = "master", every = "100ms" }"#,
        r#"{ check = "tcp", every = "100ms" }"#,
        r#"{ check = "send-expect", send = 'PING\r\n', expect = "+PONG", every = "100ms" }"#,
    ] {
        let redis = Redis::start();
        follows_a_socket(&redis.socket_path().clone(), health, || drop(redis));
    }
}

/// A MariaDB on a Unix socket is, too. To it, whoever comes that way is at `localhost`: an account for `'%'` may be another one.
#[test]
fn mariadb_on_a_unix_socket_is_probed() {
    let server = MariaDb::start("local");
    server.administer("CREATE USER 'check'@'localhost' IDENTIFIED BY 'sesame'");
    follows_a_socket(
        &server.socket_path().clone(),
        r#"{ check = "mysql", user = "check", password = "sesame", query = "SELECT USER() = 'check@localhost'", every = "100ms" }"#,
        || drop(server),
    );
}
