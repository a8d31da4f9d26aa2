//! Endpoints that fail: who is asked again, and who never.

use std::io::Write;
use std::net::TcpListener;

use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{Endpoint, HELLO, Message, Then, World};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Nobody listens at one endpoint: the other one serves, and the client sees nothing of it.
#[test]
fn a_refused_connection_is_tried_elsewhere() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let east = Endpoint::hello("east");
    let world = World::with(&[&east], |settings, _| {
        let mut dead = settings.clusters[0].spec.endpoints[0].clone();
        dead.name = "dead".into();
        dead.address = address.into();
        settings.clusters[0].spec.endpoints.push(dead);
    });
    let mut client = world.connect();
    for _ in 0..6 {
        client.send(GET);
        assert_eq!(client.answer().text(), "hello");
    }
}

/// Where nobody is left, the client is told why.
#[test]
fn a_cluster_that_cannot_be_reached_is_a_502() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let world = World::with(&[&Endpoint::hello("east")], |settings, _| {
        settings.clusters[0].spec.endpoints[0].address = address.into();
        settings.clusters[0].attempts = 2;
    });
    let mut client = world.connect();
    client.send(GET);
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (502, Some("connect_refused"))
    );
    let record = world.next_record();
    assert_eq!(record.session.attempts, 2);
    assert_eq!(record.session.reason, Reason::ConnectRefused);
}

/// An endpoint that closes each connection after one answer, without a word: nobody is told of the race.
#[test]
fn a_kept_connection_that_has_ended_costs_no_request() {
    let east = Endpoint::answering("east", HELLO, Then::Close);
    let world = World::of(&[&east]);
    let mut client = world.connect();
    for _ in 0..50 {
        client.send(GET);
        assert_eq!(client.answer().text(), "hello");
    }
}

/// An endpoint that closes kept connections when a request comes: a GET goes on over a new one, a POST is never sent twice.
#[test]
fn a_post_is_never_sent_twice() {
    let east = Endpoint::serving("east", |mut stream, report| {
        let Some(first) = Message::read(&mut stream) else {
            return;
        };
        report.send(first).unwrap();
        stream.write_all(HELLO.as_bytes()).unwrap();
        // The second one is read, and not answered.
        if let Some(second) = Message::read(&mut stream) {
            report.send(second).unwrap();
        }
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send(GET);
    assert_eq!(client.answer().text(), "hello");
    client.send(GET);
    assert_eq!(client.answer().text(), "hello");
    assert_eq!((east.requests().len(), east.connections()), (3, 2));

    client.send("POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    let answer = client.answer();

    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (502, Some("upstream_closed"))
    );
    let orders = east.requests();
    assert_eq!(orders.len(), 1, "{orders:?}");
}

/// An endpoint that breaks off in the middle of its answer cannot be made up for: the client's connection breaks too.
#[test]
fn a_cut_answer_stays_cut() {
    let east = Endpoint::answering(
        "east",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf",
        Then::Close,
    );
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send(GET);
    let mut bytes = Vec::new();
    // A reset, or an end: never 1000 bytes.
    let _ = std::io::Read::read_to_end(&mut client.0, &mut bytes);
    assert!(bytes.len() < 1000);
    assert_eq!(world.next_record().session.reason, Reason::UpstreamClosed);
}

/// An early refusal reaches the client although the endpoint takes no more of the body.
#[test]
fn an_early_answer_arrives() {
    let east = Endpoint::serving("east", |mut stream, _| {
        let mut head = [0; 64];
        let _ = std::io::Read::read(&mut stream, &mut head);
        stream
            .write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            .unwrap();
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();
    let mut sender = client.0.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let _ =
            sender.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
        let _ = sender.write_all(&vec![b'x'; 8 << 20]);
    });
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (413, "big"));
    sending.join().unwrap();
}

/// A client that goes while its request is under way takes it back: the endpoint's connection ends.
#[test]
fn a_client_that_goes_cancels_its_request() {
    let east = Endpoint::serving("east", |mut stream, report| {
        let request = Message::read(&mut stream).unwrap();
        report.send(request.clone()).unwrap();
        // The end of the stream.
        assert!(Message::read(&mut stream).is_none());
        report.send(request).unwrap();
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send(GET);
    east.next_request();
    drop(client);
    east.next_request();
    assert_eq!(world.next_record().session.reason, Reason::ClientClosed);
}

/// The same where the beginning of another request lies there unread: the endpoint's slot is not kept for it.
#[test]
fn a_client_that_goes_in_its_next_request_cancels_this_one() {
    let east = Endpoint::serving("east", |mut stream, report| {
        let request = Message::read(&mut stream).unwrap();
        report.send(request.clone()).unwrap();
        assert!(Message::read(&mut stream).is_none());
        report.send(request).unwrap();
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send(GET);
    client.send("G");
    east.next_request();
    drop(client);
    east.next_request();
    assert_eq!(world.next_record().session.reason, Reason::ClientClosed);
}
