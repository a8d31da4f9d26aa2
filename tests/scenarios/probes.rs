//! Probes: who gets work at the start, what clients see when endpoints go down and come back, and what becomes of sessions.
//!
//! MySQL has a file of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::evenkeel::Evenkeel;
use crate::support::nginx::Nginx;
use crate::support::process::{self, Process, Signal};
use crate::support::redis::{Redis, run_tool};
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

const NOBODY: &str = "nobody can answer\n";

/// A listener in front of named endpoints; `health` is the cluster's, with further lines.
fn launch(front: SocketAddr, endpoints: &[(&str, SocketAddr)], health: &str) -> Evenkeel {
    let listed: Vec<String> = endpoints
        .iter()
        .map(|(name, address)| format!("{{ name = \"{name}\", address = \"{address}\" }}"))
        .collect();
    Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "web"
        failure_reply = {{ text = "{}" }}
        [cluster.web]
        endpoints = [{}]
        health = {health}
        "#,
        NOBODY.escape_default(),
        listed.join(", "),
    ))
}

/// Waits for an endpoint's state, and gives what is told of its last probe.
fn probe_when(evenkeel: &Evenkeel, endpoint: &str, state: &str) -> Value {
    wait::until(&format!("{endpoint} is {state}"), || {
        let found = evenkeel.endpoint("web", endpoint);
        (found["state"] == state).then(|| found["probe"].clone())
    })
}

/// Waits for a failed probe whose reason has these words.
fn wait_for_reason(evenkeel: &Evenkeel, endpoint: &str, words: &str) {
    wait::until_so(&format!("{endpoint} fails with {words}"), || {
        let found = evenkeel.endpoint("web", endpoint);
        let reason = found["probe"]["reason"].as_str();
        reason.is_some_and(|reason| reason.contains(words))
    });
}

/// A listener that takes connections and answers each with what it is told at that moment.
struct Oracle {
    well: Arc<AtomicBool>,
    service: Service,
}

impl Oracle {
    fn start(well: bool) -> Self {
        let well = Arc::new(AtomicBool::new(well));
        let said = Arc::clone(&well);
        let service = Service::start(move |mut stream, _| {
            let well = said.load(Ordering::SeqCst);
            let _ = stream.write_all(if well { b"well" } else { b"ill." });
            let _ = client::read_to_end(&mut stream);
        });
        Self { well, service }
    }

    fn says(&self, well: bool) {
        self.well.store(well, Ordering::SeqCst);
    }
}

/// Asks the oracle, not the endpoint, and often.
fn health_by(oracle: &Oracle) -> String {
    format!(
        r#"{{ check = "send-expect", expect = "well", address = "{}", every = "100ms" }}"#,
        oracle.service.address()
    )
}

/// A client that comes before the first probe has ended waits in the backlog, and is served as soon as it has. It is neither refused
/// nor sent to an endpoint that may not be ready.
#[test]
fn fault_32_the_first_client_waits_for_the_first_probe() {
    let (endpoint, front) = (Service::named("ready\n"), ports::free());
    let go = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&go);
    let probed = Service::start(move |mut stream, _| {
        wait::until_so("the word", || gate.load(Ordering::SeqCst));
        let _ = stream.write_all(b"well");
        let _ = client::read_to_end(&mut stream);
    });
    let evenkeel = launch(
        front,
        &[("one", endpoint.address())],
        &format!(
            r#"{{ check = "send-expect", expect = "well", address = "{}", every = "1h", timeout = "1h" }}"#,
            probed.address()
        ),
    );
    let waiting = client::connect(front);
    wait::until_so("the probe is open", || probed.accepted() == 1);
    assert_eq!(endpoint.accepted(), 0);

    go.store(true, Ordering::SeqCst);
    let mut waiting = waiting;
    let answer = client::read_to_end(&mut waiting).expect("an answer");
    assert_eq!(answer, b"ready\n");
    assert_eq!(probe_when(&evenkeel, "one", "up")["result"], "passed");
}

/// A reload during the start does not bring it forward: it waits until the first probe has ended, and so does the client, who is
/// served then.
#[test]
fn a_reload_during_the_start_lets_nobody_in_early() {
    let (endpoint, front) = (Service::named("ready\n"), ports::free());
    let slow = Service::start(|mut stream, _| {
        // What the endpoint takes; the process waits for longer.
        thread::sleep(Duration::from_millis(700));
        let _ = stream.write_all(b"well");
        let _ = client::read_to_end(&mut stream);
    });
    let mut evenkeel = launch(
        front,
        &[("one", endpoint.address())],
        &format!(
            r#"{{ check = "send-expect", expect = "well", address = "{}", every = "1h", timeout = "1h" }}"#,
            slow.address()
        ),
    );
    let mut waiting = client::connect(front);
    evenkeel.process().signal(Signal::HUP);

    let answer = client::read_to_end(&mut waiting).expect("an answer");
    assert_eq!(answer, b"ready\n");
    wait::until_so("the reload", || {
        evenkeel
            .program_log()
            .contains("configuration reloaded: nothing changed")
    });
}

