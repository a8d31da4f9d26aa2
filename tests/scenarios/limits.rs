//! More clients than there is room for: they wait, those inside do not notice, and the process neither burns nor goes deaf.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::metrics::Page;
use crate::support::service::Service;
use crate::support::{client, http, ports, wait};

/// Far too few: about seven sessions are what is left after what the process needs itself.
const DESCRIPTORS: u64 = 64;
const CLIENTS: usize = 200;
/// How long a listener without room rests at the most. Whoever had to wait for that would come in a pause after the one before.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Clients that have all asked at once; those that have been answered are inside.
struct Crowd {
    outside: Vec<TcpStream>,
    inside: Vec<TcpStream>,
}

impl Crowd {
    fn gather(front: SocketAddr, count: usize) -> Self {
        let ask = |_| {
            let mut stream = client::connect(front);
            stream.write_all(b"hello").expect("it is connected");
            stream.set_nonblocking(true).expect("it is open");
            stream
        };
        Self {
            outside: (0..count).map(ask).collect(),
            inside: Vec::new(),
        }
    }

    /// Moves those who have been answered.
    fn look(&mut self) {
        let answered = |stream: &mut TcpStream| match stream.read(&mut [0; 5]) {
            Ok(count) => {
                assert_eq!(count, 5, "an answer, not an end");
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "nobody is turned away");
                false
            }
        };
        for stream in self.outside.extract_if(.., answered) {
            stream.set_nonblocking(false).expect("it is open");
            self.inside.push(stream);
        }
    }
}

fn start_small(front: SocketAddr, admin: SocketAddr, endpoint: &Service) -> Evenkeel {
    Launch::new(format!(
        r#"
        [admin]
        bind = "{admin}"
        [listener.front]
        bind = "{front}"
        to = "echo"
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    ))
    .descriptors(DESCRIPTORS)
    .start()
}

/// Sixty-four descriptors and two hundred clients: those inside keep echoing, the others wait and cost nothing, operators and
/// probes are answered, and one after the other comes in as soon as one leaves: it is the place that wakes the listener, not its timer. A slow machine may
/// make a few of them late, not most.
#[test]
fn out_of_descriptors_clients_wait_and_nothing_burns() {
    let (endpoint, front, admin) = (Service::echo(), ports::free(), ports::free());
    let mut evenkeel = start_small(front, admin, &endpoint);
    let mut crowd = Crowd::gather(front, CLIENTS);
    let paused = [("listener", "front")];
    let paused = |page: &Page| page.value("evenkeel_listener_paused_workers", &paused);
    wait::until_so("some are inside, and the others wait", || {
        crowd.look();
        let page = Page::read(&http::get(admin, "/metrics").body);
        !crowd.inside.is_empty() && paused(&page) > 0.0
    });

    let busy = evenkeel.process().cpu_time();
    let (begun, mut rounds) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(1) {
        std::thread::park_timeout(Duration::from_millis(20));
        rounds += 1;
    }
    let busy = evenkeel.process().cpu_time() - busy;
    assert!(busy * 10 < begun.elapsed(), "{busy:?} in {rounds} rounds");

    for stream in &mut crowd.inside {
        client::echo(stream, b"still here");
    }
    assert!(evenkeel.ask(&["status"]).status.success());
    assert_eq!(http::get(admin, "/livez").status, 200);
    assert!(evenkeel.program_log().contains("no file descriptors left"));

    let (begun, mut waits) = (crowd.inside.len(), Vec::new());
    while !crowd.outside.is_empty() {
        crowd.inside.remove(0);
        let (left, inside) = (Instant::now(), crowd.inside.len());
        wait::until_so("the next one comes in", || {
            crowd.look();
            crowd.inside.len() > inside
        });
        waits.push(left.elapsed());
    }
    // Now and then two come in at once: a descriptor of a question to the process has become free, too.
    assert!(!waits.is_empty() && begun + waits.len() <= CLIENTS);
    waits.sort();
    let (middle, late) = (waits[waits.len() / 2], waits[waits.len() * 9 / 10]);
    assert!(middle < RETRY_PAUSE / 2, "by the timer alone: {waits:?}");
    assert!(late < Duration::from_secs(1), "{waits:?}");
}

/// A limit of three on a listener with two workers: three are inside, a place that becomes free goes to one who waits, and
/// the figures say what has happened.
#[test]
fn clients_beyond_a_limit_wait_their_turn() {
    let (endpoint, front, admin) = (Service::echo(), ports::free(), ports::free());
    let evenkeel = Launch::new(format!(
        r#"
        [admin]
        bind = "{admin}"
        [listener.front]
        bind = "{front}"
        to = "echo"
        max_connections = 3
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    ))
    .start();
    let mut crowd = Crowd::gather(front, 10);

    for served in [3, 4, 5, 6, 7] {
        wait::until_so("three are inside", || {
            crowd.look();
            crowd.inside.len() == 3
        });
        let page = Page::read(&http::get(admin, "/metrics").body);
        let labels = [("listener", "front")];
        assert!(page.value("evenkeel_listener_sessions", &labels) <= 3.0);
        assert_eq!(
            page.value("evenkeel_listener_max_connections", &labels),
            3.0
        );
        assert_eq!(crowd.outside.len(), 10 - served);
        crowd.inside.remove(0);
    }
    assert!(evenkeel.program_log().contains("max_connections"));
}

/// Who waits at an address that a reload removes is served, though its listener is full: there is no later for them.
#[test]
fn those_who_wait_at_an_address_that_goes_are_served() {
    let (endpoint, front, other) = (Service::echo(), ports::free(), ports::free());
    let config = |bind: SocketAddr| {
        format!(
            "[listener.front]\nbind = \"{bind}\"\nto = \"echo\"\nmax_connections = 1\n[cluster.echo]\nendpoints = [\"{}\"]\n",
            endpoint.address()
        )
    };
    let evenkeel = Evenkeel::start(config(front));
    let mut inside = client::connect(front);
    client::echo(&mut inside, b"inside");
    let mut waiting: Vec<TcpStream> = (0..8).map(|_| client::connect(front)).collect();

    evenkeel.reloaded(&config(other));

    for stream in waiting.iter_mut().chain([&mut inside]) {
        client::echo(stream, b"served");
    }
    assert!(client::try_connect(front).is_err());
}
