//! Who gets the next session while everything is well.

use std::collections::HashSet;
use std::time::Duration;

use super::world::{World, at, cluster_spec, endpoint, limited};
use crate::units::Time;
use crate::{Balance, Cluster, ClusterSpec, Outcome};

fn with(balance: Balance, endpoints: &[(&str, u32)]) -> World {
    World::new(ClusterSpec {
        balance,
        ..spec(endpoints)
    })
}

fn spec(endpoints: &[(&str, u32)]) -> ClusterSpec {
    cluster_spec(
        endpoints
            .iter()
            .map(|&(name, weight)| endpoint(name, weight))
            .collect(),
    )
}

/// A2: never a burst.
#[test]
fn weights_five_one_one_give_aabacaa() {
    let mut world = World::new(spec(&[("a", 5), ("b", 1), ("c", 1)]));
    assert_eq!(world.served(14), "aabacaaaabacaa");
}

/// Exactly, not nearly.
#[test]
fn weights_one_two_give_10_and_20_of_30() {
    let mut world = World::new(spec(&[("a", 1), ("b", 2)]));
    let served = world.served(30);
    assert_eq!(served.matches('a').count(), 10);
    assert_eq!(served.matches('b').count(), 20);
}

/// Fault #15: weight 0 is no new work, whatever the algorithm; no panic, and an error only if nobody has a weight.
#[test]
fn weight_zero_gets_nothing() {
    for balance in ALL {
        let mut world = with(balance, &[("a", 0), ("b", 1)]);
        assert_eq!(world.visited(50), "b".repeat(50), "{balance:?}");
        let mut world = with(balance, &[("a", 0)]);
        assert_eq!(world.refusal(), crate::Refusal::NoEndpoint, "{balance:?}");
    }
}

/// A cluster without endpoints refuses; it does not panic.
#[test]
fn an_empty_cluster_refuses() {
    for balance in ALL {
        assert_eq!(
            with(balance, &[]).refusal(),
            crate::Refusal::NoEndpoint,
            "{balance:?}"
        );
    }
}

/// Fault #17: the phase decides who is first, and a fleet with random phases starts on all of them.
#[test]
fn the_phase_shifts_the_start_and_nothing_else() {
    let first_three = |phase| {
        let spec = spec(&[("a", 1), ("b", 1), ("c", 1)]);
        let mut world = World {
            cluster: Cluster::new(spec, phase, Time::ZERO),
            now: Time::ZERO,
            rng: fastrand::Rng::with_seed(7),
        };
        world.visited(3)
    };
    let starts: Vec<String> = (0..4).map(first_three).collect();
    assert_eq!(starts, ["abc", "bca", "cab", "abc"]);
    assert_eq!(first_three(u64::MAX).len(), 3);
}

/// C3: two leases on weight 2 are as much as one on weight 1; among equals, weighted round robin.
#[test]
fn least_connections_compares_ratios_and_breaks_ties_by_round_robin() {
    let mut world = with(Balance::LeastConnections, &[("a", 1), ("b", 2)]);
    let held: Vec<_> = (0..6).map(|_| world.lease()).collect();
    let names: String = held.iter().map(|lease| lease.name().to_string()).collect();
    // At 0 : 0 the tie goes to the larger weight, then a is idle, then b is at half; at 1 : 1 it is a's turn.
    assert_eq!(names, "bababb");
}

/// C3: while all are idle, every pick is a tie, and the order is that of round robin.
#[test]
fn least_connections_over_idle_endpoints_is_round_robin() {
    let mut world = with(Balance::LeastConnections, &[("a", 5), ("b", 1), ("c", 1)]);
    assert_eq!(world.served(14), "aabacaaaabacaa");
}

/// The one with the long sessions gets fewer.
#[test]
fn least_connections_avoids_the_loaded_endpoint() {
    let mut world = with(Balance::LeastConnections, &[("a", 1), ("b", 1)]);
    let mut held: Vec<_> = (0..8).map(|_| world.lease()).collect();
    held.retain(|lease| &**lease.name() == "a");
    assert_eq!(held.len(), 4);
    assert_eq!(world.visited(4), "bbbb");
}

/// 10,000 draws at 1 to 3, within 5 %.
#[test]
fn random_follows_the_weights() {
    let mut world = with(Balance::Random, &[("a", 1), ("b", 3)]);
    let drawn = world.visited(10_000).matches('b').count();
    assert!((7_125..=7_875).contains(&drawn), "{drawn}");
}

