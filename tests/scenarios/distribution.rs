//! Who gets how many connections: exact counts, through the real program.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

/// How many of `connections`, one after the other, each named endpoint served.
pub(crate) fn served(front: SocketAddr, connections: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..connections {
        *counts.entry(client::listen(front)).or_default() += 1;
    }
    counts
}

/// What [`served`] should have counted.
pub(crate) fn shares<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected
        .map(|(name, count)| (name.to_owned(), count))
        .into()
}

/// With four workers, each with a socket of its own, 30 connections over two equal endpoints are still 15 and 15.
#[test]
fn fault_17_several_workers_share_one_round_robin() {
    let (a, b, front) = (Service::named("a"), Service::named("b"), ports::free());
    let _evenkeel = Launch::new(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        endpoints = ["{}", "{}"]
        "#,
        a.address(),
        b.address(),
    ))
    .process("workers = 4")
    .start();

    assert_eq!(served(front, 30), shares([("a", 15), ("b", 15)]));
}

/// A refused, a disabled and a backup endpoint change nothing for the others: weights 2 and 1 over 30 are 20 and 10.
#[test]
fn thirty_connections_keep_their_shares_beside_endpoints_that_take_none() {
    let (a, b, front) = (Service::named("a"), Service::named("b"), ports::free());
    let (disabled, backup) = (Service::named("disabled"), Service::named("backup"));
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        trials = {{ every = "1h", every_max = "1h" }}
        endpoints = [
            {{ name = "a", address = "{}", weight = 2 }},
            {{ name = "b", address = "{}" }},
            {{ name = "refused", address = "{}" }},
            {{ name = "disabled", address = "{}", disabled = true }},
            {{ name = "backup", address = "{}", backup = true }},
        ]
        "#,
        a.address(),
        b.address(),
        ports::free(),
        disabled.address(),
        backup.address(),
    ));
    served(front, 4); // one of these was refused once: from here on that endpoint is out of the rotation

    assert_eq!(served(front, 30), shares([("a", 20), ("b", 10)]));
}

/// A backup takes over when every other endpoint is gone, and gives the work back.
#[test]
fn a_backup_serves_only_while_nobody_else_can() {
    let (a, backup, front) = (Service::named("a"), Service::named("backup"), ports::free());
    let address = a.address();
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        trials = {{ every = "10ms", every_max = "10ms" }}
        ejection = {{ failures = 1, base = "50ms", max = "50ms", share_max = "100%" }}
        endpoints = ["{address}", {{ address = "{}", backup = true }}]
        "#,
        backup.address(),
    ));
    assert_eq!(served(front, 10), shares([("a", 10)]));

    drop(a);
    assert_eq!(served(front, 10), shares([("backup", 10)]));

    let _a = Service::start_on(address, service::say("a"));
    wait::until_so("the first endpoint is used again", || {
        client::listen(front) == "a"
    });
}

/// Weight 0 is no new work: not a little, not an error.
#[test]
fn fault_15_weight_zero_gets_nothing() {
    let (a, zero, front) = (Service::named("a"), Service::named("zero"), ports::free());
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        endpoints = ["{}", {{ address = "{}", weight = 0 }}]
        "#,
        a.address(),
        zero.address(),
    ));

    assert_eq!(served(front, 30), shares([("a", 30)]));
    assert_eq!(zero.accepted(), 0);
}

/// An endpoint of weight 3 fails and comes back: its weight is 3 again, and so is its share.
#[test]
fn fault_14_a_recovered_endpoint_has_its_weight_again() {
    let (heavy, light, front) = (
        Service::named("heavy"),
        Service::named("light"),
        ports::free(),
    );
    let address = heavy.address();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        trials = {{ every = "10ms", every_max = "10ms" }}
        ejection = {{ failures = 3, base = "10ms", max = "10ms" }}
        endpoints = [
            {{ name = "heavy", address = "{address}", weight = 3 }},
            {{ name = "light", address = "{}" }},
        ]
        "#,
        light.address(),
    ));
    drop(heavy);
    wait::until_so("the endpoint has faded out", || {
        client::listen(front);
        evenkeel.endpoint_number("letters", "heavy", "effective_weight") == 0
    });

    let _heavy = Service::start_on(address, service::say("heavy"));
    wait::until_so("the endpoint has its weight again", || {
        client::listen(front);
        evenkeel.endpoint_number("letters", "heavy", "effective_weight") == 3
    });

    let recent = served(front, 40);
    assert_eq!(recent, shares([("heavy", 30), ("light", 10)]));
}

/// One client address keeps its endpoint, whatever its port.
#[test]
fn source_hash_keeps_a_client_on_its_endpoint() {
    let (a, b, front) = (Service::named("a"), Service::named("b"), ports::free());
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        balance = "source-hash"
        endpoints = ["{}", "{}"]
        "#,
        a.address(),
        b.address(),
    ));

    assert_eq!(served(front, 20).len(), 1);
}

/// Sessions that last count: the next one goes where fewer are open.
#[test]
fn least_connections_levels_long_sessions() {
    let (a, b, front) = (Service::echo(), Service::echo(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        balance = "least-connections"
        endpoints = [{{ name = "a", address = "{}", weight = 2 }}, {{ name = "b", address = "{}" }}]
        "#,
        a.address(),
        b.address(),
    ));

    let mut open = Vec::new();
    for _ in 0..30 {
        let mut session = client::connect(front);
        client::echo(&mut session, b"hello");
        open.push(session);
    }
    assert_eq!(evenkeel.endpoint_number("letters", "a", "in_flight"), 20);
    assert_eq!(evenkeel.endpoint_number("letters", "b", "in_flight"), 10);

    drop(open);
    evenkeel.wait_until_idle("letters");
}
