//! Every kind of close: after an end of stream all bytes have arrived, after a reset an exact prefix.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use evenkeel_proxy::telemetry::reason::Reason;
use rustix::net::sockopt;

use crate::world::{
    Endpoint, World, assert_prefix, assert_same, bytes_of, eventually, read_all, read_exactly,
    read_to_reset, reset, text,
};

const MEGABYTE: usize = 1 << 20;

/// An endpoint that hands its connections to the test.
fn handing_over() -> (Endpoint, Receiver<TcpStream>) {
    let (sender, receiver) = channel();
    (
        Endpoint::serving("handed", move |stream| sender.send(stream).unwrap()),
        receiver,
    )
}

/// The state of a socket whose end of stream has been acknowledged.
const FIN_WAIT2: &str = "05";

/// The state of a connection over IPv4, as `/proc/net/tcp` spells it.
fn kernel_state(stream: &TcpStream) -> String {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let (local, peer) = (
        port(stream.local_addr().unwrap()),
        port(stream.peer_addr().unwrap()),
    );
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut lines = table.lines().map(|line| {
        line.split_ascii_whitespace()
            .skip(1)
            .take(3)
            .collect::<Vec<_>>()
    });
    let line = lines.find(|words| words[0].ends_with(&local) && words[1].ends_with(&peer));
    line.map(|words| words[2].to_owned())
        .expect("the connection is in the table")
}

/// A client and its endpoint's side of the session, which have exchanged a byte each way.
fn connected(world: &World, accepted: &Receiver<TcpStream>) -> (TcpStream, TcpStream) {
    let mut client = world.connect();
    client.write_all(b"?").unwrap();
    let mut endpoint = accepted.recv().unwrap();
    assert_eq!(read_exactly(&mut endpoint, 1), b"?");
    endpoint.write_all(b"!").unwrap();
    assert_eq!(read_exactly(&mut client, 1), b"!");
    (client, endpoint)
}

/// The endpoint ends first and still gets everything the client sends afterwards.
#[test]
fn an_endpoint_may_end_first_and_read_on() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    let answer = bytes_of(1, MEGABYTE);
    upstream.write_all(&answer).unwrap();
    upstream.shutdown(Shutdown::Write).unwrap();
    assert_same(&read_all(&mut client), &answer);

    let request = bytes_of(2, MEGABYTE);
    client.write_all(&request).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_same(&read_all(&mut upstream), &request);
    assert_eq!(world.next_record().reason, Reason::Done);
}

/// The client sends and closes outright; the endpoint gets all of it and its end.
#[test]
fn a_client_may_send_and_close() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    let request = bytes_of(3, MEGABYTE);
    let sent = request.clone();
    let sending = std::thread::spawn(move || client.write_all(&sent).unwrap());
    assert_same(&read_all(&mut upstream), &request);
    sending.join().unwrap();
    drop(upstream);
    assert_eq!(world.next_record().reason, Reason::Done);
}

/// The client sends and closes, and only then the endpoint answers, into the void: the closed client's kernel resets the
/// connection, but what the client had sent before its end arrives all the same.
#[test]
fn a_client_that_closes_and_refuses_the_answer_has_still_said_all() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    // It fits into the first window: with the end of stream it has arrived before any reset can.
    let request = bytes_of(4, 40_000);
    client.write_all(&request).unwrap();
    drop(client);
    upstream.write_all(b"progress").unwrap();
    assert_same(&read_all(&mut upstream), &request);
    drop(upstream);
    assert_eq!(world.next_record().bytes_up, 40_001);
}

/// The client sends more than its endpoint reads, ends and goes. The endpoint only sends, without end: it is not listened to
/// for ever, although its client's request is whole.
#[test]
fn an_endpoint_that_floods_a_client_that_has_gone_is_reset() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    client
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    while client.write_all(&[1; 1 << 16]).is_ok() {}
    client.shutdown(Shutdown::Write).unwrap();
    eventually("the client's end has arrived at the proxy", || {
        read_exactly(&mut upstream, 1 << 17);
        kernel_state(&client) == FIN_WAIT2
    });
    drop(client);

    while upstream.write_all(&[2; 1 << 16]).is_ok() {}
    assert_eq!(world.next_record().reason, Reason::ClientReset);
}

/// The endpoint answers and closes outright; the client gets all of it and its end.
#[test]
fn an_endpoint_may_send_and_close() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    let answer = bytes_of(5, MEGABYTE);
    let sent = answer.clone();
    let sending = std::thread::spawn(move || upstream.write_all(&sent).unwrap());
    assert_same(&read_all(&mut client), &answer);
    sending.join().unwrap();
    drop(client);
    assert_eq!(world.next_record().reason, Reason::Done);
}

/// The endpoint answers in full and closes without reading the rest of the request. Its kernel resets the connection, and the
/// client, which is still sending and reads late, gets the whole answer and an end of stream nevertheless.
#[test]
fn an_answer_outlives_the_request_that_nobody_reads() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    // Most of the answer waits in the proxy's kernel, where a reset would destroy it.
    sockopt::set_socket_recv_buffer_size(&client, 50_000).unwrap();
    let mut writer = client.try_clone().unwrap();
    let request = bytes_of(6, 16 * MEGABYTE);
    let sending = std::thread::spawn(move || {
        let is_sent = writer.write_all(&request).is_ok();
        is_sent && writer.shutdown(Shutdown::Write).is_ok()
    });

    let mut upstream = accepted.recv().unwrap();
    read_exactly(&mut upstream, 1000);
    let answer = bytes_of(7, 300_000);
    upstream.write_all(&answer).unwrap();
    upstream.shutdown(Shutdown::Write).unwrap();
    eventually("the answer and its end have arrived at the proxy", || {
        kernel_state(&upstream) == FIN_WAIT2
    });
    drop(upstream);

    // The session has noticed when it takes what nobody reads any more.
    assert!(sending.join().unwrap());
    assert_same(&read_all(&mut client), &answer);
    let record = world.next_record();
    assert_eq!((record.reason, record.bytes_down), (Reason::Done, 300_000));
}

