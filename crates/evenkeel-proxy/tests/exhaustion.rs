//! Running out of descriptors: accepting rests, and goes on by itself when there are some again.
//!
//! A test binary of its own, because the limit is that of the whole process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{Proxy, SessionSink};
use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, setrlimit};

#[path = "support/settings.rs"]
mod settings;
use settings::{PATIENCE, settings};

const DESCRIPTORS: u64 = 80;

struct Nobody;

impl SessionSink for Nobody {
    fn session_ended(&self, _: SessionRecord) {}
}

/// A client connects while the process has no descriptor left, and waits in the backlog. As soon as there are some again it is
/// served, although no new event tells of it.
#[test]
fn a_client_in_the_backlog_is_served_when_descriptors_are_free_again() {
    let limit = Some(DESCRIPTORS);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    thread::spawn(move || greet(&listener));
    let proxy = Proxy::start(settings(&[("greeter", endpoint)]), Arc::new(Nobody)).unwrap();
    let address = proxy.listeners()[0].address.ip().unwrap();

    let client = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let mut fillers = Vec::new();
    while let Ok(filler) = File::open("/dev/null") {
        fillers.push(filler);
    }
    net::connect(&client, &address).unwrap();
    let mut client = TcpStream::from(client);
    // Not a word comes while nothing can be accepted; the worker has meanwhile tried.
    client
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!(client.read(&mut [0]).is_err());
    drop(fillers);

    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"hello");
}

/// Greets whoever connects, and holds the connection as long as the other side does.
fn greet(listener: &TcpListener) {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => drop(thread::spawn(move || {
                let _ = stream.write_all(b"hello");
                let _ = stream.read(&mut [0]);
            })),
            Err(_) => thread::yield_now(),
        }
    }
}
