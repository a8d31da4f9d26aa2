//! Workers of the application layer: what holds for a listener, holds for theirs.

use std::num::NonZeroU32;
use std::sync::Arc;

use evenkeel_core::units::Address;
use evenkeel_proxy::ReloadError;
use evenkeel_proxy::settings::{Layer, Protocol, Settings};
use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{Endpoint, World, eventually, patient, read_to_reset};

fn http(settings: &mut Settings) {
    settings.listeners[0].protocol = Protocol::Http(Arc::default());
}

/// Of few sessions each worker gets its share, of its own kind alone.
#[test]
fn sessions_are_spread_among_those_of_the_layer() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], http);

    // One after the other: of those that come at the same moment, two workers may each take one too many.
    let connect = |number| {
        let client = world.connect();
        eventually("it is a session", || world.proxy.sessions() == number);
        client
    };
    let clients: Vec<_> = (1..=16).map(connect).collect();

    assert_eq!(world.proxy.worker_sessions(Layer::Application), [8, 8]);
    assert_eq!(world.proxy.worker_sessions(Layer::Transport), [0, 0]);
    drop(clients);
    eventually("none is left", || world.proxy.sessions() == 0);
}

/// Beyond the limit clients wait in the backlog; each that leaves makes room for one.
#[test]
fn the_limit_holds() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| {
        http(settings);
        settings.listeners[0].max_connections = NonZeroU32::new(2);
    });

    let mut clients: Vec<_> = (0..5).map(|_| world.connect()).collect();
    let listener = || world.proxy.listeners().remove(0);
    eventually("it rests", || listener().pauses.workers > 0);
    assert_eq!(listener().sessions, 2);

    // Which two were accepted is the kernel's choice: one that leaves the backlog makes no room.
    clients.clear();
    eventually("all have had their turn", || listener().accepted == 5);
    eventually("none is left", || listener().sessions == 0);
}

/// A drain asks sessions to finish; those that only wait do so at once, and the threads end.
#[test]
fn a_drain_ends_what_only_waits() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], http);
    let _clients: Vec<_> = (0..4).map(|_| world.connect()).collect();
    eventually("all are sessions", || world.proxy.sessions() == 4);

    world.proxy.drain();

    world.proxy.join();
    assert_eq!(world.proxy.sessions(), 0);
}

/// A worker that rests answers when it is asked.
#[test]
fn a_worker_answers() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], http);
    world.proxy.ask_workers();
    eventually("all answer", || {
        let pulses = world.proxy.worker_pulses(Layer::Application);
        pulses.len() == 2
            && pulses
                .iter()
                .all(|pulse| *pulse == evenkeel_proxy::WorkerPulse::Answered)
    });
}

/// The same address, and another protocol: the workers of the other layer take over, and back.
#[test]
fn a_listener_may_change_its_protocol() {
    let endpoint = Endpoint::naming("east");
    let world = World::of(&[&endpoint]);
    let place = world.address();
    let mut wanted = (*world.proxy.settings()).clone();
    wanted.listeners[0].bind = Address::Ip(place);
    let tcp = wanted.clone();
    http(&mut wanted);

    for (settings, layer) in [
        (&wanted, Layer::Application),
        (&tcp, Layer::Transport),
        (&wanted, Layer::Application),
    ] {
        world.proxy.reload(settings.clone()).unwrap();
        assert_eq!(world.address(), place);
        let _client = world.connect();
        eventually("it is a session of the layer", || {
            world.proxy.worker_sessions(layer).iter().sum::<usize>() == 1
        });
        drop(_client);
        eventually("and ends", || world.proxy.sessions() == 0);
    }
}

/// Changing the protocol of a path would take it from its own holder: that is refused, and nothing changes.
#[test]
fn a_path_keeps_its_protocol() {
    let endpoint = Endpoint::echoing("echo");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].bind = Address::Unix(path.as_path().into());
    });
    let mut wanted = (*world.proxy.settings()).clone();
    http(&mut wanted);

    let refused = world.proxy.reload(wanted);

    assert!(matches!(refused, Err(ReloadError::Start(_))));
    drop(std::os::unix::net::UnixStream::connect(&path).unwrap());
}

/// A trusted peer that begins with no PROXY header is reset, and its session is told of.
#[test]
fn a_header_that_is_missing_ends_the_session() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| {
        http(settings);
        let sender = evenkeel_proxy::Sender::Network("127.0.0.0/8".parse().unwrap());
        settings.listeners[0].proxy_protocol = Some(Arc::new([sender]));
    });
    let mut client = patient(world.connect());

    std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\n\r\n").unwrap();

    read_to_reset(&mut client);
    assert_eq!(world.next_record().reason, Reason::ProxyProtocolError);
}