/// A client's reset reaches the endpoint as a reset, and what came before it is a prefix.
#[test]
fn a_clients_reset_is_carried_on() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    let request = bytes_of(7, 100_000);
    client.write_all(&request).unwrap();
    reset(client);
    assert_prefix(&read_to_reset(&mut upstream), &request);
    assert_eq!(world.next_record().reason, Reason::ClientReset);
}

/// An endpoint's reset reaches the client as a reset, after what the endpoint had sent.
#[test]
fn an_endpoints_reset_is_carried_on() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    let answer = bytes_of(8, 50_000);
    upstream.write_all(&answer).unwrap();
    // All of it is in the client's hands before the reset.
    assert_same(&read_exactly(&mut client, answer.len()), &answer);
    upstream.write_all(b"and more").unwrap();
    reset(upstream);
    assert_prefix(&read_to_reset(&mut client), b"and more");
    assert_eq!(world.next_record().reason, Reason::UpstreamReset);
}

/// An endpoint ends its stream without an answer and reads on, while its client is still sending. It is given up, for another
/// try or for an apology to the client, and what it has got is a part: it is told so by a reset.
#[test]
fn an_endpoint_that_is_given_up_does_not_take_a_part_for_all() {
    for (replay, heard) in [(1000, b"found"), (0, b"sorry")] {
        let (endpoint, accepted) = handing_over();
        let world = World::with(&[&endpoint], |settings| {
            settings.clusters[0].replay = replay;
            settings.listeners[0].failure_reply = Some(text("sorry"));
        });
        let mut client = world.connect();
        client.write_all(b"half a request").unwrap();
        let mut given_up = accepted.recv().unwrap();
        read_exactly(&mut given_up, 14);
        given_up.shutdown(Shutdown::Write).unwrap();
        let mut next = (replay > 0).then(|| accepted.recv().unwrap());
        if let Some(next) = &mut next {
            read_exactly(next, 14);
            next.write_all(b"found").unwrap();
        }
        assert_eq!(read_exactly(&mut client, 5), heard);
        assert_eq!(read_to_reset(&mut given_up), b"");
    }
}

/// Clients connect and reset at once, many of them before it is noticed that their endpoint is connected. Whatever the endpoint
/// sees of them is a reset: an empty stream with an end would be a request.
#[test]
fn a_client_that_resets_at_once_leaves_no_empty_stream() {
    const CLIENTS: usize = 300;
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    for _ in 0..CLIENTS {
        reset(world.connect());
    }
    for _ in 0..CLIENTS {
        world.next_record();
    }
    drop((world, endpoint));
    for mut upstream in accepted {
        assert_eq!(read_to_reset(&mut upstream), b"");
    }
}

/// A reset in the middle of a stream of any length leaves a prefix, from either side.
#[test]
fn a_reset_in_mid_stream_leaves_a_prefix() {
    let seed = 23;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    for round in 0..20 {
        let (client, upstream) = connected(&world, &accepted);
        let bytes = bytes_of(round, random.usize(1..2 * MEGABYTE));
        let (mut writer, mut reader) = if random.bool() {
            (client, upstream)
        } else {
            (upstream, client)
        };
        let sent = bytes.clone();
        let writing = std::thread::spawn(move || {
            let _ = writer.write_all(&sent);
            reset(writer);
        });
        assert_prefix(&read_to_reset(&mut reader), &bytes);
        writing.join().unwrap();
    }
}

/// A client that resets while its endpoint does not read is noticed at once, although nothing can be written.
#[test]
fn a_reset_gets_through_when_the_relay_is_full() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (mut client, mut upstream) = connected(&world, &accepted);

    client
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let block = vec![1; MEGABYTE];
    while client.write_all(&block).is_ok() {}
    reset(client);
    assert_eq!(world.next_record().reason, Reason::ClientReset);
    assert!(
        std::io::copy(&mut upstream, &mut std::io::sink()).is_err(),
        "the endpoint sees a reset"
    );
}

/// Neither side says a word, and each ends: that is a session that ended as it should.
#[test]
fn a_silent_session_ends_in_order() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    let mut upstream = accepted.recv().unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut upstream), b"");
    drop(upstream);
    assert_eq!(read_all(&mut client), b"");
    let record = world.next_record();
    assert_eq!((record.reason, record.attempts), (Reason::Done, 1));
    assert_eq!(world.endpoint("handed").failures, 0);
}

/// What a session holds is given back: the count of its endpoint, its listener and its place in the index.
#[test]
fn an_ended_session_holds_nothing() {
    let (endpoint, accepted) = handing_over();
    let world = World::of(&[&endpoint]);
    let (client, upstream) = connected(&world, &accepted);
    let id = world.endpoint("handed").id;
    assert_eq!(
        (
            world.proxy.sessions(),
            world.proxy.sessions_of(id),
            world.endpoint("handed").in_flight
        ),
        (1, 1, 1)
    );

    drop((client, upstream));
    world.next_record();
    eventually("the session is gone", || world.proxy.sessions() == 0);
    assert_eq!(
        (
            world.proxy.sessions_of(id),
            world.endpoint("handed").in_flight
        ),
        (0, 0)
    );
}
