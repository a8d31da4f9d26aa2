//! Random configurations, and random changes to them.

use super::*;

pub(super) fn random_spec(rng: &mut Rng, seed: u64) -> ClusterSpec {
    let endpoints = (0..rng.u16(2..6)).map(|number| random_endpoint(rng, number));
    ClusterSpec {
        name: "simulated".into(),
        endpoints: endpoints.collect(),
        balance: random_balance(seed),
        trials: TrialPolicy {
            every: Duration::from_secs(1),
            every_max: Duration::from_secs(8),
        },
        ejection: (!seed.is_multiple_of(4)).then(|| EjectionPolicy {
            failures: rng.u32(1..4),
            base: Duration::from_secs(5),
            max: Duration::from_secs(20),
            share_max_percent: rng.u32(30..=100),
        }),
        slow_start: Duration::from_secs(rng.u64(0..6)),
        queue_max: rng.usize(0..12),
        when_none: if rng.bool() {
            WhenNone::Fail
        } else {
            WhenNone::UseAll
        },
        health: random_health(rng),
        failback: random_failback(rng),
        awaited: random_awaited(rng),
    }
}

/// Mostly nobody.
fn random_awaited(rng: &mut Rng) -> Awaited {
    Awaited {
        primaries: rng.u8(0..6) == 0,
        backups: rng.u8(0..6) == 0,
    }
}

/// Hashes less often than the rest: in a debug build, filling a slot table takes as long as a hundred steps.
fn random_balance(seed: u64) -> Balance {
    let bounded = HashPolicy {
        bounded_load_percent: Some(125),
    };
    match seed % 10 {
        0..3 => Balance::RoundRobin,
        3..6 => Balance::LeastConnections,
        6 => Balance::Random,
        7 => Balance::TwoChoices,
        8 => Balance::Hash(HashPolicy::default()),
        _ => Balance::SourceHash(bounded),
    }
}

fn random_endpoint(rng: &mut Rng, number: u16) -> EndpointSpec {
    EndpointSpec {
        name: format!("e{number}").into(),
        address: Address::Ip(SocketAddr::from(([127, 0, 0, 1], number))),
        weight: Weight::new(rng.u32(0..6)).expect("small"),
        backup: rng.u32(..5) == 0,
        disabled: rng.u32(..8) == 0,
        max_connections: NonZeroU32::new(rng.u32(0..4)),
    }
}

/// Adds, removes, moves or changes an endpoint, or the order of the list.
pub(super) fn change_spec(spec: &mut ClusterSpec, rng: &mut Rng) {
    let index = rng.usize(..spec.endpoints.len());
    let number = u16::try_from(index).expect("small");
    let free = (0..8).find(|n| spec.endpoints.iter().all(|e| *e.name != *format!("e{n}")));
    match (rng.u32(..5), free) {
        (0, Some(free)) => spec.endpoints.push(random_endpoint(rng, free)),
        (1, _) if spec.endpoints.len() > 1 => drop(spec.endpoints.remove(index)),
        (2, _) => rng.shuffle(&mut spec.endpoints),
        (3, _) => {
            let port = 100 + rng.u16(..100) + number;
            spec.endpoints[index].address = Address::Ip(SocketAddr::from(([127, 0, 0, 1], port)));
        }
        _ => {
            let name = Arc::clone(&spec.endpoints[index].name);
            let address = spec.endpoints[index].address.clone();
            spec.endpoints[index] = EndpointSpec {
                name,
                address,
                ..random_endpoint(rng, number)
            };
        }
    }
    spec.queue_max = rng.usize(0..12);
    if rng.u32(..4) == 0 {
        spec.health = random_health(rng);
        spec.failback = random_failback(rng);
    }
}

/// The most passed probes that any policy here asks for.
pub(super) const RISE_MAX: u32 = 3;

fn random_health(rng: &mut Rng) -> Option<HealthPolicy> {
    rng.bool().then(|| HealthPolicy {
        rise: rng.u32(1..=RISE_MAX),
        fall: rng.u32(1..=3),
    })
}

fn random_failback(rng: &mut Rng) -> Failback {
    if rng.bool() {
        Failback::Auto
    } else {
        Failback::Manual
    }
}
