//! Probes: an endpoint that they find down gets nothing, one that nothing is known of neither.

use std::time::Duration;

use super::world::{Queue, World, backup, cluster_spec, ejecting, endpoint, limited};
use crate::units::HashKey;
use crate::{
    ClusterSpec, EndpointSpec, EndpointState, HealthChange, HealthPolicy, Judgement, Override,
    ProbeResult, Refusal, Request, Tried, Verdict, WhenNone,
};

const POLICY: HealthPolicy = HealthPolicy { rise: 2, fall: 2 };

/// Two probes in a row, either way.
fn probed_spec(endpoints: Vec<EndpointSpec>) -> ClusterSpec {
    ClusterSpec {
        health: Some(POLICY),
        ..cluster_spec(endpoints)
    }
}

/// The same, and all have passed their first probe.
fn probed(spec: ClusterSpec) -> World {
    let world = World::new(spec);
    for endpoint in world.cluster.status(world.now).endpoints {
        let up = world
            .cluster
            .probed(endpoint.id, ProbeResult::Passed, world.now);
        assert_eq!(up, Some(HealthChange::Up));
    }
    world
}

fn probe(world: &World, name: &str, results: &str) -> Option<HealthChange> {
    let id = world.status(name).id;
    let one = |result| match result {
        'p' => ProbeResult::Passed,
        _ => ProbeResult::Failed,
    };
    let changes = results
        .chars()
        .map(|result| world.cluster.probed(id, one(result), world.now));
    changes.fold(None, |_, change| change)
}

fn verdict(world: &World, name: &str) -> Verdict {
    let request = Request {
        key: Some(HashKey(1)),
        tried: &Tried::default(),
        waiter: None,
    };
    let explanation = world.cluster.explain(&request, world.now);
    let mut verdicts = explanation.verdicts.into_iter();
    verdicts.find(|(_, other, _)| &**other == name).unwrap().2
}

/// At a start nothing is known, so nobody is used; the first pass is enough.
#[test]
fn an_unknown_endpoint_gets_nothing_until_one_probe_passed() {
    let mut world = World::new(probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]));
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
    assert_eq!(world.status("a").state, EndpointState::Unknown);
    assert_eq!(verdict(&world, "a"), Verdict::Unknown);
    assert_eq!(probe(&world, "b", "p"), Some(HealthChange::Up));
    assert_eq!(world.visited(3), "bbb");
}

/// One failed probe is none, two are.
#[test]
fn an_endpoint_that_is_down_gets_nothing() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]));
    assert_eq!(probe(&world, "a", "f"), None);
    assert_eq!(world.visited(4).matches('a').count(), 2);
    assert_eq!(probe(&world, "a", "f"), Some(HealthChange::Down));
    assert_eq!(world.visited(3), "bbb");
    assert_eq!(world.status("a").state, EndpointState::Down);
    assert_eq!(verdict(&world, "a"), Verdict::Down);
}

/// Ejection spares the last one; probes know better.
#[test]
fn fault_28_probes_may_take_the_last_one_out() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1)]));
    probe(&world, "a", "ff");
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
    probe(&world, "a", "pp");
    assert_eq!(world.visited(1), "a");
}

/// When every endpoint is down, "use all" uses them.
#[test]
fn fault_28_use_all_uses_those_that_are_down() {
    let mut world = probed(ClusterSpec {
        when_none: WhenNone::UseAll,
        ..probed_spec(vec![endpoint("a", 1), endpoint("b", 1)])
    });
    probe(&world, "a", "ff");
    assert_eq!(world.visited(2), "bb");
    probe(&world, "b", "ff");
    assert_eq!(world.visited(4).matches('a').count(), 2);
}

/// The primaries are down, the backups work; they are well again, and have the work back.
#[test]
fn backups_take_over_when_all_primaries_are_down() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1), backup("b")]));
    probe(&world, "a", "ff");
    assert_eq!(world.visited(2), "bb");
    probe(&world, "a", "pp");
    assert_eq!(world.visited(2), "aa");
}

/// What sessions had found out is forgiven, and the endpoint warms up.
#[test]
fn an_endpoint_that_is_well_again_starts_afresh() {
    let mut world = probed(ClusterSpec {
        slow_start: Duration::from_secs(90),
        ejection: ejecting(2, 50),
        ..probed_spec(vec![endpoint("a", 4), endpoint("b", 4)])
    });
    (0..2).for_each(|_| world.fail_on("a"));
    assert!(matches!(
        world.status("a").state,
        EndpointState::Ejected { .. }
    ));
    probe(&world, "a", "ff");
    assert_eq!(world.status("a").state, EndpointState::Down);
    world.now = super::world::at(1.0);
    assert_eq!(probe(&world, "a", "pp"), Some(HealthChange::Up));
    let status = world.status("a");
    assert_eq!(
        (status.state, status.effective_weight),
        (EndpointState::SlowStart, 4)
    );
    assert_eq!(world.served(110).matches('a').count(), 10);
}

