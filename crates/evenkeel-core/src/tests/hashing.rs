//! Hash balancers: who owns a key, and who stands in.

use std::time::Duration;

use super::world::{World, backup, cluster_spec, disabled, ejecting, endpoint};
use crate::units::HashKey;
use crate::{Balance, ClusterSpec, EndpointSpec, HashPolicy, Outcome};

const KEYS: u64 = 2_000;

fn hashing(endpoints: Vec<EndpointSpec>) -> ClusterSpec {
    ClusterSpec {
        balance: Balance::Hash(HashPolicy::default()),
        ..cluster_spec(endpoints)
    }
}

fn abcd() -> Vec<EndpointSpec> {
    ["a", "b", "c", "d"].map(|name| endpoint(name, 2)).to_vec()
}

fn owners(world: &mut World) -> Vec<String> {
    (0..KEYS)
        .map(|key| world.lease_for(key).name().to_string())
        .collect()
}

/// The same key, the same endpoint.
#[test]
fn a_key_stays_where_it_is() {
    let mut world = World::new(hashing(abcd()));
    assert_eq!(owners(&mut world), owners(&mut world));
}

/// Fault #27: ejected, disabled or removed, its keys go, and only those; all three ways to the same substitutes.
#[test]
fn only_the_keys_of_an_endpoint_that_leaves_move() {
    let before = owners(&mut World::new(hashing(abcd())));

    let mut without = World::new(hashing(
        abcd().into_iter().filter(|e| &*e.name != "b").collect(),
    ));
    let removed = owners(&mut without);
    for (before, after) in before.iter().zip(&removed) {
        assert!(before == after || before == "b");
    }

    let mut endpoints = abcd();
    endpoints[1].disabled = true;
    assert_eq!(owners(&mut World::new(hashing(endpoints))), removed);

    let mut world = World::new(ClusterSpec {
        ejection: ejecting(1, 50),
        ..hashing(abcd())
    });
    world.fail_on("b");
    assert_eq!(owners(&mut world), removed);
}

/// The keys that `name` owns.
fn keys_of(world: &mut World, name: &str) -> Vec<u64> {
    let owners = owners(world);
    (0..KEYS)
        .zip(owners)
        .filter_map(|(key, owner)| (owner == name).then_some(key))
        .collect()
}

fn serve(world: &mut World, key: u64) -> String {
    let mut lease = world.lease_for(key);
    let name = lease.name().to_string();
    lease.established(world.now);
    lease.finish(Outcome::Completed, world.now);
    name
}

/// Fault: at 1 of 5, an endpoint had a fifth of its keys; the clients of the others raised nothing and never came home.
#[test]
fn every_key_comes_home_by_its_own_traffic_alone() {
    let endpoints = || vec![endpoint("a", 5), endpoint("b", 5)];
    let keys = keys_of(&mut World::new(hashing(endpoints())), "a");
    for key in keys.into_iter().take(50) {
        let mut world = World::new(hashing(endpoints()));
        (0..5).for_each(|_| world.fail_on("a"));
        assert_eq!(serve(&mut world, key), "b");
        world.wait_until(1.0);
        (0..5).for_each(|_| assert_eq!(serve(&mut world, key), "a"));
        assert_eq!(world.status("a").effective_weight, 5);
    }
}

/// Above 0, effective weight says nothing to a hash: all of its keys stay.
#[test]
fn a_fading_endpoint_keeps_all_of_its_keys_until_it_is_at_zero() {
    let mut world = World::new(hashing(abcd()));
    let before = owners(&mut world);
    world.fail_on("b");
    assert_eq!(world.status("b").effective_weight, 1);
    assert_eq!(owners(&mut world), before);
    world.fail_on("b");
    let faded = owners(&mut world);
    assert!(faded.iter().all(|owner| owner != "b"));
    let moved = before.iter().zip(&faded).filter(|(old, new)| old != new);
    assert!(moved.into_iter().all(|(old, _)| old == "b"));
}

/// Fault #21 and #27: a new endpoint takes its part from all, and nothing moves between the old ones.
#[test]
fn an_added_endpoint_only_takes() {
    let before = owners(&mut World::new(hashing(abcd())));
    let mut endpoints = abcd();
    endpoints.insert(0, endpoint("e", 2));
    let after = owners(&mut World::new(hashing(endpoints)));
    let moved = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after);
    let taken: Vec<&String> = moved.map(|(_, after)| after).collect();
    assert!(taken.iter().all(|&to| to == "e"));
    assert!((300..=500).contains(&taken.len()), "{}", taken.len());
}

/// Fault #20: while it warms up, a new endpoint has a tenth of its keys, and always the same.
#[test]
fn a_warming_endpoint_takes_a_growing_part_of_its_keys() {
    let slow = |endpoints| ClusterSpec {
        slow_start: Duration::from_secs(90),
        ..hashing(endpoints)
    };
    let mut world = World::new(slow(abcd()));
    let before = owners(&mut world);
    let mut endpoints = abcd();
    endpoints.push(endpoint("e", 2));
    world.cluster.reconfigure(slow(endpoints), world.now);

    let mut had: Vec<usize> = Vec::new();
    for second in [0.0, 40.0, 90.0] {
        world.wait_until(second);
        let now = owners(&mut world);
        assert!(
            now.iter()
                .zip(&before)
                .all(|(now, before)| now == before || now == "e")
        );
        let has: Vec<usize> = (0..now.len()).filter(|&key| now[key] == "e").collect();
        assert!(had.iter().all(|key| has.contains(key)));
        had = has;
    }
    assert!((300..=500).contains(&had.len()), "{}", had.len());
}

/// Backups own nothing, and take the keys by rendezvous when they must.
#[test]
fn backups_share_the_keys_when_the_primaries_are_gone() {
    let mut world = World::new(hashing(vec![disabled("a"), backup("b"), backup("c")]));
    let owners = owners(&mut world);
    let on_b = owners.iter().filter(|&name| name == "b").count();
    assert!((800..=1_200).contains(&on_b), "{on_b}");
}

/// A hot key: with the bound at 150 %, its owner takes its part and the substitutes the rest.
#[test]
fn bounded_load_spreads_a_hot_key() {
    let bounded = Balance::Hash(HashPolicy {
        bounded_load_percent: Some(150),
    });
    let mut world = World::new(ClusterSpec {
        balance: bounded,
        ..hashing(abcd())
    });
    let held: Vec<_> = (0..100).map(|_| world.lease_for(42)).collect();
    for name in ["a", "b", "c", "d"] {
        let has = held.iter().filter(|lease| &**lease.name() == name).count();
        assert!(has <= 38, "{name} has {has} of 100"); // 150 % of a quarter
    }
}

/// A session without a key goes anywhere rather than always to the same place.
#[test]
fn without_a_key_any_endpoint_will_do() {
    let mut world = World::new(hashing(abcd()));
    let visited = world.visited(200);
    assert!(
        ["a", "b", "c", "d"]
            .iter()
            .all(|&name| visited.contains(name))
    );
}

/// The address of a client is one key, in either notation.
#[test]
fn an_ipv4_address_and_its_mapped_form_are_one_key() {
    let plain = HashKey::of_address("192.0.2.7".parse().unwrap());
    let mapped = HashKey::of_address("::ffff:192.0.2.7".parse().unwrap());
    assert_eq!(plain, mapped);
}
