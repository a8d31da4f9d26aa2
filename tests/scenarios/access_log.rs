//! One line for each session, with the reason it ended; and nothing that happens to the log happens to a session.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};

use serde_json::Value;

use crate::support::deaf::Deaf;
use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::service::{self, Kept, Service};
use crate::support::{client, ports, wait};

/// A listener with short waits in front of one endpoint; `cluster` has further lines for its cluster.
fn impatient(endpoint: SocketAddr, cluster: &str) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "one"
        timeouts = {{ idle = "100ms", half_closed = "50ms" }}
        [cluster.one]
        endpoints = [{{ name = "endpoint", address = "{endpoint}" }}]
        {cluster}
        "#,
    ));
    (evenkeel, front)
}

/// Everything that is known of a served session is on its line.
#[test]
fn a_line_says_who_was_served_by_whom() {
    let endpoint = Service::echo();
    let (evenkeel, front) = impatient(endpoint.address(), "");
    let mut stream = client::connect(front);
    let client_address = stream.local_addr().expect("it is connected").to_string();
    client::echo(&mut stream, b"hello");
    stream.shutdown(Shutdown::Write).expect("it is open");
    client::read_to_end(&mut stream).expect("an orderly end");

    let session = &evenkeel.sessions(1)[0];
    let expected = [
        ("listener", Value::from("front")),
        ("cluster", Value::from("one")),
        ("endpoint", Value::from("endpoint")),
        ("client", Value::from(client_address)),
        ("attempts", Value::from(1)),
        ("bytes_up", Value::from(5)),
        ("bytes_down", Value::from(5)),
        ("reason", Value::from("done")),
    ];
    for (field, value) in expected {
        assert_eq!(session[field], value, "{field}");
    }
    for time in ["connect_ms", "first_byte_ms", "total_ms"] {
        assert!(session[time].is_number(), "{time}: {session}");
    }
}

#[test]
fn nobody_listens() {
    let (evenkeel, front) = impatient(ports::free(), "");
    let _ = client::exchange(front, b"hello");
    assert_eq!(evenkeel.reasons(1), ["connect_refused"]);
}

#[test]
fn nobody_answers_a_connect() {
    let deaf = Deaf::start();
    let (evenkeel, front) = impatient(
        deaf.address,
        "attempts = 1\ntimeouts = { connect = \"50ms\" }",
    );
    let _ = client::exchange(front, b"hello");
    assert_eq!(evenkeel.reasons(1), ["connect_timeout"]);
}

#[test]
fn the_client_leaves_while_nobody_has_answered_the_connect() {
    let deaf = Deaf::start();
    let (evenkeel, front) = impatient(deaf.address, "timeouts = { connect = \"1h\" }");
    let stream = client::connect(front);
    wait::until_so("an attempt runs", || {
        evenkeel.endpoint_number("one", "endpoint", "in_flight") == 1
    });
    client::reset(stream);
    let reasons = evenkeel.reasons(1);
    assert!(
        ["client_closed", "client_reset"].contains(&&*reasons[0]),
        "{reasons:?}"
    );
}

#[test]
fn nothing_moves() {
    let endpoint = Service::start(|stream, _| service::stay_silent(stream));
    let (evenkeel, front) = impatient(endpoint.address(), "");
    let _ = client::read_to_end(&mut client::connect(front));
    assert_eq!(evenkeel.reasons(1), ["idle_timeout"]);
}

#[test]
fn the_other_half_never_ends() {
    let kept = Kept::default();
    let endpoint = Service::start(move |mut stream, _| {
        let _ = stream.write_all(b"answer");
        kept.keep(stream);
    });
    let (evenkeel, front) = impatient(endpoint.address(), "");
    let _ = client::exchange(front, b"hello");
    assert_eq!(evenkeel.reasons(1), ["half_closed_timeout"]);
}

#[test]
fn the_endpoint_closes_without_an_answer() {
    let endpoint = Service::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 64]);
    });
    let (evenkeel, front) = impatient(endpoint.address(), "attempts = 1");
    let _ = client::exchange(front, b"hello");
    assert_eq!(evenkeel.reasons(1), ["upstream_closed"]);
}

#[test]
fn the_client_resets() {
    let endpoint = Service::echo();
    let (evenkeel, front) = impatient(endpoint.address(), "");
    let mut stream = client::connect(front);
    client::echo(&mut stream, b"hello");
    client::reset(stream);
    assert_eq!(evenkeel.reasons(1), ["client_reset"]);
}

/// Every line goes to a full disk: sessions are served, `status` counts what was lost.
#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let evenkeel = Launch::new(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "one"
        [cluster.one]
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    ))
    .access_log("/dev/full")
    .start();

    for _ in 0..100 {
        assert_eq!(client::ask(front, "hello"), "hello");
    }
    wait::until_so("the lost lines are counted", || {
        evenkeel.status()["access_log"]["dropped"] == 100
    });
    assert_eq!(evenkeel.status()["access_log"]["written"], 0);
}

/// What the log says, `status` has counted.
#[test]
fn status_counts_sessions_by_reason() {
    let (a, front) = (Service::echo(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "one"
        [cluster.one]
        endpoints = [{{ name = "a", address = "{}" }}]
        "#,
        a.address(),
    ));
    for _ in 0..7 {
        assert_eq!(client::ask(front, "hello"), "hello");
    }
    evenkeel.sessions(7);

    let listener = &evenkeel.status()["listeners"][0];
    assert_eq!(listener["accepted"], 7);
    assert_eq!(listener["ended"]["by_reason"]["done"], 7);
    assert_eq!(listener["ended"]["bytes_up"], 35);
    assert_eq!(evenkeel.endpoint_number("one", "a", "sessions"), 7);
    assert_eq!(evenkeel.endpoint_number("one", "a", "established"), 7);
}
