//! Nine thousand connections: no thread more, and nothing left when they are gone.

use std::net::SocketAddr;

use crate::support::echo::{self, EchoProcess};
use crate::support::evenkeel::Evenkeel;
use crate::support::{client, ports, wait};

const CONNECTIONS: usize = 9_000;

/// What the allocator may keep for the next time. Nine thousand idle sessions and their sockets' user-space state are well below it
/// anyway; a leak of a buffer per session would be far above.
const KEPT_KIB_MAX: u64 = 12 * 1024;

/// All idle at once, then each echoes; the threads stay the same, and afterwards descriptors and memory are as before.
#[test]
fn nine_thousand_idle_connections() {
    echo::raise_descriptor_limit();
    let (endpoint, front) = (EchoProcess::start(), ports::free());
    let mut evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "echo"
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address,
    ));
    client::ask(front, "warm");
    evenkeel.sessions(1);
    let process = evenkeel.process();
    let (threads, descriptors, resident) = (
        process.threads(),
        process.descriptors(),
        process.resident_kib(),
    );

    let mut sessions: Vec<_> = (0..CONNECTIONS).map(|_| client::connect(front)).collect();
    wait::until_so("every session has its endpoint", || {
        evenkeel.process().descriptors() >= descriptors + 2 * CONNECTIONS
    });
    assert_eq!(evenkeel.process().threads(), threads);
    for (number, session) in sessions.iter_mut().enumerate() {
        client::echo(session, &number.to_be_bytes());
    }
    assert_eq!(evenkeel.process().threads(), threads);

    drop(sessions);
    evenkeel.sessions(1 + CONNECTIONS);
    wait::until_so("the descriptors are closed", || {
        evenkeel.process().descriptors() <= descriptors
    });
    let kept = evenkeel.process().resident_kib().saturating_sub(resident);
    assert!(kept <= KEPT_KIB_MAX, "{kept} KiB are kept");
}

/// Ten thousand sessions, one after the other on eight clients: memory does not grow with how many there have been.
#[test]
fn ten_thousand_short_sessions_leave_nothing() {
    const ROUND: usize = 5_000;
    let (endpoint, front) = (EchoProcess::start(), ports::free());
    let mut evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "echo"
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address,
    ));
    exchange_many(front, ROUND);
    evenkeel.sessions(ROUND);
    let process = evenkeel.process();
    let (descriptors, resident) = (process.descriptors(), process.resident_kib());

    exchange_many(front, ROUND);
    evenkeel.sessions(2 * ROUND);
    wait::until_so("the descriptors are closed", || {
        evenkeel.process().descriptors() <= descriptors
    });
    let grown = evenkeel.process().resident_kib().saturating_sub(resident);
    assert!(grown <= 1024, "{grown} KiB more after the second round");
}

fn exchange_many(front: SocketAddr, count: usize) {
    const CLIENTS: usize = 8;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for _ in 0..count / CLIENTS {
                    assert_eq!(client::ask(front, "hello"), "hello");
                }
            });
        }
    });
}