/// Probes see a listening port, sessions see that it does not work: the ejection stands.
#[test]
fn a_passed_probe_does_not_end_the_ejection_of_an_endpoint_that_is_up() {
    let mut world = probed(ClusterSpec {
        ejection: ejecting(2, 50),
        ..probed_spec(vec![endpoint("a", 4), endpoint("b", 4)])
    });
    (0..2).for_each(|_| world.fail_on("a"));
    probe(&world, "a", "ppp");
    assert_eq!(world.visited(3), "bbb");
}

/// At a start all are equally new: whoever is found well works at full strength.
#[test]
fn the_first_pass_after_a_start_needs_no_slow_start() {
    let world = probed(ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..probed_spec(vec![endpoint("a", 1)])
    });
    assert_eq!(world.status("a").state, EndpointState::Up);
}

/// Added by a reload: its warming up begins with the first passed probe, however late that is.
#[test]
fn the_slow_start_of_a_new_endpoint_begins_with_its_first_pass() {
    let slow = |endpoints| ClusterSpec {
        slow_start: Duration::from_secs(10),
        ..probed_spec(endpoints)
    };
    let mut world = probed(slow(vec![endpoint("a", 1)]));
    let both = slow(vec![endpoint("a", 1), endpoint("b", 1)]);
    world.cluster.reconfigure(both, world.now);
    assert_eq!(world.status("b").state, EndpointState::Unknown);
    world.wait_until(60.0);
    assert_eq!(world.visited(3), "aaa");
    probe(&world, "b", "p");
    assert_eq!(world.status("b").state, EndpointState::SlowStart);
    world.wait_until(70.0);
    assert_eq!(world.status("b").state, EndpointState::Up);
}

/// An endpoint known to be down gets nothing after a reload, whatever else the reload changes.
#[test]
fn a_reload_forgets_no_judgement() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]));
    probe(&world, "a", "ff");
    let heavier = probed_spec(vec![endpoint("c", 1), endpoint("b", 1), endpoint("a", 9)]);
    world.cluster.reconfigure(heavier, world.now);
    assert_eq!(world.visited(6), "bbbbbb");
    probe(&world, "a", "pp");
    assert_eq!(world.visited(10).matches('a').count(), 9);
}

/// The wish to watch endpoints takes none of them out; one that comes with it has to pass first.
#[test]
fn new_probes_leave_working_endpoints_in_use() {
    let mut world = World::of(vec![endpoint("a", 1)]);
    let watched = probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]);
    world.cluster.reconfigure(watched, world.now);
    assert_eq!(world.visited(3), "aaa");
    assert_eq!(world.status("a").judgement, Some(Judgement::Up));
}

/// Nothing probes any more, so nothing would ever bring it back.
#[test]
fn without_probes_nobody_is_down() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]));
    probe(&world, "a", "ff");
    let unwatched = cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)]);
    world.cluster.reconfigure(unwatched, world.now);
    assert_eq!(world.visited(4).matches('a').count(), 2);
    assert_eq!(probe(&world, "a", "ff"), None);
}

/// Its sessions wait at most until a probe finds it well.
#[test]
fn those_who_wait_are_served_when_an_endpoint_comes_up() {
    let mut world = probed(probed_spec(vec![limited("a", 1, 1), endpoint("b", 1)]));
    probe(&world, "b", "ff");
    let _held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    probe(&world, "b", "pp");
    assert_eq!(queue.take_tokens(), [1]);
}

/// What was known of it is out of date after a time without probes.
#[test]
fn an_endpoint_that_was_disabled_has_to_pass_a_probe_first() {
    let mut world = probed(probed_spec(vec![endpoint("a", 1), endpoint("b", 1)]));
    let set = |world: &World, what| {
        let done = world.cluster.override_endpoint("a", what, world.now);
        assert_eq!(done, Ok(()));
    };
    set(&world, Override::Disable);
    assert_eq!(probe(&world, "a", "p"), None);
    set(&world, Override::Enable);
    assert_eq!(world.status("a").state, EndpointState::Unknown);
    assert_eq!(world.visited(3), "bbb");
    probe(&world, "a", "p");
    assert_eq!(world.visited(4).matches('a').count(), 2);
}
