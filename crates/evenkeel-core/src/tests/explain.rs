//! The dry run: who would get this session, and why not each other one.

use super::world::{World, at, backup, cluster_spec, disabled, ejecting, endpoint, limited};
use crate::units::HashKey;
use crate::{Balance, ClusterSpec, Explanation, HashPolicy, Request, Tried, Verdict};

fn explain(world: &World, key: Option<HashKey>, tried: &Tried) -> Explanation {
    world.cluster.explain(
        &Request {
            key,
            tried,
            waiter: None,
        },
        world.now,
    )
}

fn verdict<'a>(explanation: &'a Explanation, name: &str) -> &'a Verdict {
    let mut verdicts = explanation.verdicts.iter();
    &verdicts.find(|(_, other, _)| &**other == name).unwrap().2
}

/// It is asked a hundred times, and then the sessions go as it said each time.
#[test]
fn round_robin_is_foretold_and_not_disturbed() {
    let mut world = World::of(vec![endpoint("a", 5), endpoint("b", 1), endpoint("c", 1)]);
    for expected in "aabacaa".chars() {
        (0..100).for_each(|_| drop(explain(&world, None, &Tried::default())));
        let foretold = explain(&world, None, &Tried::default()).chosen.unwrap();
        let lease = world.lease();
        assert_eq!(lease.endpoint(), foretold);
        assert_eq!(lease.name().to_string(), expected.to_string());
    }
}

/// Every reason has a verdict of its own.
#[test]
fn each_endpoint_is_told_why_not() {
    let endpoints = vec![
        endpoint("next", 1),
        endpoint("other", 1),
        limited("full", 1, 1),
        disabled("disabled"),
        endpoint("zero", 0),
        endpoint("ejected", 1),
        endpoint("floored", 1),
        backup("backup"),
        endpoint("tried", 1),
    ];
    let mut world = World::new(ClusterSpec {
        ejection: ejecting(2, 50),
        ..cluster_spec(endpoints)
    });
    (0..2)
        .map(|_| world.lease_on("ejected"))
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|lease| world.fail(lease));
    world.fail_on("floored");
    let _held = world.lease_on("full");
    let mut tried = Tried::default();
    tried.push(world.status("tried").id);

    let explanation = explain(&world, None, &tried);
    let chosen: Vec<&Verdict> = ["next", "other"]
        .map(|name| verdict(&explanation, name))
        .to_vec();
    assert!(chosen.contains(&&Verdict::Chosen));
    assert!(
        chosen
            .iter()
            .any(|verdict| matches!(verdict, Verdict::Usable(_)))
    );
    assert_eq!(
        *verdict(&explanation, "full"),
        Verdict::Full {
            in_flight: 1,
            max: 1
        }
    );
    assert_eq!(*verdict(&explanation, "disabled"), Verdict::Disabled);
    assert_eq!(*verdict(&explanation, "zero"), Verdict::WeightZero);
    assert_eq!(
        *verdict(&explanation, "ejected"),
        Verdict::Ejected { until: at(10.0) }
    );
    assert_eq!(
        *verdict(&explanation, "floored"),
        Verdict::OnTrial { next: at(1.0) }
    );
    assert_eq!(*verdict(&explanation, "backup"), Verdict::BackupIdle);
    assert_eq!(*verdict(&explanation, "tried"), Verdict::AlreadyTried);
}

/// The owner of a key is told, and who would stand in is not hidden behind it.
#[test]
fn a_hash_names_the_owner_of_the_key() {
    let bounded = Balance::Hash(HashPolicy {
        bounded_load_percent: Some(100),
    });
    let spec = ClusterSpec {
        balance: bounded,
        ..cluster_spec(vec![endpoint("a", 1), endpoint("b", 1)])
    };
    let mut world = World::new(spec);
    let key = HashKey(42);
    let owner = world.lease_for(key.0);
    let explanation = explain(&world, Some(key), &Tried::default());
    assert_ne!(explanation.chosen, Some(owner.endpoint()));
    assert_eq!(
        *verdict(&explanation, owner.name()),
        Verdict::OverBoundedLoad
    );
}

/// Where chance decides, the answer is the odds.
#[test]
fn random_tells_the_odds() {
    let spec = cluster_spec(vec![endpoint("a", 1), endpoint("b", 3)]);
    let world = World::new(ClusterSpec {
        balance: Balance::Random,
        ..spec
    });
    let explanation = explain(&world, None, &Tried::default());
    assert_eq!(explanation.chosen, None);
    let Verdict::Usable(text) = verdict(&explanation, "b") else {
        panic!("not usable");
    };
    assert!(text.contains("75 %"), "{text}");
}
