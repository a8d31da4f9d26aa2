//! The worked example: small user-lookup services, each a process of its own, behind one address.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use crate::support::evenkeel::Evenkeel;
use crate::support::process::{self, Process};
use crate::support::{binary, client, ports, wait};

const NOBODY: &str = "{\"error\":\"no lookup service answers\"}\n";
const NOTHING: &str = "{\"error\":\"send a user name\"}\n";

/// A lookup service; killed when dropped.
struct Lookup {
    address: SocketAddr,
    process: Process,
}

impl Lookup {
    fn start(name: &str) -> Self {
        Self::start_on(name, ports::free())
    }

    fn start_on(name: &str, address: SocketAddr) -> Self {
        let mut command = process::command(binary::evenkeel());
        command
            .args([
                "example-service",
                "--name",
                name,
                "--bind",
                &address.to_string(),
            ])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null());
        let process = Process::start(command);
        wait::until_so("the service listens", || {
            client::try_connect(address).is_ok()
        });
        Self { address, process }
    }
}

fn in_front_of(services: &[&Lookup]) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let addresses: Vec<String> = services
        .iter()
        .map(|service| format!("\"{}\"", service.address))
        .collect();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.lookup]
        bind = "{front}"
        to = "lookups"
        failure_reply = {{ text = {NOBODY:?} }}
        empty_reply = {NOTHING:?}
        [cluster.lookups]
        replay = "64KiB"
        trials = {{ every = "10ms", every_max = "50ms" }}
        ejection = {{ failures = 3, base = "10ms", max = "50ms" }}
        endpoints = [{}]
        "#,
        addresses.join(", "),
    ));
    (evenkeel, front)
}

fn record(front: SocketAddr, user: &str) -> Value {
    let answer = client::ask(front, user);
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Asked for a user, whichever service answers, the record is the same; all of them answer in turn.
#[test]
fn every_service_answers_with_the_record() {
    let services = ["a", "b", "c"].map(Lookup::start);
    let (_evenkeel, front) = in_front_of(&services.each_ref());

    let records: Vec<Value> = (0..9).map(|_| record(front, "ada")).collect();
    assert!(
        records
            .iter()
            .all(|record| record["name"] == "Ada Lovelace"),
        "{records:?}"
    );
    let served_by: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| record["served_by"].as_str())
        .collect();
    assert_eq!(served_by, BTreeSet::from(["a", "b", "c"]));
    assert_eq!(record(front, "nobody\n")["error"], "no such user");
}

/// One service is killed: nobody notices. It returns: it answers again.
#[test]
fn a_killed_service_is_not_missed() {
    let (mut a, b) = (Lookup::start("a"), Lookup::start("b"));
    let (_evenkeel, front) = in_front_of(&[&a, &b]);
    a.process.kill();

    for _ in 0..20 {
        assert_eq!(record(front, "grace")["served_by"], "b");
    }
    let _a = Lookup::start_on("a", a.address);
    wait::until_so("the returned service answers", || {
        record(front, "grace")["served_by"] == "a"
    });
}

/// All services are dead: the configured text says so. An empty question has a text of its own.
#[test]
fn the_texts_for_failures_are_the_configured_ones() {
    let mut a = Lookup::start("a");
    let (evenkeel, front) = in_front_of(&[&a]);
    assert_eq!(client::ask(front, "\n"), NOTHING);

    a.process.kill();
    assert_eq!(client::ask(front, "ada"), NOBODY);
    assert_eq!(evenkeel.reasons(2), ["empty_request", "connect_refused"]);
}
