//! Answers that evenkeel gives itself.

use std::time::Duration;

use evenkeel_proxy::settings::{HttpRoute, ReasonHeader};
use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{Endpoint, World};

/// Without a route there is a 404 that says so, and the connection stays.
#[test]
fn a_request_without_a_route_is_told_so() {
    let east = Endpoint::hello("east");
    let world = World::with(&[&east], |settings, http| {
        settings.listeners[0].to = None;
        http.routes = vec![HttpRoute {
            host: Some("shop.example".parse().unwrap()),
            path: "/api".into(),
            to: "cluster".into(),
        }];
    });
    let mut client = world.connect();

    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.header("x-evenkeel-reason"), Some("no_route"));
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );

    client.send("GET /api/1 HTTP/1.1\r\nHost: SHOP.example:80\r\n\r\n");
    assert_eq!(client.answer().text(), "hello");
    assert_eq!(world.next_record().session.reason, Reason::NoRoute);
}

/// A request that is too large is refused before anybody hears of it, and the answer arrives though the client still sends.
#[test]
fn what_is_too_large_is_refused_and_the_answer_arrives() {
    let east = Endpoint::hello("east");
    let world = World::with(&[&east], |_, http| {
        http.limits.body_bytes = Some(1000);
        http.limits.head_bytes = 2000;
        http.limits.target_bytes = 1000;
        http.reason_header = ReasonHeader::Left;
    });
    for (request, status) in [
        (
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n{}",
                "x".repeat(3_000_000)
            ),
            413,
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
                "x".repeat(3000)
            ),
            431,
        ),
        (
            format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(1500)),
            414,
        ),
    ] {
        let mut client = world.connect();
        let mut sender = client.0.try_clone().unwrap();
        // It may be cut off in the middle.
        let sending = std::thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut sender, request.as_bytes());
        });
        let answer = client.answer();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.header("x-evenkeel-reason"), None);
        drop(client);
        sending.join().unwrap();
    }
    assert_eq!(east.connections(), 0);
}

/// A head that does not come whole in time is answered with 408.
#[test]
fn a_slow_head_is_cut() {
    let world = World::with(&[&Endpoint::hello("east")], |_, http| {
        http.timeouts.head = Duration::from_millis(50);
    });
    let mut client = world.connect();
    client.send("GET / HTTP/1.1\r\nHo");
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (408, Some("head_timeout"))
    );
}

/// A body that stops coming is answered with 408, and the endpoint's request is cut off.
#[test]
fn a_slow_body_is_cut() {
    let east = Endpoint::hello("east");
    let world = World::with(&[&east], |_, http| {
        http.timeouts.body_idle = Some(Duration::from_millis(50));
    });
    let mut client = world.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (408, Some("body_timeout"))
    );
}

/// CONNECT is refused.
#[test]
fn tunnels_are_not_offered() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    let rest = world.ask("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    assert!(rest.starts_with("HTTP/1.1 501 "), "{rest}");
    assert_eq!(east.connections(), 0);
}

/// An endpoint that is silent is answered for with 504.
#[test]
fn a_silent_endpoint_is_answered_for() {
    let east = Endpoint::serving("east", |mut stream, report| {
        while let Some(request) = crate::world::Message::read(&mut stream) {
            report.send(request).unwrap();
        }
    });
    let world = World::with(&[&east], |settings, _| {
        settings.clusters[0].first_byte_timeout = Some(Duration::from_millis(50));
        settings.clusters[0].attempts = 1;
    });
    let mut client = world.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (504, Some("first_byte_timeout"))
    );
    assert_eq!(world.next_record().session.reason, Reason::FirstByteTimeout);
}
