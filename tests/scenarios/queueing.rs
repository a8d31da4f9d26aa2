//! Limits that hold exactly, and what waits behind them.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

/// One endpoint that takes `slots` sessions at a time; `cluster` has further lines for its cluster.
fn limited(endpoint: SocketAddr, slots: usize, cluster: &str) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let config = format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "few"
        failure_reply = {{ text = "full\n" }}
        [cluster.few]
        endpoints = [{{ name = "endpoint", address = "{endpoint}", max_connections = {slots} }}]
        {cluster}
        "#,
    );
    (Launch::new(config).process("workers = 4").start(), front)
}

/// Forty clients at once on four workers, three slots: never a fourth connection, and everybody is served.
#[test]
fn fault_44_a_limit_is_exact_over_all_workers() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let endpoint = {
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        Service::start(move |connection, _| {
            most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let mut connection = connection;
            let request = client::read_to_end(&mut connection);
            let _ = connection.write_all(&request.unwrap_or_default());
            open.fetch_sub(1, Ordering::SeqCst);
        })
    };
    let (_evenkeel, front) = limited(endpoint.address(), 3, r#"timeouts = { queue = "1h" }"#);

    std::thread::scope(|scope| {
        for client_number in 0..40 {
            scope.spawn(move || {
                for request_number in 0..10 {
                    let request = format!("{client_number}/{request_number}");
                    assert_eq!(client::ask(front, &request), request);
                }
            });
        }
    });
    assert_eq!(endpoint.accepted(), 400);
    assert!(
        most.load(Ordering::SeqCst) <= 3,
        "{} at once",
        most.load(Ordering::SeqCst)
    );
}

/// A slot that becomes free is given to the first waiter at once, not when its time is nearly over.
#[test]
fn fault_25_a_freed_slot_is_granted_at_once() {
    let endpoint = Service::echo();
    let (evenkeel, front) = limited(endpoint.address(), 1, r#"timeouts = { queue = "1h" }"#);
    let mut first = client::connect(front);
    client::echo(&mut first, b"first");
    let mut second = client::connect(front);
    second.write_all(b"second").expect("it can be written");
    wait::until_so("the second waits", || {
        evenkeel.status()["clusters"][0]["waiting"] == 1
    });

    drop(first);
    client::expect(&mut second, b"second");
}

/// Waiters are served in the order in which they came.
#[test]
fn waiters_are_served_first_come_first_served() {
    let endpoint = Service::echo();
    let (evenkeel, front) = limited(endpoint.address(), 1, r#"timeouts = { queue = "1h" }"#);
    let mut current = client::connect(front);
    client::echo(&mut current, b"0");
    let mut waiting = Vec::new();
    for number in 1..=5 {
        waiting.push(client::connect(front));
        wait::until_so("one more waits", || {
            evenkeel.status()["clusters"][0]["waiting"] == number
        });
    }

    for mut next in waiting {
        drop(current);
        client::echo(&mut next, b"mine");
        current = next;
    }
}

/// A waiter that leaves gives up its place: the slot passes on to the next.
#[test]
fn a_waiter_that_left_is_passed_over() {
    let endpoint = Service::echo();
    let (evenkeel, front) = limited(endpoint.address(), 1, r#"timeouts = { queue = "1h" }"#);
    let mut first = client::connect(front);
    client::echo(&mut first, b"first");
    let leaves = client::connect(front);
    wait::until_so("one waits", || {
        evenkeel.status()["clusters"][0]["waiting"] == 1
    });
    let mut stays = client::connect(front);
    wait::until_so("two wait", || {
        evenkeel.status()["clusters"][0]["waiting"] == 2
    });

    client::reset(leaves);
    wait::until_so("one has left", || {
        evenkeel.status()["clusters"][0]["waiting"] == 1
    });
    drop(first);
    client::echo(&mut stays, b"stays");
}

/// Whoever waits too long is told so.
#[test]
fn waiting_ends_at_the_queue_timeout() {
    let endpoint = Service::start(|connection, _| service::stay_silent(connection));
    let (evenkeel, front) = limited(endpoint.address(), 1, r#"timeouts = { queue = "50ms" }"#);
    let _first = client::connect(front);
    wait::until_so("the slot is taken", || endpoint.accepted() == 1);

    assert_eq!(client::ask(front, "second"), "full\n");
    assert_eq!(evenkeel.reasons(1), ["queue_timeout"]);
}

/// Where nobody may wait, whoever finds no slot is told so at once.
#[test]
fn a_full_queue_refuses_at_once() {
    let endpoint = Service::start(|connection, _| service::stay_silent(connection));
    let (evenkeel, front) = limited(
        endpoint.address(),
        1,
        "queue_max = 0\ntimeouts = { queue = \"1h\" }",
    );
    let first = client::connect(front);
    wait::until_so("the slot is taken", || endpoint.accepted() == 1);

    assert_eq!(client::ask(front, "second"), "full\n");
    assert_eq!(evenkeel.reasons(1), ["queue_full"]);
    first.shutdown(Shutdown::Both).expect("it is open");
    evenkeel.wait_until_idle("few");
}
