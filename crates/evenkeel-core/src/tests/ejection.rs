//! Ejection: failures in a row take an endpoint out for a while.

use std::time::Duration;

use super::world::{World, at, backup, cluster_spec, disabled, ejecting, endpoint};
use crate::{
    ClusterSpec, EndpointSpec, EndpointState, Failure, Losses, Outcome, Refusal, WhenNone,
};

fn ejecting_after(failures: u32, names: &str) -> World {
    let endpoints = names.chars().map(|name| endpoint(&name.to_string(), 20));
    World::new(with(failures, 50, endpoints.collect()))
}

fn with(failures: u32, share_max_percent: u32, endpoints: Vec<EndpointSpec>) -> ClusterSpec {
    ClusterSpec {
        ejection: ejecting(failures, share_max_percent),
        ..cluster_spec(endpoints)
    }
}

fn until(seconds: f64) -> EndpointState {
    EndpointState::Ejected { until: at(seconds) }
}

/// The third failure in a row, not the second.
#[test]
fn failures_in_a_row_eject() {
    let mut world = ejecting_after(3, "ab");
    (0..2).for_each(|_| world.fail_on("a"));
    assert_eq!(world.status("a").state, EndpointState::Up);
    world.fail_on("a");
    assert_eq!(world.status("a").state, until(10.0));
    assert_eq!(world.visited(10), "b".repeat(10));
}

/// Fault #29: intermixed results do not trip.
#[test]
fn fault_29_a_success_starts_the_count_again() {
    let mut world = ejecting_after(3, "ab");
    for _ in 0..5 {
        (0..2).for_each(|_| world.fail_on("a"));
        world.lease_on("a").established(world.now);
    }
    assert_eq!(world.status("a").state, EndpointState::Up);
}

/// Fault #29: it is ejected again after it has returned, for twice as long; after a success as short as at first.
#[test]
fn fault_29_an_endpoint_that_goes_on_failing_is_ejected_again_for_longer() {
    let mut world = ejecting_after(3, "ab");
    (0..3).for_each(|_| world.fail_on("a"));
    world.wait_until(10.0);
    (0..3).for_each(|_| world.fail_on("a"));
    assert_eq!(world.status("a").state, until(30.0));
    world.wait_until(30.0);
    world.lease_on("a").established(world.now);
    (0..3).for_each(|_| world.fail_on("a"));
    assert_eq!(world.status("a").state, until(40.0));
}

/// Sessions that were under way when it was ejected fail late; they neither lengthen this ejection nor start the next.
#[test]
fn late_failures_do_not_count_twice() {
    let mut world = ejecting_after(3, "ab");
    let late: Vec<_> = (0..8).map(|_| world.lease_on("a")).collect();
    (0..3).for_each(|_| world.fail_on("a"));
    late.into_iter().for_each(|lease| world.fail(lease));
    assert_eq!(world.status("a").state, until(10.0));
    world.wait_until(10.0);
    assert_eq!(world.status("a").state, EndpointState::Up);
}

/// Fault #28: half of the cluster at the most. Two of four, and the third stays though it fails.
#[test]
fn no_more_than_the_share_is_ejected_at_one_time() {
    let mut world = ejecting_after(1, "abcd");
    for name in ["a", "b", "c"] {
        world.fail_on(name);
    }
    assert_eq!(world.status("a").state, until(10.0));
    assert_eq!(world.status("b").state, until(10.0));
    assert_eq!(world.status("c").state, EndpointState::Up);
}

/// Refused while the quota was used up, it goes with its next failure once there is room.
#[test]
fn an_ejection_that_was_not_allowed_is_made_up_for() {
    let mut world = ejecting_after(2, "ab");
    (0..2).for_each(|_| world.fail_on("a"));
    (0..5).for_each(|_| world.fail_on("b"));
    assert_eq!(world.status("b").state, EndpointState::Up);
    world.wait_until(10.0);
    world.fail_on("b");
    assert_eq!(world.status("b").state, until(20.0));
}

/// Fault #28: even a share of 100 % leaves one.
#[test]
fn the_last_usable_endpoint_is_never_ejected() {
    let endpoints = vec![
        endpoint("a", 1),
        endpoint("b", 1),
        disabled("c"),
        endpoint("z", 0),
    ];
    let mut world = World::new(with(1, 100, endpoints));
    world.fail_on("a");
    world.fail_on("b");
    world.fail_on("b");
    assert_eq!(world.status("b").state, EndpointState::OnTrial);
    assert_eq!(world.visited(3), "bbb");
}

