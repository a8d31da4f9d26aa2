//! Descriptors: after any mixture of sessions and a stop, the process has as many open as before.
//!
//! A test binary of its own, because it counts those of the whole process.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenkeel_proxy::settings::FailureReply;
use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{Proxy, SessionSink};
use rustix::net::sockopt;
use tokio::runtime::Builder;

#[path = "support/settings.rs"]
mod settings;
use settings::{PATIENCE, settings};

const CLIENTS: u64 = 300;

struct Nobody;

impl SessionSink for Nobody {
    fn session_ended(&self, _: SessionRecord) {}
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Three hundred clients leave in every way there is, one endpoint of two is dead, some sessions are cut off by the stop:
/// nothing stays open.
#[test]
fn nothing_stays_open() {
    // The first runtime of a process opens a pair of sockets for signals, which stays.
    let runtime = Builder::new_current_thread().enable_io().build();
    drop(runtime.unwrap());
    let before = open_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let alive = listener.local_addr().unwrap();
    let dead = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let serving = thread::spawn(move || serve(&listener, CLIENTS));

    let mut settings = settings(&[("alive", alive), ("dead", dead)]);
    settings.listeners[0].failure_reply = Some(FailureReply::MysqlError);
    settings.clusters[0].replay = 1000;
    let proxy = Proxy::start(settings, Arc::new(Nobody)).unwrap();
    let address = proxy.listeners()[0].address.ip().unwrap();
    let left: Vec<TcpStream> = (0..CLIENTS)
        .filter_map(|number| visit(address, number))
        .collect();
    assert!(!left.is_empty());
    proxy.close();
    proxy.join();
    drop((proxy, left));
    serving.join().unwrap();

    assert_eq!(open_descriptors(), before);
}

/// One client, in one of five ways; the last is to stay.
fn visit(address: std::net::SocketAddr, number: u64) -> Option<TcpStream> {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"hello").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    match number % 5 {
        0 => {
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            None
        }
        1 => None,
        2 => {
            sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
            None
        }
        3 => {
            client.write_all(&[0; 10_000]).unwrap();
            None
        }
        _ => Some(client),
    }
}

/// An echo for so many connections; it ends when all of them have.
fn serve(listener: &TcpListener, count: u64) {
    let serving: Vec<_> = (0..count)
        .map(|_| {
            let (mut stream, _) = listener.accept().unwrap();
            thread::spawn(move || {
                let mut reader = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut reader, &mut stream);
            })
        })
        .collect();
    for session in serving {
        session.join().unwrap();
    }
}
