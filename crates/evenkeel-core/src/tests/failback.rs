//! Manual failback: a primary that comes and goes does not split the work; and what another process kept of a cluster.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fastrand::Rng;

use super::world::{World, backup, cluster_spec, endpoint};
use crate::units::Weight;
use crate::{
    Acquired, Awaited, ClusterSpec, Duty, EndpointState, Failback, FailbackRefusal, HealthPolicy,
    Judgement, KeptCluster, Lease, Override, ProbeResult, Refusal, Request, Tried, Verdict,
};

/// One primary, one backup; a single probe changes the judgement.
fn manual() -> ClusterSpec {
    ClusterSpec {
        health: Some(HealthPolicy { rise: 1, fall: 1 }),
        failback: Failback::Manual,
        ..cluster_spec(vec![endpoint("a", 1), backup("b")])
    }
}

fn probe(world: &World, name: &str, result: ProbeResult) {
    let id = world.status(name).id;
    world.cluster.probed(id, result, world.now);
}

/// Both are up.
fn world() -> World {
    let world = World::new(manual());
    probe(&world, "a", ProbeResult::Passed);
    probe(&world, "b", ProbeResult::Passed);
    world
}

/// It was down, is up again, and gets nothing until the operator says so.
#[test]
fn a_primary_that_returns_waits_for_the_operator() {
    let mut world = world();
    assert_eq!(world.visited(2), "aa");
    probe(&world, "a", ProbeResult::Failed);
    probe(&world, "a", ProbeResult::Passed);
    assert_eq!(world.visited(2), "bb");
    assert!(world.cluster.status(world.now).awaits_failback);
    assert_eq!(world.status("a").state, EndpointState::Up);
    assert_eq!(world.cluster.fail_back(world.now), Ok(()));
    assert_eq!(world.visited(2), "aa");
}

/// The primary has not been given the work, but somebody has to do it.
#[test]
fn a_primary_takes_over_when_the_backups_are_down() {
    let mut world = world();
    probe(&world, "a", ProbeResult::Failed);
    probe(&world, "a", ProbeResult::Passed);
    probe(&world, "b", ProbeResult::Failed);
    probe(&world, "b", ProbeResult::Passed);
    assert_eq!(world.visited(2), "aa");
}

/// To nobody who cannot take it, and not twice.
#[test]
fn a_failback_that_cannot_be_says_why() {
    let world = world();
    let fail_back = || world.cluster.fail_back(world.now);
    assert_eq!(fail_back(), Err(FailbackRefusal::OnDuty));
    probe(&world, "a", ProbeResult::Failed);
    assert_eq!(fail_back(), Err(FailbackRefusal::NoPrimaryUsable));
}

/// The backup's first probe was quicker: it does not keep the work for that.
#[test]
fn at_a_start_the_primaries_are_waited_for() {
    let mut world = World::new(manual());
    probe(&world, "b", ProbeResult::Passed);
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
    probe(&world, "a", ProbeResult::Passed);
    assert_eq!(world.visited(2), "aa");
}

/// The primary is a name that is not resolved yet, and the backup is up.
fn awaiting_the_primary() -> World {
    let world = World::new(ClusterSpec {
        endpoints: vec![backup("b")],
        awaited: Awaited {
            primaries: true,
            backups: false,
        },
        ..manual()
    });
    probe(&world, "b", ProbeResult::Passed);
    world
}

/// It was resolved and probed last: it finds the duty where it was.
#[test]
fn at_a_start_the_names_of_primaries_are_waited_for() {
    let mut world = awaiting_the_primary();
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
    world.cluster.reconfigure(manual(), world.now);
    assert_eq!(world.refusal(), Refusal::NoEndpoint);
    probe(&world, "a", ProbeResult::Passed);
    assert_eq!(world.visited(2), "aa");
}

/// The name leads nowhere: the backups have the work, and keep it when it leads somewhere later.
#[test]
fn a_name_that_leads_nowhere_gives_the_duty_away() {
    let mut world = awaiting_the_primary();
    let without = ClusterSpec {
        endpoints: vec![backup("b")],
        ..manual()
    };
    world.cluster.reconfigure(without, world.now);
    assert_eq!(world.visited(2), "bb");
    world.cluster.reconfigure(manual(), world.now);
    probe(&world, "a", ProbeResult::Passed);
    assert_eq!(world.visited(2), "bb");
}

/// A successor whose names are not resolved yet keeps the duty where it was, for primaries and for backups.
#[test]
fn a_successor_waits_for_names() {
    for duty in [Duty::Primaries, Duty::Backups] {
        let is_awaited = |tier| tier == duty;
        let present = match duty {
            Duty::Primaries => backup("b"),
            Duty::Backups => endpoint("a", 1),
        };
        let name = present.name.clone();
        let mut world = World::new(ClusterSpec {
            endpoints: vec![present],
            awaited: Awaited {
                primaries: is_awaited(Duty::Primaries),
                backups: is_awaited(Duty::Backups),
            },
            ..manual()
        });
        let kept = KeptCluster {
            duty,
            ..world.cluster.export(world.now)
        };
        world.cluster.import(&kept, world.now);
        probe(&world, &name, ProbeResult::Passed);
        world.cluster.reconfigure(manual(), world.now);
        probe(&world, "a", ProbeResult::Passed);
        probe(&world, "b", ProbeResult::Passed);
        let expected = if duty == Duty::Primaries { "aa" } else { "bb" };
        assert_eq!(world.visited(2), expected);
    }
}