/// Of two endpoints both are drawn nearly always, so the loaded one is left alone but for a few draws.
#[test]
fn two_choices_takes_the_lighter_of_the_two() {
    let mut world = with(Balance::TwoChoices, &[("a", 1), ("b", 1)]);
    let _long: Vec<_> = (0..50).map(|_| world.lease_on("a")).collect();
    let drawn = world.visited(1_000).matches('a').count();
    assert!(drawn < 100, "{drawn}");
}

/// 300 sessions held over weights 1, 1, 4: in proportion, within 15 of the due number.
#[test]
fn two_choices_spreads_held_sessions_by_weight() {
    let mut world = with(Balance::TwoChoices, &[("a", 1), ("b", 1), ("c", 4)]);
    let held: Vec<_> = (0..300).map(|_| world.lease()).collect();
    for (name, due) in [("a", 50), ("b", 50), ("c", 200)] {
        let has = held.iter().filter(|lease| &**lease.name() == name).count();
        assert!(has.abs_diff(due) <= 15, "{name} has {has}");
    }
}

/// Memory and start do not grow with the size of weights: a million is one number.
#[test]
fn weights_of_a_million_cost_nothing() {
    for balance in ALL {
        let mut world = with(
            balance,
            &[("a", 1_000_000), ("b", 1_000_000), ("c", 1_000_000)],
        );
        let names: HashSet<String> = (0..100)
            .map(|key| world.lease_for(key).name().to_string())
            .collect();
        assert_eq!(names.len(), 3, "{balance:?}");
    }
}

/// Every algorithm finds the one open endpoint among many that are full.
#[test]
fn the_last_open_endpoint_is_found() {
    for balance in ALL {
        let endpoints = (0..64)
            .map(|i| limited(&format!("e{i}"), 1 + i % 5, 1))
            .collect();
        let mut world = World::new(ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        });
        let held: Vec<_> = (0..64).map(|_| world.lease()).collect();
        let names: HashSet<&str> = held.iter().map(|lease| &**lease.name()).collect();
        assert_eq!(names.len(), 64, "{balance:?}");
    }
}

/// Fault #20: a new endpoint among loaded ones is not given everything at once, even by least connections.
#[test]
fn slow_start_holds_back_the_flood_of_least_connections() {
    let slow = ClusterSpec {
        balance: Balance::LeastConnections,
        slow_start: Duration::from_secs(100),
        ..spec(&[("a", 1)])
    };
    let mut world = World::new(slow.clone());
    let _held: Vec<_> = (0..40).map(|_| world.lease()).collect();
    let mut grown = slow;
    grown.endpoints.push(endpoint("b", 1));
    world.cluster.reconfigure(grown, world.now);
    let next: Vec<_> = (0..40).map(|_| world.lease()).collect();
    let on_new = next.iter().filter(|lease| &**lease.name() == "b").count();
    // At a tenth of its weight it is as loaded with 4 sessions as the old one with 40, and with 8 as that with 80.
    assert!((4..=8).contains(&on_new), "{on_new}");
}

/// Fault #14: after failures and recovery an endpoint has its whole weight again.
#[test]
fn weight_is_whole_again_after_recovery() {
    let mut world = World::new(spec(&[("a", 3), ("b", 3)]));
    (0..2).for_each(|_| world.fail_on("a"));
    assert_eq!(world.status("a").effective_weight, 1);
    world.served(20);
    assert_eq!(world.status("a").effective_weight, 3);
    assert_eq!(world.served(30).matches('a').count(), 15);
}

/// A lease that is dropped says nothing about the endpoint and frees its slot.
#[test]
fn a_dropped_lease_is_neither_a_success_nor_a_failure() {
    let mut world = World::new(spec(&[("a", 2)]));
    world.fail_on("a");
    drop(world.lease());
    world.lease().finish(Outcome::Abandoned, at(0.0));
    let status = world.status("a");
    assert_eq!((status.in_flight, status.effective_weight), (0, 1));
    assert_eq!((status.leases, status.failures), (3, 1));
}

const ALL: [Balance; 6] = [
    Balance::RoundRobin,
    Balance::Random,
    Balance::TwoChoices,
    Balance::LeastConnections,
    Balance::SourceHash(crate::HashPolicy {
        bounded_load_percent: None,
    }),
    Balance::Hash(crate::HashPolicy {
        bounded_load_percent: Some(125),
    }),
];
