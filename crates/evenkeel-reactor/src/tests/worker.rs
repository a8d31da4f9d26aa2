//! The loop: mail, timers, stale keys, its own end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::support::{Instruction, Message, PATIENCE, Running, listening};
use crate::{Fate, Listener, Mail, Received, Sharing, StreamOptions};

/// Echoes, and removes a connection that has ended.
fn echoing() -> Running {
    Running::with(Box::new(|turn, _, stream, _| {
        while stream.is_readable() {
            match stream.receive(&mut turn.gear.buffer) {
                Received::Bytes(count) => {
                    stream.send(&turn.gear.buffer[..count]);
                }
                Received::Nothing => break,
                Received::End | Received::Broken(_) => return Fate::Remove,
            }
        }
        Fate::Keep
    }))
}

/// A message reaches the connection it is for. After that one has gone and another sits in its place, it reaches nobody.
#[test]
fn a_message_to_a_connection_that_has_gone_reaches_nobody() {
    let running = echoing();
    let old = running.connect();
    let old_key = running.keys(1)[0];
    drop(old);
    running.keys(0);
    let new = running.connect();
    let new_key = running.keys(1)[0];
    assert_ne!(old_key, new_key);

    let (sender, receiver) = channel();
    for key in [old_key, new_key] {
        assert!(
            running
                .mailbox
                .post(Mail::Connection(key, Message::Greet(sender.clone())))
                .is_ok()
        );
    }
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(new_key));
    drop((sender, new));
    running.finish();
    assert!(receiver.recv().is_err());
}

/// A timer fires; that of a connection that has gone does not, even if its place is taken again.
#[test]
fn a_timer_goes_with_its_connection() {
    let running = echoing();
    let (fired, firings) = channel();
    let arm = |key, delay| {
        let message = Message::Arm(Duration::from_millis(delay), fired.clone());
        assert!(running.mailbox.post(Mail::Connection(key, message)).is_ok());
    };
    let gone = running.connect();
    arm(running.keys(1)[0], 20);
    drop(gone);
    running.keys(0);
    let heir = running.connect();
    let heir_key = running.keys(1)[0];
    arm(heir_key, 60);

    assert_eq!(firings.recv_timeout(PATIENCE), Ok(heir_key));
    drop(heir);
    running.finish();
}

/// A worker that is told to finish takes no new connection and ends with its last one.
#[test]
fn a_worker_ends_with_its_last_connection() {
    let running = echoing();
    let mut client = running.connect();
    running.keys(1);
    running.tell(Instruction::Finish);
    client.write_all(b"still here").unwrap();
    let mut answer = [0; 10];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"still here");
    let mailbox = running.mailbox.clone();
    drop(client);
    running.join();
    assert!(
        mailbox.post(Mail::Worker(Instruction::Finish)).is_err(),
        "its mailbox is closed"
    );
}

fn expect_echo(client: &mut TcpStream) {
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
}

/// A listener that is opened while the worker runs is accepted on, also for who had connected before the worker knew of it.
#[test]
fn a_listener_can_be_opened_at_run_time() {
    let running = echoing();
    let listener = listening();
    let mut early = TcpStream::connect(listener.address().unwrap()).unwrap();
    early.set_read_timeout(Some(PATIENCE)).unwrap();

    running.have(|done| Instruction::Listen(1, listener, done));

    expect_echo(&mut early);
    drop(early);
    running.finish();
}

/// A listener that is closed loses nobody who had connected before; whoever comes later is refused. The other one goes on.
#[test]
fn a_closed_listener_loses_nobody_who_waits() {
    let running = echoing();
    let listener = listening();
    let address = listener.address().unwrap();
    running.have(|done| Instruction::Listen(1, listener, done));
    let (release, held) = channel();
    running.tell(Instruction::Hold(held));
    let mut waiting: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();

    release.send(()).unwrap();
    running.have(|done| Instruction::StopListening(1, done));

    assert!(TcpStream::connect(address).is_err());
    for client in &mut waiting {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        expect_echo(client);
    }
    expect_echo(&mut running.connect());
    drop(waiting);
    running.finish();
}

/// Two sockets of one listener go from one worker to another, which has both under one number: whoever waits in either is served
/// there, and so is who connects when the first has closed its own.
#[test]
fn a_listener_goes_over_to_another_worker() {
    let (old, new) = (echoing(), echoing());
    let first = listening();
    let address = first.address().unwrap();
    let second = Listener::bind(address, Sharing::Workers, StreamOptions::default()).unwrap();
    for listener in [first, second] {
        old.have(|done| Instruction::Listen(1, listener, done));
    }
    let lent = old.lent(1);
    assert_eq!(lent.len(), 2);
    let (release, held) = channel();
    old.tell(Instruction::Hold(held));
    let connect = || TcpStream::connect(address).unwrap();
    let mut clients: Vec<_> = (0..50).map(|_| connect()).collect();

    for inherited in lent {
        let listener = Listener::adopt(inherited, StreamOptions::default()).unwrap();
        new.have(|done| Instruction::Listen(1, listener, done));
    }
    for client in &mut clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        expect_echo(client);
    }
    release.send(()).unwrap();
    old.have(|done| Instruction::StopListening(1, done));
    old.finish();

    expect_echo(&mut connect());
    new.have(|done| Instruction::StopListening(1, done));
    assert!(TcpStream::connect(address).is_err());
    drop(clients);
    new.finish();
}