/// A reload is no failback; one that makes failback automatic is.
#[test]
fn a_reload_is_no_failback() {
    let mut world = world();
    probe(&world, "a", ProbeResult::Failed);
    probe(&world, "a", ProbeResult::Passed);
    world.cluster.reconfigure(manual(), world.now);
    assert_eq!(world.visited(2), "bb");
    let automatic = ClusterSpec {
        failback: Failback::Auto,
        ..manual()
    };
    world.cluster.reconfigure(automatic, world.now);
    assert_eq!(world.visited(2), "aa");
}

/// The primary is told what it waits for, the backup what it stands by for.
#[test]
fn the_dry_run_tells_who_is_on_duty() {
    let world = world();
    let verdict_on = |name: &str| {
        let request = Request {
            key: None,
            tried: &Tried::default(),
            waiter: None,
        };
        let explanation = world.cluster.explain(&request, world.now);
        let mut verdicts = explanation.verdicts.into_iter();
        verdicts.find(|(_, other, _)| &**other == name).unwrap().2
    };
    assert_eq!(verdict_on("b"), Verdict::BackupIdle);
    probe(&world, "a", ProbeResult::Failed);
    probe(&world, "a", ProbeResult::Passed);
    assert_eq!(verdict_on("a"), Verdict::AwaitsFailback);
}

/// A successor knows who is down, what the operator said, and who has the work.
#[test]
fn a_successor_takes_over_what_was_known() {
    let world = world();
    probe(&world, "a", ProbeResult::Failed);
    probe(&world, "a", ProbeResult::Passed);
    let double = Override::Weight(Weight::new(2).unwrap());
    let set = world.cluster.override_endpoint("b", double, world.now);
    assert_eq!(set, Ok(()));

    let kept = world.cluster.export(world.now);
    let mut successor = World::new(manual());
    successor.cluster.import(&kept, successor.now);

    assert_eq!(successor.visited(2), "bb");
    assert_eq!(successor.status("b").weight.get(), 2);
    assert_eq!(successor.status("a").judgement, Some(Judgement::Up));
    assert_eq!(successor.cluster.export(successor.now), kept);
}

/// A file that was changed while nothing ran beats what was kept.
#[test]
fn a_successor_with_another_weight_drops_the_override() {
    let world = world();
    let double = Override::Weight(Weight::new(2).unwrap());
    let set = world.cluster.override_endpoint("a", double, world.now);
    assert_eq!(set, Ok(()));

    let kept = world.cluster.export(world.now);
    let successor = World::new(ClusterSpec {
        endpoints: vec![endpoint("a", 5), backup("b")],
        ..manual()
    });
    successor.cluster.import(&kept, successor.now);

    assert_eq!(successor.status("a").weight.get(), 5);
    assert_eq!(kept.duty, Duty::Primaries);
}

/// The work passes to and fro while two threads ask for it and would not wait: between the tiers nobody is refused.
#[test]
fn nobody_is_refused_while_the_work_passes_on() {
    const PASSES: usize = 150;
    let world = world();
    let asked = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let refused = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for asked in &asked {
            let (world, refused, is_over) = (&world, &refused, &is_over);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(7);
                while !is_over.load(Ordering::SeqCst) {
                    if ask(world, &mut rng).is_err() {
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // No question spans two passes: probes and operators are not as quick as that.
        let pass = |act: &dyn Fn()| {
            act();
            let before = asked.each_ref().map(|asked| asked.load(Ordering::SeqCst));
            for (asked, before) in asked.iter().zip(before) {
                while asked.load(Ordering::SeqCst) < before + 2 {
                    std::thread::yield_now();
                }
            }
        };
        for _ in 0..PASSES {
            pass(&|| probe(&world, "a", ProbeResult::Failed));
            probe(&world, "a", ProbeResult::Passed);
            pass(&|| assert_eq!(world.cluster.fail_back(world.now), Ok(())));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(refused.load(Ordering::SeqCst), 0);
}

fn ask(world: &World, rng: &mut Rng) -> Result<Lease, Refusal> {
    let request = Request {
        key: None,
        tried: &Tried::default(),
        waiter: None,
    };
    match world.cluster.acquire(&request, world.now, rng) {
        Acquired::Lease(lease) => Ok(lease),
        Acquired::Refused(refusal) => Err(refusal),
        Acquired::Wait(_) => panic!("waits without a waiter"),
    }
}
