//! Effective weight: fading, the floor, trials, the way back.

use super::world::{World, cluster_spec, endpoint};
use crate::units::HashKey;
use crate::{Balance, ClusterSpec, EndpointState, HashPolicy, Outcome, Tried, Verdict};

fn two(a: u32, b: u32) -> World {
    World::of(vec![endpoint("a", a), endpoint("b", b)])
}

/// A3: a preference, never availability.
#[test]
fn two_endpoints_of_weight_one_with_a_failure_each_still_serve() {
    let mut world = two(1, 1);
    world.fail_on("a");
    world.fail_on("b");
    assert_eq!(world.status("a").effective_weight, 0);
    assert_eq!(world.status("b").effective_weight, 0);
    assert_eq!(world.visited(4).matches('a').count(), 2);
}

/// A single endpoint can fail for ever and is still asked.
#[test]
fn the_only_endpoint_is_used_whatever_its_failures() {
    let mut world = World::of(vec![endpoint("a", 1)]);
    (0..100).for_each(|_| world.fail_on("a"));
    assert_eq!(world.served(1), "a");
    assert_eq!(world.status("a").state, EndpointState::Up);
}

/// A3: minus one for a failure, plus one for a success, never above the configured weight.
#[test]
fn a_failure_costs_one_and_a_success_gives_one() {
    let mut world = two(5, 5);
    (0..3).for_each(|_| world.fail_on("a"));
    assert_eq!(world.status("a").effective_weight, 2);
    let mut lease = world.lease_on("a");
    lease.established(world.now);
    assert_eq!(world.status("a").effective_weight, 3);
    world.served(100);
    assert_eq!(world.status("a").effective_weight, 5);
}

/// A success is the first answer byte, not the end of a session that lasts hours.
#[test]
fn a_success_counts_once_and_before_the_end() {
    let mut world = two(5, 5);
    (0..4).for_each(|_| world.fail_on("a"));
    let mut lease = world.lease_on("a");
    lease.established(world.now);
    lease.established(world.now);
    assert_eq!(world.status("a").effective_weight, 2);
    lease.finish(Outcome::Completed, world.now);
    assert_eq!(world.status("a").effective_weight, 2);
}

/// An endpoint that has answered and then resets the connection has not failed the balancer.
#[test]
fn a_failure_after_the_first_answer_byte_does_not_count() {
    let mut world = two(5, 5);
    let mut lease = world.lease_on("a");
    lease.established(world.now);
    world.fail(lease);
    let status = world.status("a");
    assert_eq!((status.effective_weight, status.failures), (5, 0));
}

/// At the floor it gets one session a second, and nothing in between.
#[test]
fn a_floored_endpoint_takes_one_timed_trial() {
    let mut world = two(1, 1);
    world.fail_on("a");
    assert_eq!(world.status("a").state, EndpointState::OnTrial);
    assert_eq!(world.visited(20), "b".repeat(20));
    world.wait_until(1.0);
    assert_eq!(world.visited(20), format!("a{}", "b".repeat(19)));
    world.wait_until(2.0);
    assert_eq!(world.visited(2), "ab");
}

/// 1 s, then 2, 4, 8, 16, 30 and 30 again between failed trials.
#[test]
fn trials_of_a_dead_endpoint_become_rarer_up_to_the_cap() {
    let mut world = two(1, 1);
    world.fail_on("a");
    let mut trials = Vec::new();
    for second in 1..=130 {
        world.wait_until(f64::from(second));
        let lease = world.lease();
        if &**lease.name() == "a" {
            trials.push(second);
            world.fail(lease);
        }
    }
    assert_eq!(trials, [1, 3, 7, 15, 31, 61, 91, 121]);
}

/// A recovered endpoint is back with its first successful trial.
#[test]
fn a_successful_trial_ends_the_trials() {
    let mut world = two(1, 1);
    world.fail_on("a");
    world.wait_until(1.0);
    assert_eq!(world.served(1), "a");
    assert_eq!(world.status("a").state, EndpointState::Up);
    assert_eq!(world.served(10).matches('a').count(), 5);
}

/// A trial whose client leaves has found nothing out; the next one comes after the same time.
#[test]
fn an_abandoned_trial_is_repeated() {
    let mut world = two(1, 1);
    world.fail_on("a");
    for second in 1..5 {
        world.wait_until(f64::from(second));
        assert_eq!(world.visited(2), "ab");
    }
}

/// Whichever algorithm: one pick when it is due.
#[test]
fn trials_work_with_every_algorithm() {
    for balance in [
        Balance::Random,
        Balance::TwoChoices,
        Balance::LeastConnections,
    ] {
        let endpoints = vec![endpoint("a", 1), endpoint("b", 1)];
        let mut world = World::new(ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        });
        world.fail_on("a");
        assert_eq!(world.visited(20), "b".repeat(20), "{balance:?}");
        world.wait_until(1.0);
        assert_eq!(world.visited(5), "abbbb", "{balance:?}");
    }
}

/// A key of another endpoint is never moved for a trial.
#[test]
fn a_hash_tries_an_endpoint_only_with_keys_that_it_owns() {
    let spec = ClusterSpec {
        balance: Balance::Hash(HashPolicy::default()),
        ..cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)])
    };
    let mut world = World::new(spec);
    let owned_by = |world: &mut World, name: &str| {
        (0..1000)
            .find(|&key| &**world.lease_for(key).name() == name)
            .unwrap()
    };
    let (a, b) = (owned_by(&mut world, "a"), owned_by(&mut world, "b"));
    let lease = world.lease_for(a);
    world.fail(lease);
    assert_eq!(&**world.lease_for(a).name(), "b");
    world.wait_until(1.0);
    assert_eq!(&**world.lease_for(b).name(), "b");
    assert_eq!(&**world.lease_for(a).name(), "a");
    assert_eq!(&**world.lease_for(a).name(), "b");
}

/// A session that was the one to see the endpoint fail is not its next trial.
#[test]
fn a_trial_never_goes_to_a_session_that_has_tried_the_endpoint() {
    let mut world = two(1, 1);
    let lease = world.lease_on("a");
    let mut tried = Tried::default();
    tried.push(lease.endpoint());
    world.fail(lease);
    world.wait_until(1.0);
    let retry = world.try_lease(None, &tried).unwrap();
    assert_eq!(&**retry.name(), "b");
}

/// The dry run says when the trial is due.
#[test]
fn explain_tells_the_time_of_the_trial() {
    let mut world = two(1, 1);
    world.fail_on("a");
    let request = crate::Request {
        key: Some(HashKey(1)),
        tried: &Tried::default(),
        waiter: None,
    };
    let explanation = world.cluster.explain(&request, world.now);
    let next = super::world::at(1.0);
    assert_eq!(explanation.verdicts[0].2, Verdict::OnTrial { next });
    assert_eq!(
        world.cluster.explain(&request, next).verdicts[0].2,
        Verdict::ChosenOnTrial
    );
}

/// Where all are at 0, the dry run says that the chosen one is no better than the others.
#[test]
fn explain_tells_a_choice_among_the_faded() {
    let mut world = two(1, 1);
    world.fail_on("a");
    world.fail_on("b");
    let request = crate::Request {
        key: Some(HashKey(1)),
        tried: &Tried::default(),
        waiter: None,
    };
    let verdicts = world.cluster.explain(&request, world.now).verdicts;
    let chosen = verdicts
        .iter()
        .filter(|(.., verdict)| *verdict == Verdict::ChosenFaded);
    assert_eq!(chosen.count(), 1);
}
