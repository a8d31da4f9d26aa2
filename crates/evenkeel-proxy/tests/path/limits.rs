//! Waits: for a free slot, for first bytes, for anything at all.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{
    Endpoint, World, assert_same, bytes_of, eventually, exchange, patient, read_all, read_exactly,
    read_to_reset, reset, text,
};

const SHORT: Duration = Duration::from_millis(50);

fn narrow(max_connections: u32) -> Endpoint {
    let mut endpoint = Endpoint::naming("narrow");
    endpoint.max_connections = Some(max_connections);
    endpoint
}

/// Forty clients on four workers share one slot: each is served, one at a time, whichever worker a slot becomes free on.
#[test]
fn a_freed_slot_goes_to_the_next_client_on_any_worker() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut endpoint = Endpoint::serving("narrow", {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move |mut stream| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let request = read_all(&mut stream);
            now.fetch_sub(1, Ordering::SeqCst);
            stream.write_all(&request).unwrap();
        }
    });
    endpoint.max_connections = Some(1);
    let world = World::with(&[&endpoint], |settings| settings.process.workers = 4);
    let address = world.address();
    let clients: Vec<_> = (0..40)
        .map(|seed| {
            thread::spawn(move || {
                let mut client = patient(TcpStream::connect(address).unwrap());
                let request = bytes_of(seed, 1000);
                assert_same(&exchange(&mut client, &request), &request);
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

/// A client that waits too long for a slot is told.
#[test]
fn waiting_for_a_slot_ends() {
    let endpoint = narrow(1);
    let world = World::with(&[&endpoint], |settings| {
        settings.clusters[0].queue_timeout = SHORT;
        settings.listeners[0].failure_reply = Some(text("busy"));
    });
    let mut first = world.connect();
    read_exactly(&mut first, 6);
    assert_eq!(exchange(&mut world.connect(), b""), b"busy");
    let record = world.next_record();
    assert_eq!((record.reason, record.attempts), (Reason::QueueTimeout, 0));
    assert!(record.queued >= SHORT, "{:?}", record.queued);
    assert_eq!(
        world.proxy.clusters()[0].status(world.proxy.now()).waiting,
        0
    );
}

/// When the queue is full, the next client is told at once.
#[test]
fn a_full_queue_refuses() {
    let endpoint = narrow(1);
    let world = World::with(&[&endpoint], |settings| {
        settings.clusters[0].spec.queue_max = 1;
        settings.listeners[0].failure_reply = Some(text("full"));
    });
    let mut first = world.connect();
    read_exactly(&mut first, 6);
    let _second = world.connect();
    let waiting = || world.proxy.clusters()[0].status(world.proxy.now()).waiting;
    eventually("the second client waits", || waiting() == 1);
    assert_eq!(exchange(&mut world.connect(), b""), b"full");
    assert_eq!(world.next_record().reason, Reason::QueueFull);
}

/// A client that leaves while it waits gives its place up, and the endpoint never hears of it.
#[test]
fn a_client_that_leaves_the_queue_is_not_served() {
    let endpoint = narrow(1);
    let world = World::of(&[&endpoint]);
    let mut first = world.connect();
    read_exactly(&mut first, 6);
    let second = world.connect();
    let waiting = || world.proxy.clusters()[0].status(world.proxy.now()).waiting;
    eventually("the second client waits", || waiting() == 1);

    reset(second);
    assert_eq!(world.next_record().reason, Reason::ClientClosed);
    assert_eq!(waiting(), 0);
    drop(first);
    world.next_record();
    assert_eq!(world.endpoint("narrow").leases, 1);
}

/// A client that has ended its stream while it waits is still served: it wants its answer.
#[test]
fn a_half_closed_client_keeps_its_place() {
    let endpoint = narrow(1);
    let world = World::of(&[&endpoint]);
    let mut first = world.connect();
    read_exactly(&mut first, 6);
    let mut second = world.connect();
    second.shutdown(Shutdown::Write).unwrap();
    let waiting = || world.proxy.clusters()[0].status(world.proxy.now()).waiting;
    eventually("the second client waits", || waiting() == 1);
    drop(first);
    assert_eq!(read_all(&mut second), b"narrow");
}

/// A client that sends nothing usable gets the text meant for it, at its end of stream or when its time is up.
#[test]
fn an_empty_request_has_a_reply_of_its_own() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].empty_reply = Some(b"empty\n".as_slice().into());
        settings.listeners[0].timeouts.preread = SHORT;
    });
    assert_eq!(exchange(&mut world.connect(), b" \r\n"), b"empty\n");
    assert_eq!(world.next_record().reason, Reason::EmptyRequest);
    assert_eq!(read_all(&mut world.connect()), b"empty\n");
    assert_eq!(world.next_record().reason, Reason::PrereadTimeout);
    assert_eq!(exchange(&mut world.connect(), b"  x"), b"  x");
    assert_eq!(world.endpoint("echo").leases, 1);
}

/// A session in which nothing moves ends, and both sides see that it is not complete.
#[test]
fn an_idle_session_ends() {
    let endpoint = Endpoint::naming("idle");
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].timeouts.idle = Some(SHORT);
    });
    assert_eq!(read_to_reset(&mut world.connect()), b"idle");
    assert_eq!(world.next_record().reason, Reason::IdleTimeout);
}

/// The kernel watches over both sides of a session that lives on: each has a keepalive timer.
#[test]
fn a_dead_peer_of_a_silent_session_is_noticed() {
    let endpoint = Endpoint::naming("silent");
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].timeouts.dead_peer = Some(Duration::from_secs(1));
    });
    let mut client = world.connect();
    assert_eq!(read_exactly(&mut client, 6), b"silent");

    let (proxy, peer) = (world.address(), client.local_addr().unwrap());
    eventually("the client's side is watched", || {
        is_watched(|local, remote| local == proxy.port() && remote == peer.port())
    });
    eventually("the endpoint's side is watched", || {
        is_watched(|_, remote| remote == endpoint.address.port())
    });
}

/// Whether such a connection of this machine, by its ports, has a keepalive timer. See proc_pid_net(5).
fn is_watched(is_it: impl Fn(u16, u16) -> bool) -> bool {
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ports = port(fields[1]).zip(port(fields[2]));
        ports.is_some_and(|(local, remote)| is_it(local, remote)) && fields[5].starts_with("02:")
    })
}

/// Once one side has ended, the other has its own time limit.
#[test]
fn a_half_closed_session_ends() {
    let endpoint = Endpoint::serving("ended", |mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].timeouts.half_closed = Some(SHORT);
    });
    let mut client = world.connect();
    assert_eq!(read_all(&mut client), b"bye");
    assert_eq!(world.next_record().reason, Reason::HalfClosedTimeout);
}