/// Where nothing is known in time the process does not wait for ever, and nobody is sent to an endpoint that has not passed a probe.
#[test]
fn fault_32_an_unknown_endpoint_gets_nothing() {
    let (endpoint, front) = (Service::named("ready\n"), ports::free());
    let silent = Service::start(|stream, _| service::stay_silent(stream));
    let evenkeel = launch(
        front,
        &[("one", endpoint.address())],
        &format!(
            r#"{{ check = "send-expect", expect = "well", address = "{}", every = "1h", timeout = "1h" }}"#,
            silent.address()
        ),
    );

    assert_eq!(client::listen(front), NOBODY);
    assert_eq!(evenkeel.endpoint("web", "one")["state"], "unknown");
    assert_eq!(evenkeel.sessions(1)[0]["reason"], "no_endpoint");
    assert_eq!(endpoint.accepted(), 0);
}

/// nginx loses its health page: with all endpoints down a client is told so at once; when the page is back, so is the endpoint.
/// Each change is in the log once, with the reason.
#[test]
fn an_http_probe_follows_a_page_of_nginx() {
    let (nginx, front) = (Nginx::start(), ports::free());
    nginx.add_file("healthz");
    let evenkeel = launch(
        front,
        &[("nginx", nginx.address)],
        r#"{ check = "http", path = "/healthz", status = "200", every = "100ms" }"#,
    );
    let request = "GET /healthz HTTP/1.0\r\n\r\n";
    assert!(client::ask(front, request).starts_with("HTTP/1.1 200"));

    nginx.remove_file("healthz");
    let probe = probe_when(&evenkeel, "nginx", "down");
    assert_eq!(probe["reason"], "status 404");
    assert_eq!(client::ask(front, request), NOBODY);

    nginx.add_file("healthz");
    probe_when(&evenkeel, "nginx", "up");
    assert!(client::ask(front, request).starts_with("HTTP/1.1 200"));
    let log = evenkeel.program_log();
    assert_eq!(log.matches("endpoint down").count(), 1, "{log}");
    assert!(log.contains("status 404"), "{log}");
}

/// A plain connect sees a service end and return; the table that people read says why it was down.
#[test]
fn a_tcp_probe_follows_a_service() {
    let (address, front) = (ports::free(), ports::free());
    let service = Service::start_on(address, service::say("here\n"));
    let evenkeel = launch(
        front,
        &[("one", address)],
        r#"{ check = "tcp", every = "100ms", fall = 1, rise = 1 }"#,
    );
    assert_eq!(client::listen(front), "here\n");

    drop(service);
    probe_when(&evenkeel, "one", "down");
    let table = String::from_utf8(evenkeel.ask(&["status"]).stdout).expect("it is text");
    assert!(table.contains("connection refused"), "{table}");

    let _service = Service::start_on(address, service::say("again\n"));
    probe_when(&evenkeel, "one", "up");
    assert_eq!(client::listen(front), "again\n");
}

/// `on_down = "keep"`: a session on an endpoint that is down goes on, and new ones do not come.
#[test]
fn sessions_are_kept_when_their_endpoint_is_down() {
    let (oracle, endpoint, front) = (Oracle::start(true), Service::echo(), ports::free());
    let evenkeel = launch(front, &[("one", endpoint.address())], &health_by(&oracle));
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    oracle.says(false);
    probe_when(&evenkeel, "one", "down");

    client::echo(&mut session, b"after");
    assert_eq!(client::listen(front), NOBODY);
}

/// `on_down = "close"`: a session on an endpoint that is down is ended with a reset, and its line says why.
#[test]
fn sessions_are_closed_when_their_endpoint_is_down() {
    let (oracle, endpoint, front) = (Oracle::start(true), Service::echo(), ports::free());
    let health = format!("{}\non_down = \"close\"", health_by(&oracle));
    let evenkeel = launch(front, &[("one", endpoint.address())], &health);
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    oracle.says(false);

    assert!(matches!(session.read(&mut [0; 16]), Ok(0) | Err(_)));
    assert_eq!(evenkeel.sessions(1)[0]["reason"], "endpoint_down");
    evenkeel.wait_until_idle("web");
}

