//! Each load, through a relay that does what it should, and through relays that do not: a load that cannot fail shows nothing.

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use evenkeel_bench::{Course, Figures, HttpLoad, Load, Plan, Request, TcpLoad, Transport, run};
use support::free;

const PING_PONG: Load = Load::Tcp(TcpLoad::PingPong);
const CONNECT: Load = Load::Tcp(TcpLoad::Connect);
const BULK: Load = Load::Tcp(TcpLoad::Bulk);
const IDLE: Load = Load::Tcp(TcpLoad::Idle);
const GET: Load = http(Request::Get, 128, Course::KeepAlive);
const GET_LARGE: Load = http(Request::Get, 1 << 20, Course::KeepAlive);
const POST: Load = http(Request::Post(1 << 20), 128, Course::KeepAlive);
const CONNECT_GET: Load = http(Request::Get, 128, Course::Connect);
const HTTP_IDLE: Load = http(Request::Get, 128, Course::Idle);

const fn http(request: Request, answer_bytes: u64, course: Course) -> Load {
    Load::Http(HttpLoad {
        request,
        answer_bytes,
        course,
        transport: Transport::Plain,
    })
}

/// What a relay does to the bytes from the endpoint to the client.
#[derive(Clone, Copy)]
enum Relay {
    Faithful,
    /// Changes a bit of every piece.
    Corrupt,
    /// Leaves one piece out, when the stream is well under way.
    Forgetful,
    /// Passes one piece on, then closes.
    Brief,
}

/// The piece that a forgetful relay leaves out.
const FORGOTTEN: usize = 10;

impl Relay {
    /// Serves for as long as the test program runs. The first connection only asks whether it is served, and is.
    fn start(self, endpoint: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let client = client.expect("a connection");
                // A load that has failed has ended its endpoints.
                let Ok(upstream) = TcpStream::connect(endpoint) else {
                    continue;
                };
                let relay = if number == 0 { Self::Faithful } else { self };
                relay.join(&client, &upstream);
            }
        });
        address
    }

    fn join(self, client: &TcpStream, upstream: &TcpStream) {
        let copy = |stream: &TcpStream| stream.try_clone().expect("one more descriptor");
        let (from, to) = (copy(client), copy(upstream));
        thread::spawn(move || Self::Faithful.pass(from, to));
        let (from, to) = (copy(upstream), copy(client));
        thread::spawn(move || self.pass(from, to));
    }

    fn pass(self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 4096];
        for number in 0.. {
            let count = from.read(&mut buffer).unwrap_or(0);
            let piece = self.treat(number, &mut buffer[..count]);
            if count == 0 || to.write_all(piece).is_err() || matches!(self, Self::Brief) {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }

    fn treat(self, number: usize, piece: &mut [u8]) -> &[u8] {
        match self {
            Self::Forgetful if number == FORGOTTEN => return &[],
            Self::Corrupt => piece.iter_mut().take(1).for_each(|byte| *byte ^= 1),
            _ => {}
        }
        piece
    }
}

/// A short load over four connections, watching this very process.
fn through(relay: Relay, load: Load) -> anyhow::Result<Figures> {
    let endpoint = free();
    run(&Plan {
        load,
        connections: 4,
        target: relay.start(endpoint),
        endpoints: vec![endpoint],
        warm_up_millis: 10,
        window_millis: 50,
        trusted: None,
        watched: vec![std::process::id()],
    })
}

fn fault(relay: Relay, load: Load) -> String {
    let fault = through(relay, load).expect_err("the relay is faulty");
    format!("{fault:#}")
}

/// Through a faithful relay, every load comes to its end with work done, and the use of the machine is read.
#[test]
fn a_load_through_a_faithful_relay_ends_with_figures() {
    for load in [
        PING_PONG,
        CONNECT,
        BULK,
        IDLE,
        GET,
        GET_LARGE,
        POST,
        CONNECT_GET,
        HTTP_IDLE,
    ] {
        let figures = through(Relay::Faithful, load).expect("the relay is faithful");
        assert!(figures.work > 0, "{load:?}: {figures:?}");
        assert!(figures.connections >= 4, "{load:?}: {figures:?}");
        let usage = figures.usage.expect("a process was watched");
        assert!(
            usage.cpu_nanos > 0 && usage.resident_bytes > 0,
            "{load:?}: {figures:?}"
        );
    }
}

/// An answer that is not what was sent is no answer.
#[test]
fn a_changed_answer_is_noticed() {
    for load in [PING_PONG, CONNECT, IDLE, GET, CONNECT_GET, HTTP_IDLE] {
        let fault = fault(Relay::Corrupt, load);
        assert!(fault.contains("wrong answer"), "{load:?}: {fault}");
    }
}

/// A stream with a gap is no stream.
#[test]
fn a_gap_in_a_stream_is_noticed() {
    let fault = fault(Relay::Forgetful, BULK);
    assert!(fault.contains("wrong bytes in the stream"), "{fault}");
}

/// A body with a gap is no body.
#[test]
fn a_gap_in_a_body_is_noticed() {
    let fault = fault(Relay::Forgetful, GET_LARGE);
    assert!(fault.contains("wrong body"), "{fault}");
}

/// A connection that ends before its time fails the load: in order, or by a reset where something of the client's was unread.
#[test]
fn an_early_end_is_noticed() {
    for (load, words) in [
        (PING_PONG, "before the answer was complete"),
        (GET_LARGE, "before the answer was complete"),
        (BULK, "before it was asked to"),
    ] {
        let fault = fault(Relay::Brief, load);
        let is_noticed = fault.contains(words) || fault.contains("reset by peer");
        assert!(is_noticed, "{load:?}: {fault}");
    }
}
