//! Hundreds of sessions that end in every way at once: each side gets an exact beginning of what the other sent, all of it
//! where both ended orderly, and nothing is left behind.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::evenkeel::Launch;
use crate::support::service::Service;
use crate::support::{client, ports, stream, wait};

const SESSIONS: u64 = 600;
const CLIENTS: u64 = 12;
const LENGTH_MAX: usize = 300_000;

/// How one side ends, after it has sent its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Ends its stream, and reads the other's to the end.
    Orderly,
    /// Closes without reading.
    Early,
    Reset,
}

/// What one side does, drawn from a seed that both sides know.
#[derive(Clone, Copy, Debug)]
struct Part {
    seed: u64,
    length: usize,
    end: End,
}

impl Part {
    fn draw(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let end = match random.u32(..8) {
            0 => End::Early,
            1 => End::Reset,
            _ => End::Orderly,
        };
        Self {
            seed,
            length: random.usize(..LENGTH_MAX),
            end,
        }
    }

    /// The client's part in a session, and the endpoint's.
    fn both(session: u64) -> (Self, Self) {
        (Self::draw(2 * session), Self::draw(2 * session + 1))
    }

    /// Sends, ends, and gives what was received of the other's stream: its length, and whether it ended orderly.
    fn play(self, mut connection: TcpStream, other: Self) -> Received {
        let reading = connection.try_clone().expect("one more descriptor");
        let reader = (self.end == End::Orderly).then(|| read_in_parallel(reading, other.seed));
        let (_, sent) = stream::write(&mut connection, self.seed, self.length);
        match self.end {
            End::Orderly => drop(connection.shutdown(Shutdown::Write)),
            End::Early => drop(connection),
            End::Reset => client::reset(connection),
        }
        let received = reader.map(|reader| reader.join().expect("every byte is right"));
        Received {
            sent: sent.is_ok(),
            received,
        }
    }
}

struct Received {
    sent: bool,
    received: Option<(usize, bool)>,
}

fn read_in_parallel(
    mut connection: TcpStream,
    seed: u64,
) -> std::thread::JoinHandle<(usize, bool)> {
    std::thread::spawn(move || {
        let (length, end) = stream::check(&mut connection, seed);
        (length, end.is_ok())
    })
}

/// The client first sends the number of its session, so that the endpoint knows its part.
#[test]
fn sessions_that_end_in_every_way_keep_their_bytes() {
    let received_by_endpoint = Arc::new(Mutex::new(Vec::new()));
    let endpoint = {
        let received = Arc::clone(&received_by_endpoint);
        Service::start(move |mut connection, _| {
            let Some(session) = read_number(&mut connection) else {
                return;
            };
            let (clients, own) = Part::both(session);
            let outcome = own.play(connection, clients);
            received
                .lock()
                .expect("nobody panics with it")
                .push((session, outcome));
        })
    };
    let front = ports::free();
    let mut evenkeel = Launch::new(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "streams"
        [cluster.streams]
        ejection = "off"
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    ))
    .process("workers = 3")
    .start();
    let before = evenkeel.process().descriptors();

    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let session = next.fetch_add(1, Ordering::Relaxed);
                    if session >= SESSIONS {
                        break;
                    }
                    play_client(client::connect(front), session);
                }
            });
        }
    });

    evenkeel.sessions(usize::try_from(SESSIONS).expect("a few hundred"));
    evenkeel.wait_until_idle("streams");
    wait::until_so(
        "the descriptors are closed, but for pipes that are kept",
        || {
            let pipes = evenkeel.status()["splice"]["pipes"].as_u64();
            let pipes = usize::try_from(pipes.expect("a number")).expect("some dozens at most");
            evenkeel.process().descriptors() <= before + 2 * pipes
        },
    );
    for (session, outcome) in received_by_endpoint
        .lock()
        .expect("nobody panics with it")
        .iter()
    {
        let (clients, own) = Part::both(*session);
        judge(*session, own, clients, outcome);
    }
}

fn play_client(mut connection: TcpStream, session: u64) {
    let (own, endpoints) = Part::both(session);
    std::io::Write::write_all(&mut connection, &session.to_be_bytes()).expect("it is just open");
    judge(session, own, endpoints, &own.play(connection, endpoints));
}

/// Where both ended orderly, everything was sent and everything arrived.
fn judge(session: u64, own: Part, other: Part, outcome: &Received) {
    if let Some((length, orderly)) = outcome.received {
        assert!(
            length <= other.length,
            "session {session}: more than was sent"
        );
        if own.end == End::Orderly && other.end == End::Orderly {
            assert!(
                outcome.sent && orderly,
                "session {session}: {own:?} and {other:?} ended early"
            );
            assert_eq!(length, other.length, "session {session}");
        }
    }
}

fn read_number(connection: &mut TcpStream) -> Option<u64> {
    let mut bytes = [0; 8];
    std::io::Read::read_exact(connection, &mut bytes).ok()?;
    Some(u64::from_be_bytes(bytes))
}
