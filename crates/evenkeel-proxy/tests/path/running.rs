//! Starting, draining, closing.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;

use evenkeel_proxy::telemetry::reason::Reason;
use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{Proxy, SessionSink, StartError};

use crate::world::{Endpoint, World, eventually, read_exactly, read_to_reset, settings};

pub(crate) struct Nobody;

impl SessionSink for Nobody {
    fn session_ended(&self, _: SessionRecord) {}
}

pub(crate) fn start_error(settings: evenkeel_proxy::settings::Settings) -> StartError {
    match Proxy::start(settings, Arc::new(Nobody)) {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

/// A drain refuses new clients and lets the others finish; the threads end with the last of them.
#[test]
fn a_drain_lets_sessions_finish() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::of(&[&endpoint]);
    let address = world.address();
    let mut client = world.connect();
    client.write_all(b"one").unwrap();
    read_exactly(&mut client, 3);

    world.proxy.drain();
    eventually("new clients are refused", || {
        TcpStream::connect(address).is_err()
    });
    client.write_all(b"two").unwrap();
    assert_eq!(read_exactly(&mut client, 3), b"two");
    drop(client);
    world.proxy.join();
    assert_eq!(world.proxy.sessions(), 0);
}

/// A close ends what runs, visibly unfinished, and names the reason.
#[test]
fn a_close_ends_all_sessions() {
    let endpoint = Endpoint::naming("endless");
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    read_exactly(&mut client, 7);
    world.proxy.drain();
    world.proxy.close();
    world.proxy.join();
    assert_eq!(read_to_reset(&mut client), b"");
    assert_eq!(world.next_record().reason, Reason::StopDeadline);
}

/// A second start on the same address fails and names the process that holds it, be it another program or another evenkeel.
#[test]
fn a_second_start_names_the_first() {
    let endpoint = Endpoint::naming("any");
    let world = World::of(&[&endpoint]);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [world.address(), other.local_addr().unwrap()] {
        let mut second = settings(&[&endpoint]);
        second.listeners[0].bind = address.into();
        let error = start_error(second);
        assert!(
            matches!(&error, StartError::AddressInUse { holder: Some(holder), .. } if holder.pid == std::process::id())
        );
        assert!(
            error
                .to_string()
                .contains(&format!("(pid {})", std::process::id())),
            "{error}"
        );
    }
}

/// Of several starts on one address at one moment no more than one has it, and the others are told that it is in use.
#[test]
fn two_starts_at_one_moment_never_share_an_address() {
    const STARTS: usize = 6;
    let endpoint = Endpoint::naming("any");
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = free.into();
    let mut winners = 0;
    for round in 0..50 {
        let together = Barrier::new(STARTS);
        let start = || {
            together.wait();
            Proxy::start(wanted.clone(), Arc::new(Nobody))
        };
        let results: Vec<_> = thread::scope(|scope| {
            let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
            starts.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let lost = |result: &&_| matches!(result, Err(StartError::AddressInUse { .. }));
        let losers = results.iter().filter(lost).count();
        assert!(losers >= STARTS - 1, "round {round}: {losers} lost");
        winners += STARTS - losers;
    }
    assert!(winners > 0);
}

/// If one listener cannot be had, none is left bound.
#[test]
fn a_failed_start_leaves_nothing_behind() {
    let endpoint = Endpoint::naming("any");
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = free.into();
    wanted.listeners.push(wanted.listeners[0].clone());
    wanted.listeners[1].name = "second".into();
    wanted.listeners[1].bind = held.local_addr().unwrap().into();

    let error = start_error(wanted.clone());
    assert!(matches!(&error, StartError::AddressInUse { listener, .. } if &**listener == "second"));
    assert!(TcpStream::connect(free).is_err());
    drop(held);
    drop(Proxy::start(wanted, Arc::new(Nobody)).unwrap());
}

/// A listener whose target is missing is named.
#[test]
fn an_unknown_target_is_named() {
    let endpoint = Endpoint::naming("any");
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].to = Some("elsewhere".into());
    assert!(start_error(wanted).to_string().contains("\"elsewhere\""));
}
