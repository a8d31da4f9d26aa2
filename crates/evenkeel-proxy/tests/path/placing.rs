//! Who gets a session: exact over all workers, by key where there is one.

use std::collections::BTreeMap;

use evenkeel_core::{Balance, HashPolicy};
use evenkeel_proxy::AskedSession;
use evenkeel_proxy::settings::KeySource;

use crate::world::{Endpoint, World, exchange};

/// Thirty clients over two equal endpoints are fifteen each, however the kernel spreads them over four workers.
#[test]
fn round_robin_is_exact_over_all_workers() {
    let (east, west) = (Endpoint::naming("east"), Endpoint::naming("west"));
    let world = World::with(&[&east, &west], |settings| settings.process.workers = 4);
    let mut counts = BTreeMap::new();
    for _ in 0..30 {
        *counts
            .entry(exchange(&mut world.connect(), b""))
            .or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [15, 15]);
}

/// Weights are shares.
#[test]
fn weights_are_shares() {
    let (mut heavy, light) = (Endpoint::naming("heavy"), Endpoint::naming("light"));
    heavy.weight = 2;
    let world = World::of(&[&heavy, &light]);
    for _ in 0..30 {
        exchange(&mut world.connect(), b"");
    }
    assert_eq!(
        (
            world.endpoint("heavy").leases,
            world.endpoint("light").leases
        ),
        (20, 10)
    );
}

/// The same first line always comes to the same endpoint, and the dry run knows which.
#[test]
fn the_first_line_decides_and_the_dry_run_agrees() {
    let endpoints = ["a", "b", "c", "d"].map(|name| {
        Endpoint::serving(name, move |mut stream| {
            use std::io::Write;
            let request = crate::world::read_all(&mut stream);
            stream
                .write_all(format!("{name}:{}", request.len()).as_bytes())
                .unwrap();
        })
    });
    let [a, b, c, d] = &endpoints;
    let world = World::with(&[a, b, c, d], |settings| {
        settings.clusters[0].spec.balance = Balance::Hash(HashPolicy::default());
        settings.clusters[0].key = Some(KeySource::FirstLine);
    });
    let mut used = BTreeMap::new();
    for user in 0..40 {
        let request = format!("user-{user}\r\nbody");
        let mut client = world.connect();
        let answers = [
            exchange(&mut client, request.as_bytes()),
            exchange(&mut world.connect(), request.as_bytes()),
        ];
        assert_eq!(answers[0], answers[1]);

        let from = client.local_addr().unwrap();
        let chosen = world.chosen(from, request.as_bytes()).unwrap();
        let answer = String::from_utf8(answers[0].clone()).unwrap();
        let (name, length) = answer.split_once(':').unwrap();
        assert_eq!(world.endpoint(name).id, chosen);
        assert_eq!(
            length,
            request.len().to_string(),
            "the line that was read first is sent on"
        );
        used.insert(name.to_owned(), ());
    }
    assert!(used.len() > 1);
    let asked = AskedSession {
        listener: "nowhere",
        client: world.address().into(),
        first_bytes: b"",
        server_name: None,
    };
    assert!(world.proxy.route(&asked).is_none());
}