/// A backup is an endpoint that is left: the last primary may go.
#[test]
fn the_last_primary_may_be_ejected_if_there_is_a_backup() {
    let mut world = World::new(with(1, 50, vec![endpoint("a", 1), backup("b")]));
    world.fail_on("a");
    assert_eq!(world.visited(3), "bbb");
}

/// Fault #20: after its ejection an endpoint begins with a tenth of its share.
#[test]
fn a_returned_endpoint_warms_up() {
    let endpoints = vec![endpoint("a", 10), endpoint("b", 10)];
    let mut world = World::new(ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..with(1, 50, endpoints)
    });
    world.fail_on("a");
    world.served(20);
    world.wait_until(10.0);
    assert_eq!(world.status("a").state, EndpointState::SlowStart);
    let returned = world.served(110).matches('a').count();
    assert!((9..=11).contains(&returned), "{returned}");
    world.wait_until(100.0);
    assert_eq!(world.status("a").state, EndpointState::Up);
    assert_eq!(world.served(100).matches('a').count(), 50);
}

/// A reload keeps an ejection, with its end.
#[test]
fn an_ejection_survives_a_reload() {
    let mut world = ejecting_after(1, "ab");
    world.fail_on("a");
    let again = with(1, 50, vec![endpoint("b", 20), endpoint("a", 20)]);
    world.cluster.reconfigure(again, world.now);
    assert_eq!(world.status("a").state, until(10.0));
    assert_eq!(world.visited(5), "bbbbb");
}

/// A process that takes over lets an ejection go on for what is left of it, makes the next one the longer, and keeps to its own
/// quota; what of a slow start was behind an endpoint is not asked of it again.
#[test]
fn a_successor_keeps_ejections_and_slow_starts() {
    let spec = |endpoints: Vec<EndpointSpec>| ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..with(1, 50, endpoints)
    };
    let both = || vec![endpoint("a", 10), endpoint("b", 10)];
    let mut world = World::new(spec(both()));
    world.fail_on("a");
    world.wait_until(4.0);
    let mut successor = World::new(spec(both()));
    let kept = world.cluster.export(world.now);
    successor.cluster.import(&kept, successor.now);
    assert_eq!(successor.status("a").state, until(6.0));
    let alone = World::new(spec(vec![endpoint("a", 10)]));
    alone.cluster.import(&kept, alone.now);
    assert_eq!(alone.status("a").state, EndpointState::Up);

    successor.wait_until(6.0);
    successor.wait_until(51.0);
    let mut third = World::new(spec(both()));
    let kept = successor.cluster.export(successor.now);
    third.cluster.import(&kept, third.now);

    third.wait_until(44.0);
    assert_eq!(third.status("a").state, EndpointState::SlowStart);
    third.wait_until(46.0);
    assert_eq!(third.status("a").state, EndpointState::Up);
    third.fail_on("a");
    assert_eq!(third.status("a").state, until(66.0));
}

/// Fault #28: when only ejected ones are left, the operator has chosen what happens.
#[test]
fn when_all_that_is_left_is_ejected_the_operator_has_chosen() {
    for (when_none, refused) in [(WhenNone::Fail, true), (WhenNone::UseAll, false)] {
        let mut world = ejecting_after(1, "ab");
        world.fail_on("a");
        let only_a = with(1, 50, vec![endpoint("a", 20), disabled("b")]);
        world.cluster.reconfigure(
            ClusterSpec {
                when_none,
                ..only_a
            },
            world.now,
        );
        let outcome = world.try_lease(None, &crate::Tried::default());
        match outcome {
            Err(refusal) => assert!(refused && refusal == Refusal::NoEndpoint),
            Ok(lease) => assert!(!refused && &**lease.name() == "a"),
        }
    }
}

/// Every attempt that is over has been counted under one way to end, so that the ways add up to the attempts.
#[test]
fn attempts_are_counted_by_how_they_ended() {
    let mut world = ejecting_after(2, "ab");
    let mut answered = world.lease_on("a");
    answered.established(world.now);
    answered.finish(Outcome::Failed(Failure::Reset), world.now);
    drop(world.lease_on("a"));
    let refused = world.lease_on("a");
    refused.finish(Outcome::Failed(Failure::Refused), world.now);
    let silent = world.lease_on("a");
    silent.finish(Outcome::Failed(Failure::FirstByteTimeout), world.now);

    let status = world.status("a");

    let losses = Losses {
        failed: [1, 0, 0, 0, 0, 1],
        abandoned: 1,
        ejections: 1,
    };
    assert_eq!(status.losses, losses);
    assert_eq!((status.leases, status.established), (4, 1));
}
