//! How many sessions there may be: the limits of listeners and of the process, and workers that answer.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use evenkeel_proxy::settings::{Layer, Settings};
use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{PauseStatus, Proxy, SessionSink, WorkerPulse};
use parking_lot::Mutex;

use crate::world::{
    Endpoint, World, assert_same, bytes_of, eventually, exchange, patient, read_all, read_exactly,
    settings,
};

/// An endpoint that echoes a whole request at its end, and the most sessions it ever had at one time.
fn counting() -> (Endpoint, Arc<AtomicUsize>) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let endpoint = Endpoint::serving("counting", move |mut stream| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let request = read_all(&mut stream);
        now.fetch_sub(1, Ordering::SeqCst);
        stream.write_all(&request).unwrap();
    });
    (endpoint, seen)
}

fn ask_many(address: SocketAddr, clients: u64) {
    let clients: Vec<_> = (0..clients)
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
}

fn pauses(world: &World) -> PauseStatus {
    world.proxy.listeners()[0].pauses
}

/// Forty clients on four workers, three at a time: each is served, and never are there more.
#[test]
fn a_listener_never_has_more_sessions_than_its_limit() {
    let (endpoint, most) = counting();
    let world = World::with(&[&endpoint], |settings| {
        settings.process.workers = 4;
        settings.listeners[0].max_connections = NonZeroU32::new(3);
    });

    ask_many(world.address(), 40);

    assert!(most.load(Ordering::SeqCst) <= 3);
    let pauses = pauses(&world);
    assert!(pauses.begun[0] > 0, "{pauses:?}");
    assert_eq!(pauses.begun[1..], [0, 0]);
    eventually("no worker pauses", || self::pauses(&world).workers == 0);
}

/// The same for all listeners together; each of them gets its turn.
#[test]
fn a_process_never_has_more_sessions_than_its_limit() {
    let (endpoint, most) = counting();
    let world = World::with(&[&endpoint], |settings| {
        settings.process.max_connections = NonZeroU32::new(2);
        let mut second = settings.listeners[0].clone();
        second.name = "second".into();
        settings.listeners.push(second);
    });
    let addresses = world.proxy.listeners();
    let addresses = addresses.iter().map(|listener| listener.address.ip());
    let clients: Vec<_> = addresses
        .map(Option::unwrap)
        .map(|address| thread::spawn(move || ask_many(address, 20)))
        .collect();
    for client in clients {
        client.join().unwrap();
    }

    assert!(most.load(Ordering::SeqCst) <= 2);
    assert_eq!(world.proxy.sessions_max(), 2);
    assert!(pauses(&world).begun[1] > 0);
}

/// A client that waits for a place has it as soon as a reload raises the limit, whichever worker it waits on.
#[test]
fn a_reload_that_raises_the_limit_lets_clients_in() {
    let endpoint = Endpoint::echoing("a");
    let limit = |most| {
        move |settings: &mut Settings| settings.listeners[0].max_connections = NonZeroU32::new(most)
    };
    let world = World::with(&[&endpoint], limit(1));
    let mut first = world.connect();
    first.write_all(b"one").unwrap();
    read_exactly(&mut first, 3);
    let mut waiting: Vec<TcpStream> = (0..8).map(|_| world.connect()).collect();
    for client in &mut waiting {
        client.write_all(b"two").unwrap();
    }
    eventually("a worker pauses", || pauses(&world).workers > 0);
    assert_eq!(world.proxy.listeners()[0].sessions, 1);

    let mut after = settings(&[&endpoint]);
    limit(20)(&mut after);
    world.proxy.reload(after).unwrap();

    for client in &mut waiting {
        assert_eq!(read_exactly(client, 3), b"two");
    }
}

/// Tells a session's end only when it is let go: until then its worker is stuck, as if in an endless loop.
struct Stuck(Mutex<Receiver<()>>);

impl SessionSink for Stuck {
    fn session_ended(&self, _: SessionRecord) {
        let _ = self.0.lock().recv();
    }
}

/// A worker that is stuck leaves its question unread; the other one answers. Once it goes on, it answers too.
#[test]
fn a_stuck_worker_is_noticed() {
    let endpoint = Endpoint::echoing("a");
    let (let_go, held) = channel();
    let proxy = Proxy::start(settings(&[&endpoint]), Arc::new(Stuck(Mutex::new(held)))).unwrap();
    let silent = || {
        proxy.ask_workers();
        let pulses = proxy.worker_pulses(Layer::Transport).into_iter();
        pulses
            .filter(|pulse| *pulse != WorkerPulse::Answered)
            .count()
    };
    eventually("all answer", || silent() == 0);

    let address = proxy.listeners()[0].address.ip().unwrap();
    let mut client = patient(TcpStream::connect(address).unwrap());
    client.write_all(b"one").unwrap();
    read_exactly(&mut client, 3);
    drop(client);
    eventually("one does not answer", || {
        silent();
        let long = |pulse: &WorkerPulse| matches!(pulse, WorkerPulse::Silent(time) if time.as_millis() > 200);
        proxy.worker_pulses(Layer::Transport).iter().any(long)
    });

    drop(let_go);
    eventually("all answer again", || silent() == 0);
}
