//! What the operator sets at run time: in force at once, kept over reloads, beaten by a changed configuration.

use std::time::Duration;

use super::world::{World, cluster_spec, disabled, endpoint, limited};
use crate::units::Weight;
use crate::{
    ClusterSpec, EndpointOverrides, EndpointState, Overridden, Override, Service, UnknownEndpoint,
};

fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
}

fn set(world: &World, name: &str, what: Override) {
    let done = world.cluster.override_endpoint(name, what, world.now);
    assert_eq!(done, Ok(()));
}

fn reload(world: &World, spec: ClusterSpec) {
    world.cluster.reconfigure(spec, world.now);
}

/// From the next session on.
#[test]
fn an_overridden_weight_is_in_force_at_once() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Weight(weight(3)));
    assert_eq!(world.visited(8).matches('a').count(), 6);
    let status = world.status("a");
    assert_eq!(status.weight, weight(3));
    let shown = Overridden {
        configured: weight(1),
        value: weight(3),
    };
    assert_eq!(status.overrides.weight, Some(shown));
}

/// The configured weight is no override.
#[test]
fn the_configured_weight_takes_the_override_back() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Weight(weight(3)));
    set(&world, "a", Override::Weight(weight(1)));
    assert_eq!(world.status("a").overrides, EndpointOverrides::default());
    assert_eq!(world.visited(4).matches('a').count(), 2);
}

/// Nothing new; the session that runs on it goes on and is counted.
#[test]
fn a_drained_endpoint_finishes_what_runs() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    let held = world.lease_on("a");
    set(&world, "a", Override::Drain);
    assert_eq!(world.visited(4), "bbbb");
    let status = world.status("a");
    assert_eq!(
        (status.state, status.in_flight),
        (EndpointState::Draining, 1)
    );
    drop(held);
    assert_eq!(world.status("a").in_flight, 0);
    set(&world, "a", Override::Enable);
    assert_eq!(world.visited(4).matches('a').count(), 2);
}

/// Back from being disabled it is cold; back from draining it is not.
#[test]
fn only_a_disabled_endpoint_warms_up_again() {
    let world = World::new(ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)])
    });
    let state_after = |what| {
        set(&world, "a", what);
        set(&world, "a", Override::Enable);
        world.status("a").state
    };
    assert_eq!(state_after(Override::Drain), EndpointState::Up);
    assert_eq!(state_after(Override::Disable), EndpointState::SlowStart);
}

/// A reload that changes other things leaves overrides alone.
#[test]
fn overrides_outlive_a_reload() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Drain);
    set(&world, "b", Override::Weight(weight(3)));
    reload(
        &world,
        cluster_spec(vec![endpoint("c", 1), endpoint("b", 1), limited("a", 1, 5)]),
    );
    assert_eq!(world.status("a").state, EndpointState::Draining);
    assert_eq!(world.visited(8).matches('b').count(), 6);
}

/// The configuration speaks last: the weight override falls, the drain beside it stands.
#[test]
fn a_changed_value_beats_its_override_and_no_other() {
    let world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Weight(weight(3)));
    set(&world, "a", Override::Drain);
    reload(
        &world,
        cluster_spec(vec![endpoint("a", 2), endpoint("b", 1)]),
    );
    let status = world.status("a");
    assert_eq!(status.weight, weight(2));
    assert_eq!(status.overrides.weight, None);
    assert_eq!(status.state, EndpointState::Draining);
}

/// Drained, then disabled in the configuration and enabled there again: the drain has fallen.
#[test]
fn a_changed_disabled_beats_a_drain() {
    let world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Drain);
    reload(&world, cluster_spec(vec![disabled("a"), endpoint("b", 1)]));
    assert_eq!(world.status("a").state, EndpointState::Disabled);
    reload(
        &world,
        cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)]),
    );
    assert_eq!(world.status("a").state, EndpointState::Up);
}

/// An override like any other: marked, and beaten when the configuration changes.
#[test]
fn what_the_configuration_disables_can_be_enabled() {
    let mut world = World::of(vec![disabled("a"), endpoint("b", 1)]);
    set(&world, "a", Override::Enable);
    assert_eq!(world.visited(4).matches('a').count(), 2);
    let shown = Overridden {
        configured: Service::Disabled,
        value: Service::InService,
    };
    assert_eq!(world.status("a").overrides.service, Some(shown));
    set(&world, "a", Override::Disable);
    assert_eq!(world.status("a").overrides, EndpointOverrides::default());
    assert_eq!(world.visited(3), "bbb");
}

/// Its name went and came back, as names from DNS do: what the operator said of it still holds.
#[test]
fn an_override_waits_for_its_endpoint() {
    let mut world = World::of(vec![endpoint("a", 1), endpoint("b", 1)]);
    set(&world, "a", Override::Drain);
    reload(&world, cluster_spec(vec![endpoint("b", 1)]));
    reload(
        &world,
        cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)]),
    );
    assert_eq!(world.visited(3), "bbb");
}

/// Nothing is set on a name that is not there.
#[test]
fn an_unknown_endpoint_is_an_error() {
    let world = World::of(vec![endpoint("a", 1)]);
    let done = world
        .cluster
        .override_endpoint("b", Override::Drain, world.now);
    assert_eq!(done, Err(UnknownEndpoint));
}

/// A changed weight is the same part of the new one, as after a reload.
#[test]
fn a_fading_endpoint_keeps_its_part_of_an_overridden_weight() {
    let mut world = World::of(vec![endpoint("a", 4), endpoint("b", 1)]);
    (0..2).for_each(|_| world.fail_on("a"));
    set(&world, "a", Override::Weight(weight(8)));
    assert_eq!(world.status("a").effective_weight, 4);
}
