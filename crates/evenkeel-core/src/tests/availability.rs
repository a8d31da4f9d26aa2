//! Who may be used at all: disabled endpoints, backups, those a session has tried.

use super::world::{Queue, World, backup, disabled, endpoint, limited};
use crate::{Candidates, EndpointState, Refusal, Tried};

fn tried(world: &World, names: &[&str]) -> Tried {
    let mut tried = Tried::default();
    names
        .iter()
        .for_each(|name| tried.push(world.status(name).id));
    tried
}

/// Disabled is the operator's word.
#[test]
fn a_disabled_endpoint_gets_nothing() {
    let mut world = World::of(vec![disabled("a"), endpoint("b", 1)]);
    assert_eq!(world.status("a").state, EndpointState::Disabled);
    assert_eq!(world.visited(5), "bbbbb");
}

/// An immediate, clear failure.
#[test]
fn nobody_usable_is_refused_at_once() {
    let mut world = World::of(vec![disabled("a")]);
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
}

/// And not kept waiting for nobody either.
#[test]
fn nobody_usable_is_refused_even_if_the_session_would_wait() {
    let mut world = World::of(vec![disabled("a")]);
    let queue = Queue::new();
    let acquired = world.acquire(&queue.request(1, &Tried::default()));
    assert!(matches!(
        acquired,
        crate::Acquired::Refused(Refusal::NoEndpoint)
    ));
}

/// Two backups share the work once the primary is out.
#[test]
fn backups_serve_only_when_no_primary_is_usable() {
    let mut world = World::of(vec![backup("a"), endpoint("b", 1), backup("c")]);
    assert_eq!(world.visited(5), "bbbbb");
    let without = vec![backup("a"), disabled("b"), backup("c")];
    world
        .cluster
        .reconfigure(super::world::cluster_spec(without), world.now);
    assert_eq!(world.visited(4).matches('a').count(), 2);
}

/// A primary at effective weight 0 is still usable: weight decides no availability.
#[test]
fn a_failing_primary_does_not_call_the_backup() {
    let mut world = World::of(vec![endpoint("a", 1), backup("b")]);
    (0..5).for_each(|_| world.fail_on("a"));
    assert_eq!(world.visited(5), "aaaaa");
}

/// As in HAProxy: sessions wait for a full primary.
#[test]
fn a_full_primary_does_not_call_the_backup() {
    let mut world = World::of(vec![limited("a", 1, 1), backup("b")]);
    let held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    drop(held);
    assert_eq!(queue.take_tokens(), [1]);
}

/// Fault #11: the next endpoint, not the same again while another is usable.
#[test]
fn a_retry_goes_to_another_endpoint() {
    let mut world = World::of(vec![endpoint("a", 1000), endpoint("b", 1)]);
    let tried = tried(&world, &["a"]);
    for _ in 0..20 {
        assert_eq!(&**world.try_lease(None, &tried).unwrap().name(), "b");
    }
}

/// When all have been tried they may be used again.
#[test]
fn tried_endpoints_are_used_again_when_no_other_is_left() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1), disabled("c")]);
    let tried = tried(&world, &["a", "b"]);
    let again = world.try_lease(None, &tried).unwrap();
    assert_ne!(&**again.name(), "c");
}

/// A full one that has not been tried is worth the wait: the tried one has just failed.
#[test]
fn a_retry_waits_for_a_full_endpoint_rather_than_repeat() {
    let mut world = World::of(vec![endpoint("a", 1), limited("b", 1, 1)]);
    let held = world.lease_on("b");
    let queue = Queue::new();
    let tried = tried(&world, &["a"]);
    let _ticket = world.wait_having_tried(&queue, 1, &tried);
    drop(held);
    let (_, lease) = queue.take().pop().unwrap();
    assert_eq!(&**lease.name(), "b");
}

/// What the retry policy is told.
#[test]
fn candidates_tell_what_is_left() {
    let world = World::of(vec![endpoint("a", 1), endpoint("b", 1), disabled("c")]);
    let candidates = |names: &[&str]| world.cluster.candidates(&tried(&world, names), 1);
    assert_eq!(candidates(&["a"]), Candidates::Another);
    assert_eq!(
        candidates(&["a", "b"]),
        Candidates::TriedOnly { repeats: 1 }
    );
    let nobody = World::of(vec![disabled("a")]);
    assert_eq!(
        nobody.cluster.candidates(&Tried::default(), 0),
        Candidates::Nobody
    );
}
