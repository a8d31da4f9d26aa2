//! Connections that go over to another protocol.

use std::io::{Read, Write};
use std::net::Shutdown;

use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{Endpoint, Message, World};

/// After 101 both sides speak as they like, and the end of one is carried to the other.
#[test]
fn an_upgrade_becomes_a_tunnel() {
    let east = Endpoint::serving("east", |mut stream, report| {
        report.send(Message::read(&mut stream).unwrap()).unwrap();
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst")
            .unwrap();
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            stream.write_all(&bytes[..count]).unwrap();
        }
        stream.write_all(b"bye").unwrap();
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client
        .send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("upgrade")),
        (101, Some("echo"))
    );
    assert_eq!(client.bytes(10), b"firstearly");
    client.send("ping");
    assert_eq!(client.bytes(4), b"ping");
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "bye");

    let request = east.next_request();
    assert_eq!(request.header("upgrade"), Some("echo"));
    assert_eq!(request.header("connection"), Some("upgrade"));
    let record = world.next_record();
    assert_eq!(
        (record.status, record.session.reason),
        (Some(101), Reason::Done)
    );
}

/// An endpoint that changes protocols although nobody asked is not believed.
#[test]
fn nobody_is_upgraded_unasked() {
    let east = Endpoint::answering(
        "east",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n",
        crate::world::Then::Keep,
    );
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status(), 502);
}