/// Only the master of two Redis servers gets work; when they change places, so does the work.
#[test]
fn a_redis_probe_follows_the_master() {
    let (one, two, front) = (Redis::start(), Redis::start(), ports::free());
    follow(&two, &one);
    let evenkeel = launch(
        front,
        &[("one", one.address), ("two", two.address)],
        r#"{ check = "redis", role = "master", every = "100ms", rise = 1, fall = 1 }"#,
    );
    let probe = probe_when(&evenkeel, "two", "down");
    assert_eq!(probe["reason"], "its role is \"slave\"");
    assert_eq!(run_tool("redis-cli", front, &["SET", "key", "1"]), "OK");

    run_tool("redis-cli", two.address, &["REPLICAOF", "NO", "ONE"]);
    follow(&one, &two);
    probe_when(&evenkeel, "one", "down");
    probe_when(&evenkeel, "two", "up");
    assert_eq!(run_tool("redis-cli", front, &["SET", "key", "2"]), "OK");
    assert_eq!(run_tool("redis-cli", two.address, &["GET", "key"]), "2");
}

fn follow(replica: &Redis, master: &Redis) {
    let (ip, port) = (
        master.address.ip().to_string(),
        master.address.port().to_string(),
    );
    run_tool("redis-cli", replica.address, &["REPLICAOF", &ip, &port]);
}

/// A password in a file is read for each probe: a wrong one, none at all, and then the right one.
#[test]
fn a_redis_probe_logs_in_by_a_file() {
    let (redis, front) = (
        Redis::start_with(&["--requirepass", "sesame"]),
        ports::free(),
    );
    let folder = TempDir::new().expect("a temporary directory");
    let password = folder.path().join("password");
    fs::write(&password, "simsim\n").expect("it is ours");
    let evenkeel = launch(
        front,
        &[("redis", redis.address)],
        &format!(
            r#"{{ check = "redis", password_file = "{}", every = "100ms", rise = 1 }}"#,
            password.display()
        ),
    );
    wait_for_reason(&evenkeel, "redis", "WRONGPASS");

    fs::remove_file(&password).expect("it is there");
    wait_for_reason(&evenkeel, "redis", "cannot read the password");
    assert_eq!(
        evenkeel.endpoint("web", "redis")["probe"]["result"],
        "not_asked"
    );

    fs::write(&password, "sesame\n").expect("it is ours");
    probe_when(&evenkeel, "redis", "up");
    let shown = [evenkeel.status().to_string(), evenkeel.program_log()].concat();
    assert!(!shown.contains("sesame") && !shown.contains("simsim"));
}

/// A Redis that loads its data set is not ready, in its own words; and without a password it asks for one.
#[test]
fn a_redis_that_loads_is_down() {
    let redis = Redis::start_with(&["--enable-debug-command", "yes"]);
    let evenkeel = launch(
        ports::free(),
        &[("redis", redis.address)],
        r#"{ check = "redis", every = "100ms" }"#,
    );
    probe_when(&evenkeel, "redis", "up");

    run_tool("redis-cli", redis.address, &["DEBUG", "POPULATE", "3000"]);
    run_tool(
        "redis-cli",
        redis.address,
        &["CONFIG", "SET", "key-load-delay", "1000"],
    );
    run_tool(
        "redis-cli",
        redis.address,
        &[
            "CONFIG",
            "SET",
            "loading-process-events-interval-bytes",
            "1024",
        ],
    );
    let _reload = reload_slowly(&redis);

    wait_for_reason(&evenkeel, "redis", "LOADING");
    probe_when(&evenkeel, "redis", "up");
}

fn reload_slowly(redis: &Redis) -> Process {
    let mut command = process::command("redis-cli");
    command
        .args(["-h", &redis.address.ip().to_string()])
        .args(["-p", &redis.address.port().to_string()])
        .args(["DEBUG", "RELOAD"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Process::start(command)
}

/// Bytes of one's own against a real server: Redis's inline PING.
#[test]
fn a_send_expect_probe_asks_redis() {
    let (redis, front) = (Redis::start(), ports::free());
    let evenkeel = launch(
        front,
        &[("redis", redis.address)],
        r#"{ check = "send-expect", send = 'PING\r\n', expect = '+PONG', every = "100ms" }"#,
    );
    probe_when(&evenkeel, "redis", "up");

    run_tool(
        "redis-cli",
        redis.address,
        &["CONFIG", "SET", "requirepass", "sesame"],
    );
    wait_for_reason(&evenkeel, "redis", "NOAUTH");
}
