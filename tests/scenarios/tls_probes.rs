//! Probes over TLS, against OpenSSL's own server.

use serde_json::Value;

use crate::support::certificates::{Authority, Validity};
use crate::support::evenkeel::Evenkeel;
use crate::support::openssl::Server;
use crate::support::{ports, wait};

/// An endpoint that answers HTTP over TLS with this certificate, and an evenkeel that probes it with these keys of `tls`.
fn probing(server: &Server, check: &str, tls: &str) -> Evenkeel {
    let (front, endpoint) = (ports::free(), server.address);
    Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "web"
        [cluster.web]
        endpoints = ["{endpoint}"]
        health = {{ check = "{check}", every = "30s", timeout = "30s", rise = 1, fall = 1, tls = {{ {tls} }} }}
        "#
    ))
}

fn endpoint(evenkeel: &Evenkeel) -> Value {
    evenkeel.status()["clusters"][0]["endpoints"][0].clone()
}

/// Why the endpoint is down.
fn reason(evenkeel: &Evenkeel) -> String {
    let down = wait::until("the endpoint is down", || {
        let endpoint = endpoint(evenkeel);
        (endpoint["state"] == "down").then_some(endpoint)
    });
    down["probe"]["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// An endpoint with a certificate of the right authority, for the right name, is up; with HTTP behind it or without.
#[test]
fn an_endpoint_is_probed_by_tls() {
    let authority = Authority::new("test authority");
    let server = Server::start(&authority.issue(&["web.example.com"]), &["-www"]);
    let ca = authority.certificate().display().to_string();
    for check in ["http", "tcp"] {
        let tls = format!("ca = {ca:?}, server_name = \"web.example.com\"");
        let evenkeel = probing(&server, check, &tls);
        wait::until_so("the endpoint is up", || {
            endpoint(&evenkeel)["state"] == "up"
        });
    }
}

/// A certificate of another authority, for another name, or out of date takes the endpoint out, and the reason is told.
#[test]
fn a_wrong_certificate_takes_the_endpoint_out() {
    let (authority, other) = (Authority::new("test authority"), Authority::new("other"));
    let ca = authority.certificate().display().to_string();
    let named = |name: &str| format!("ca = {ca:?}, server_name = {name:?}");
    let good = Server::start(&authority.issue(&["web.example.com"]), &["-www"]);
    let over = authority.issue_valid(&["old.example.com"], Validity::Over);
    let over = Server::start(&over, &["-www"]);
    let foreign = Server::start(&other.issue(&["web.example.com"]), &["-www"]);
    for (server, tls, words) in [
        (&good, named("db.example.com"), "not valid for name"),
        (&over, named("old.example.com"), "expired"),
        (&foreign, named("web.example.com"), "UnknownIssuer"),
    ] {
        let evenkeel = probing(server, "http", &tls);
        let reason = reason(&evenkeel);
        assert!(reason.contains(words), "{reason}");
    }
    let evenkeel = probing(&foreign, "http", "verify = false");
    wait::until_so("the endpoint is up", || {
        endpoint(&evenkeel)["state"] == "up"
    });
}

/// An endpoint that asks for a certificate gets the one of the configuration.
#[test]
fn a_probe_shows_its_own_certificate() {
    let authority = Authority::new("test authority");
    let ca = authority.certificate().display().to_string();
    let server = authority.issue(&["web.example.com"]);
    let server = Server::start(
        &server,
        &[
            "-www",
            "-Verify",
            "1",
            "-verify_return_error",
            "-CAfile",
            &ca,
        ],
    );
    let own = authority.issue(&["probe"]);
    let tls = format!(
        "ca = {ca:?}, server_name = \"web.example.com\", certificate = {:?}, key = {:?}",
        own.certificate, own.key
    );
    let evenkeel = probing(&server, "http", &tls);
    wait::until_so("the endpoint is up", || {
        endpoint(&evenkeel)["state"] == "up"
    });
    let nameless = probing(
        &server,
        "http",
        &format!("ca = {ca:?}, server_name = \"web.example.com\""),
    );
    assert!(!reason(&nameless).is_empty());
}
