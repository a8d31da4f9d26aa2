//! Streams in bulk, which are spliced: every byte of them arrives, however they end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use evenkeel_proxy::settings::Splice;
use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{
    Endpoint, World, assert_prefix, assert_same, bytes_of, read_all, read_exactly, read_to_reset,
    reset,
};

const BULK: usize = 24 << 20;

/// Sends the bytes and the end of the stream from a thread of its own.
fn send(stream: &TcpStream, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    let mut stream = stream.try_clone().unwrap();
    thread::spawn(move || {
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    })
}

/// Both ways at once, with a reader that is slow at first: both streams arrive whole, most of them through pipes, and are counted.
#[test]
fn bulk_goes_both_ways_through_pipes() {
    let endpoint = Endpoint::echoing("only");
    let world = World::of(&[&endpoint]);
    let bytes = bytes_of(1, BULK);
    let mut client = world.connect();
    let sender = send(&client, bytes.clone());
    let mut answer = Vec::new();
    for _ in 0..50 {
        answer.extend(read_exactly(&mut client, 10_000));
        thread::yield_now();
    }
    answer.extend(read_all(&mut client));
    sender.join().unwrap();

    assert_same(&answer, &bytes);
    let record = world.next_record();
    assert_eq!(
        (record.bytes_up, record.bytes_down, record.reason),
        (BULK as u64, BULK as u64, Reason::Done)
    );
    let spliced = world.proxy.spliced();
    assert!(spliced.bytes > BULK as u64, "{spliced:?}");
}

/// Without pipes, by configuration or by limit, the same streams are copied.
#[test]
fn without_pipes_bulk_is_copied() {
    for (splice, pipes) in [(Splice::Off, 64), (Splice::Auto, 0)] {
        let endpoint = Endpoint::echoing("only");
        let world = World::with(&[&endpoint], |settings| {
            settings.listeners[0].splice = splice;
            settings.process.splice_pipes_max = pipes;
        });
        let bytes = bytes_of(2, BULK);
        let mut client = world.connect();
        let sender = send(&client, bytes.clone());
        assert_same(&read_all(&mut client), &bytes);
        sender.join().unwrap();
        assert_eq!(world.proxy.spliced().bytes, 0);
    }
}

/// An endpoint that resets in bulk: its client gets a prefix and the reset, never an end.
#[test]
fn an_endpoint_that_resets_in_bulk_is_told() {
    let endpoint = Endpoint::serving("only", |mut stream| {
        stream.write_all(&bytes_of(3, BULK)).unwrap();
        // Waits until the client has asked for the reset.
        let _ = stream.read(&mut [0]);
        reset(stream);
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    let begin = read_exactly(&mut client, BULK / 2);
    client.write_all(b"!").unwrap();
    let rest = read_to_reset(&mut client);

    assert_prefix(&[begin, rest].concat(), &bytes_of(3, BULK));
    assert_eq!(world.next_record().reason, Reason::UpstreamReset);
    assert!(world.proxy.spliced().bytes > 0);
}

/// A client that resets while a pipe is full for it: the endpoint is reset, and the pipe is closed.
#[test]
fn a_client_that_resets_in_bulk_leaves_no_pipe() {
    let (told, broken) = channel();
    let endpoint = Endpoint::serving("only", move |mut stream| {
        let block = bytes_of(4, 1 << 20);
        while stream.write_all(&block).is_ok() {}
        told.send(()).unwrap();
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    read_exactly(&mut client, BULK);
    reset(client);

    assert_eq!(world.next_record().reason, Reason::ClientReset);
    broken.recv().unwrap();
    assert!(world.proxy.spliced().bytes > 0);
    world.proxy.close();
    world.proxy.join();
    assert_eq!(world.proxy.spliced().pipes, 0);
}

/// Many at once with two pipes between them: some are copied, all arrive.
#[test]
fn streams_that_find_no_pipe_are_copied() {
    let endpoint = Endpoint::echoing("only");
    let world = World::with(&[&endpoint], |settings| {
        settings.process.splice_pipes_max = 2;
    });
    let clients: Vec<_> = (0..8)
        .map(|seed| {
            let mut client = world.connect();
            thread::spawn(move || {
                let bytes = bytes_of(seed, BULK / 4);
                let sender = send(&client, bytes.clone());
                assert_same(&read_all(&mut client), &bytes);
                sender.join().unwrap();
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let spliced = world.proxy.spliced();
    assert!(spliced.bytes > 0 && spliced.pipes <= 2, "{spliced:?}");
}
