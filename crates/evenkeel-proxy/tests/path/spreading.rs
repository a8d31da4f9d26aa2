//! Sessions over workers: few long ones are spread exactly, and none is lost on its way from one worker to another.

use std::io::Write;
use std::net::TcpStream;

use evenkeel_proxy::settings::Layer;

use crate::world::{Endpoint, World, eventually, exchange, read_exactly};

/// A world of so many workers, and its echoing endpoint.
fn world_of(workers: usize) -> (World, Endpoint) {
    let endpoint = Endpoint::echoing("only");
    let world = World::with(&[&endpoint], |settings| settings.process.workers = workers);
    (world, endpoint)
}

/// A client whose session is known to run.
fn served(world: &World) -> TcpStream {
    let mut client = world.connect();
    client.write_all(b"!").unwrap();
    read_exactly(&mut client, 1);
    client
}

/// Whichever worker the kernel gives them to, 16 long connections are 8 and 8; those that follow others that went, too.
#[test]
fn fault_43_few_long_connections_are_spread_exactly() {
    let (world, _endpoint) = world_of(2);
    let mut clients: Vec<TcpStream> = (0..16).map(|_| served(&world)).collect();
    assert_eq!(world.proxy.worker_sessions(Layer::Transport), [8, 8]);

    clients.truncate(3);
    eventually("13 sessions have ended", || world.proxy.sessions() == 3);
    clients.extend((3..16).map(|_| served(&world)));
    assert_eq!(world.proxy.worker_sessions(Layer::Transport), [8, 8]);
}

/// With four workers as well, though all come at once.
#[test]
fn a_burst_is_spread_as_well() {
    let (world, _endpoint) = world_of(4);
    let clients: Vec<TcpStream> = (0..400).map(|_| world.connect()).collect();
    eventually("all are sessions", || world.proxy.sessions() == 400);
    let sessions = world.proxy.worker_sessions(Layer::Transport);
    assert_eq!(sessions.iter().sum::<usize>(), 400);
    // An eighth, and what workers that accept at the same moment do not yet know of each other.
    let (least, most) = (
        sessions.iter().min().unwrap(),
        sessions.iter().max().unwrap(),
    );
    assert!(most - least <= 40, "{sessions:?}");
    drop(clients);
}

/// A drain while sockets are on their way between workers: every client that was accepted is served to its end.
#[test]
fn a_drain_loses_nobody_on_the_way() {
    for round in 0..20 {
        let (world, _endpoint) = world_of(4);
        let mut clients: Vec<TcpStream> = (0..40).map(|_| world.connect()).collect();
        // With the draining at a different point of the handing over each time.
        eventually("some are sessions", || world.proxy.sessions() >= 2 * round);
        world.proxy.drain();
        for client in &mut clients {
            assert_eq!(exchange(client, b"still here?"), b"still here?");
        }
        world.proxy.join();
        for _ in 0..40 {
            world.next_record();
        }
        assert_eq!(world.proxy.worker_sessions(Layer::Transport), [0; 4]);
    }
}

/// A close at such a moment leaves no session, and does not wait for one.
#[test]
fn a_close_leaves_nobody_on_the_way() {
    for round in 0..20 {
        let (world, _endpoint) = world_of(4);
        let clients: Vec<TcpStream> = (0..40).map(|_| world.connect()).collect();
        eventually("some are sessions", || world.proxy.sessions() >= 2 * round);
        world.proxy.close();
        world.proxy.join();
        assert_eq!(world.proxy.worker_sessions(Layer::Transport), [0; 4]);
        assert_eq!(world.proxy.sessions(), 0);
        drop(clients);
    }
}
