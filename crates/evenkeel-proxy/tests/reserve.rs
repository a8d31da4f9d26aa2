//! More clients than there are descriptors for: those who are accepted are served, and some descriptors are left.
//!
//! A test binary of its own, because the limit is that of the whole process.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use evenkeel_proxy::telemetry::reason::Reason;
use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{Proxy, SessionSink};
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, setrlimit};

#[path = "support/settings.rs"]
mod settings;
use settings::{PATIENCE, settings};

const DESCRIPTORS: u64 = 160;

const CLIENTS: usize = 80;

/// What the control socket needs for its sixteen connections.
const NEEDED: usize = 16;

struct Reasons(Sender<Reason>);

impl SessionSink for Reasons {
    fn session_ended(&self, record: SessionRecord) {
        // A test that is over reads no more of them.
        let _ = self.0.send(record.reason);
    }
}

/// Eighty clients come at once and stay. As many are accepted as can have an endpoint, each of those has one, and there are
/// descriptors left to watch and stop the process with. Whenever one leaves, another one's turn comes.
#[test]
fn whoever_is_accepted_has_an_endpoint_and_descriptors_are_left() {
    let limit = Some(DESCRIPTORS);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )
    .unwrap();
    // Opened before the start: they are not the proxy's to give.
    let clients: Vec<OwnedFd> = (0..CLIENTS)
        .map(|_| net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap())
        .collect();
    // Nobody accepts: connections are made all the same, and take no descriptor here.
    let endpoint = TcpListener::bind("127.0.0.1:0").unwrap();
    let (sender, reasons) = channel();
    let mut settings = settings(&[("quiet", endpoint.local_addr().unwrap())]);
    // One worker has one backlog: clients are accepted in the order in which they came.
    settings.process.workers = 1;
    let proxy = Proxy::start(settings, Arc::new(Reasons(sender))).unwrap();
    let address = proxy.listeners()[0].address.ip().unwrap();
    for client in &clients {
        net::connect(client, &address).unwrap();
    }

    for (number, client) in clients.into_iter().enumerate() {
        let begun = Instant::now();
        while proxy.listeners()[0].accepted <= number as u64 {
            assert!(begun.elapsed() < PATIENCE, "client {number} is accepted");
            thread::park_timeout(Duration::from_millis(1));
        }
        let left: Vec<_> = (0..NEEDED).map(|_| File::open("/dev/null")).collect();
        assert!(left.iter().all(Result::is_ok));
        sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop((client, left));
    }
    for _ in 0..CLIENTS {
        let reason = reasons.recv_timeout(PATIENCE).unwrap();
        assert_ne!(reason, Reason::LocalResources);
    }
}
