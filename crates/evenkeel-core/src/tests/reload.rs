//! Reloads: nothing is forgotten, nothing is dropped.

use std::time::Duration;

use super::world::{Queue, World, cluster_spec, endpoint, limited};
use crate::units::Address;
use crate::{Balance, ClusterSpec, EndpointSpec, EndpointState, HashPolicy, Refusal};

fn moved(spec: EndpointSpec) -> EndpointSpec {
    EndpointSpec {
        address: Address::Unix(Arc::from(std::path::Path::new("/run/moved"))),
        ..spec
    }
}

use std::sync::Arc;

/// Counts, totals, effective weight and identity stay with name and address.
#[test]
fn a_reload_keeps_live_state() {
    let mut world = World::of(vec![endpoint("a", 4), endpoint("b", 1)]);
    world.fail_on("a");
    let _held = world.lease_on("a");
    let before = world.status("a");
    let reordered = vec![endpoint("b", 1), endpoint("a", 4)];
    world
        .cluster
        .reconfigure(cluster_spec(reordered), world.now);
    let after = world.status("a");
    assert_eq!(before.id, after.id);
    assert_eq!(
        (after.in_flight, after.effective_weight, after.failures),
        (1, 3, 1)
    );
    assert_eq!(before.leases, after.leases);
}

/// A new address under an old name is another endpoint.
#[test]
fn a_changed_address_starts_fresh() {
    let mut world = World::of(vec![endpoint("a", 4), endpoint("b", 1)]);
    world.fail_on("a");
    let before = world.status("a").id;
    world.cluster.reconfigure(
        cluster_spec(vec![moved(endpoint("a", 4)), endpoint("b", 1)]),
        world.now,
    );
    let after = world.status("a");
    assert_ne!(before, after.id);
    assert_eq!((after.effective_weight, after.failures), (4, 0));
}

/// Removed with two sessions on it: it drains, and is gone with the second.
#[test]
fn a_removed_endpoint_drains() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    let (one, mut two) = (world.lease_on("a"), world.lease_on("a"));
    world
        .cluster
        .reconfigure(cluster_spec(vec![endpoint("b", 1)]), world.now);
    assert_eq!(world.visited(3), "bbb");
    assert_eq!(world.status("a").state, EndpointState::Removed);
    two.established(world.now);
    world.fail(two);
    assert_eq!(world.status("a").in_flight, 1);
    world.fail(one);
    assert_eq!(world.cluster.status(world.now).endpoints.len(), 1);
}

/// Removed and added again while its sessions run: its limit holds over both lives.
#[test]
fn an_endpoint_that_is_added_again_while_it_drains_goes_on() {
    let mut world = World::of(vec![limited("a", 1, 1), endpoint("b", 1)]);
    let _held = world.lease_on("a");
    world
        .cluster
        .reconfigure(cluster_spec(vec![endpoint("b", 1)]), world.now);
    world.cluster.reconfigure(
        cluster_spec(vec![limited("a", 1, 1), endpoint("b", 1)]),
        world.now,
    );
    assert_eq!(world.visited(4), "bbbb");
}

/// Leases outlive their cluster.
#[test]
fn a_lease_may_outlive_its_cluster() {
    let mut world = World::of(vec![endpoint("a", 1)]);
    let (failing, mut succeeding) = (world.lease(), world.lease());
    let now = world.now;
    drop(world);
    succeeding.established(now);
    failing.finish(crate::Outcome::Failed(crate::Failure::Reset), now);
}

/// Fault #17: a reload does not send the next session to the first endpoint again.
#[test]
fn the_rotation_goes_on_over_a_reload() {
    let spec = cluster_spec(vec![endpoint("a", 5), endpoint("b", 1), endpoint("c", 1)]);
    let mut world = World::new(spec.clone());
    let served: String = (0..14)
        .map(|_| {
            world.cluster.reconfigure(spec.clone(), world.now);
            world.served(1)
        })
        .collect();
    assert_eq!(served, "aabacaaaabacaa");
}

/// Fault #21: an endpoint added at run time gets traffic, with every algorithm.
#[test]
fn an_added_endpoint_gets_traffic() {
    let hash = Balance::Hash(HashPolicy::default());
    for balance in [
        Balance::RoundRobin,
        Balance::Random,
        Balance::TwoChoices,
        Balance::LeastConnections,
        hash,
    ] {
        let with = |endpoints| ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        };
        let mut world = World::new(with(vec![endpoint("a", 1)]));
        world.visited(50);
        world
            .cluster
            .reconfigure(with(vec![endpoint("a", 1), endpoint("b", 1)]), world.now);
        let on_new = (0..100)
            .filter(|&key| &**world.lease_for(key).name() == "b")
            .count();
        assert!((25..=75).contains(&on_new), "{balance:?}: {on_new}");
    }
}

/// A cluster whose endpoints are not known yet refuses, with every algorithm, and serves as soon as it has one.
#[test]
fn a_cluster_may_begin_without_endpoints() {
    let hash = Balance::Hash(HashPolicy::default());
    for balance in [
        Balance::RoundRobin,
        Balance::Random,
        Balance::TwoChoices,
        Balance::LeastConnections,
        hash,
    ] {
        let with = |endpoints| ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        };
        let mut world = World::new(with(vec![]));
        assert_eq!(world.refusal(), Refusal::NoEndpoint, "{balance:?}");
        world.wait_until(1.0);
        let filled = with(vec![endpoint("a", 1)]);
        world.cluster.reconfigure(filled, world.now);
        assert_eq!(&**world.lease_for(7).name(), "a", "{balance:?}");
        world.cluster.reconfigure(with(vec![]), world.now);
        assert_eq!(world.refusal(), Refusal::NoEndpoint, "{balance:?}");
    }
}

/// After a weight of a million has become one, its credit from the old order is not a debt of a million turns.
#[test]
fn a_shrunk_weight_leaves_no_debt_behind() {
    let mut world = World::of(vec![endpoint("a", 1_000_000), endpoint("b", 1)]);
    world.visited(7);
    world.cluster.reconfigure(
        cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)]),
        world.now,
    );
    let next = world.visited(20);
    assert!(next.matches('a').count().abs_diff(10) <= 2, "{next}");
}

/// Fault #20: new by reload warms up, from a tenth to all of it; at process start nothing does.
#[test]
fn slow_start_is_for_endpoints_added_by_a_reload() {
    let slow = |endpoints| ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..cluster_spec(endpoints)
    };
    let mut world = World::new(slow(vec![endpoint("a", 1)]));
    assert_eq!(world.status("a").state, EndpointState::Up);
    world
        .cluster
        .reconfigure(slow(vec![endpoint("a", 1), endpoint("b", 1)]), world.now);
    assert_eq!(world.status("b").state, EndpointState::SlowStart);
    assert_eq!(world.served(110).matches('b').count(), 10);
    world.wait_until(40.0);
    assert_eq!(world.served(150).matches('b').count(), 50);
    world.wait_until(90.0);
    assert_eq!(world.status("b").state, EndpointState::Up);
    assert_eq!(world.served(100).matches('b').count(), 50);
}

/// A change of algorithm keeps the counts and the queue.
#[test]
fn the_algorithm_may_change_while_sessions_wait() {
    let mut world = World::of(vec![limited("a", 1, 1)]);
    let held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    let random = ClusterSpec {
        balance: Balance::Random,
        ..cluster_spec(vec![limited("a", 1, 1)])
    };
    world.cluster.reconfigure(random, world.now);
    assert!(queue.take().is_empty());
    drop(held);
    assert_eq!(queue.take_tokens(), [1]);
}
