//! Effective weight is a preference: an endpoint at 0 is used at once when nobody above 0 can take the session.

use super::world::{Queue, World, backup, cluster_spec, endpoint, limited};
use crate::units::HashKey;
use crate::{
    Balance, Candidates, ClusterSpec, EndpointSpec, Explanation, HashPolicy, Lease, Outcome,
    Refusal, Request, Tried, Verdict,
};

const ALGORITHMS: [Balance; 5] = [
    Balance::RoundRobin,
    Balance::Random,
    Balance::TwoChoices,
    Balance::LeastConnections,
    Balance::Hash(HashPolicy {
        bounded_load_percent: Some(125),
    }),
];

fn world(balance: Balance, endpoints: Vec<EndpointSpec>) -> World {
    World::new(ClusterSpec {
        balance,
        ..cluster_spec(endpoints)
    })
}

/// `a` has one slot, which is taken; the others are at effective weight 0.
fn full_beside(balance: Balance, floored: Vec<EndpointSpec>) -> (World, Lease) {
    let names: Vec<_> = floored.iter().map(|e| e.name.to_string()).collect();
    let mut endpoints = vec![limited("a", 1, 1)];
    endpoints.extend(floored);
    let mut world = world(balance, endpoints);
    names.iter().for_each(|name| fade_out(&mut world, name));
    let held = world.lease_on("a");
    (world, held)
}

fn fade_out(world: &mut World, name: &str) {
    while world.status(name).effective_weight > 0 {
        world.fail_on(name);
    }
}

fn explain(world: &World, tried: &Tried) -> Explanation {
    let request = Request {
        key: Some(HashKey(1)),
        tried,
        waiter: None,
    };
    world.cluster.explain(&request, world.now)
}

fn tried(world: &World, names: &[&str]) -> Tried {
    let mut tried = Tried::default();
    let ids = names.iter().map(|name| world.status(name).id);
    ids.for_each(|id| tried.push(id));
    tried
}

/// Fault: five seconds in the queue, and then a refusal, beside an idle endpoint that was well again.
#[test]
fn a_floored_endpoint_is_used_while_all_others_are_full() {
    for balance in ALGORITHMS {
        let (mut world, held) = full_beside(balance, vec![endpoint("b", 1)]);
        assert_eq!(world.visited(3), "bbb", "{balance:?}");
        drop(held);
        assert_eq!(world.visited(3), "aaa", "{balance:?}");
    }
}

/// Among several at 0, the configured weights decide: one to three.
#[test]
fn floored_endpoints_share_the_overflow_by_configured_weight() {
    for balance in &ALGORITHMS[..4] {
        let floored = vec![endpoint("b", 1), endpoint("c", 3)];
        let (mut world, _held) = full_beside(*balance, floored);
        let on_b = world.visited(1_000).matches('b').count();
        assert!((190..=310).contains(&on_b), "{balance:?}: {on_b}");
    }
}

/// With a hash the substitute decides: the same key goes to the same endpoint each time.
#[test]
fn a_hash_sends_a_key_to_the_same_floored_endpoint() {
    let floored = vec![endpoint("b", 1), endpoint("c", 1)];
    let (mut world, _held) = full_beside(ALGORITHMS[4], floored);
    let mut home = |key| world.lease_for(key).name().to_string();
    for key in 0..50 {
        assert_eq!(home(key), home(key));
    }
}

/// Its limit holds, and then a session waits; whoever's slot is free first serves it.
#[test]
fn a_session_waits_once_the_floored_endpoint_is_full_too() {
    for balance in ALGORITHMS {
        let (mut world, _held) = full_beside(balance, vec![limited("b", 1, 1)]);
        let on_b = world.lease();
        assert_eq!(&**on_b.name(), "b", "{balance:?}");
        assert_eq!(world.refusal(), Refusal::Full, "{balance:?}");
        let queue = Queue::new();
        let _ticket = world.wait(&queue, 1);
        on_b.finish(Outcome::Abandoned, world.now);
        let (_, granted) = queue.take().pop().unwrap();
        assert_eq!(&**granted.name(), "b", "{balance:?}");
    }
}

/// The endpoint that has failed this session is not better than one at 0 that has not.
#[test]
fn a_retry_goes_to_a_floored_endpoint_rather_than_repeat() {
    for balance in ALGORITHMS {
        let mut world = world(balance, vec![endpoint("a", 1), endpoint("b", 1)]);
        fade_out(&mut world, "b");
        let tried = tried(&world, &["a"]);
        assert_eq!(world.cluster.candidates(&tried, 0), Candidates::Another);
        let retry = world.try_lease(Some(HashKey(1)), &tried).unwrap();
        assert_eq!(&**retry.name(), "b", "{balance:?}");
    }
}

/// Once all have failed the session, the one above 0 is asked again.
#[test]
fn a_session_that_has_tried_all_repeats_the_preferred_one() {
    let mut world = world(
        Balance::RoundRobin,
        vec![endpoint("a", 1), endpoint("b", 1)],
    );
    fade_out(&mut world, "b");
    let tried = tried(&world, &["a", "b"]);
    let again = world.try_lease(None, &tried).unwrap();
    assert_eq!(&**again.name(), "a");
}

/// A primary at 0 with room comes before any backup.
#[test]
fn a_floored_primary_comes_before_a_backup() {
    let endpoints = vec![limited("a", 1, 1), endpoint("b", 1), backup("c")];
    let mut world = world(Balance::RoundRobin, endpoints);
    fade_out(&mut world, "b");
    let _held = world.lease_on("a");
    assert_eq!(world.visited(2), "bb");
}

/// A success there counts like any other: it is above 0 again.
#[test]
fn a_success_in_the_overflow_brings_the_endpoint_back() {
    let (mut world, held) = full_beside(Balance::RoundRobin, vec![endpoint("b", 1)]);
    world.served(1);
    drop(held);
    assert_eq!(world.visited(4).matches('b').count(), 2);
}

/// The dry run foretells it, and says what it is.
#[test]
fn explain_names_the_floored_endpoint_that_would_be_used() {
    for balance in ALGORITHMS {
        let (world, held) = full_beside(balance, vec![endpoint("b", 1)]);
        let explanation = explain(&world, &Tried::default());
        assert_eq!(
            explanation.chosen,
            Some(world.status("b").id),
            "{balance:?}"
        );
        assert!(matches!(explanation.verdicts[0].2, Verdict::Full { .. }));
        drop(held);
        let explanation = explain(&world, &Tried::default());
        assert_eq!(
            explanation.chosen,
            Some(world.status("a").id),
            "{balance:?}"
        );
        assert!(matches!(explanation.verdicts[1].2, Verdict::OnTrial { .. }));
    }
}

/// Where chance decides between two of them, both are usable and say why.
#[test]
fn explain_says_that_floored_endpoints_stand_in() {
    let floored = vec![endpoint("b", 1), endpoint("c", 1), limited("d", 1, 1)];
    let (world, _held) = full_beside(Balance::RoundRobin, floored);
    let explanation = explain(&world, &tried(&world, &["d"]));
    assert_eq!(explanation.chosen, None);
    for verdict in [&explanation.verdicts[1].2, &explanation.verdicts[2].2] {
        let Verdict::Usable(text) = verdict else {
            panic!("{verdict:?}");
        };
        assert!(text.contains("effective weight 0"), "{text}");
    }
    assert_eq!(explanation.verdicts[3].2, Verdict::AlreadyTried);
}
