//! What a pick costs: `acquire` and `finish` of one session, for every algorithm.
//!
//! Alone among 10 and 1,000 endpoints, then with 8 threads at once. Run with `cargo bench -p evenkeel-core`, or with the
//! profile that packages are built with: `cargo bench -p evenkeel-core --profile dist`. Each figure is the best
//! of several rounds: whatever else the machine does only adds to it. The targets it is held against are in `docs/decisions/0002-balancing.md`.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and its arguments"
)]

use std::hint::black_box;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use evenkeel_core::units::{Address, HashKey, Time, Weight};
use evenkeel_core::{
    Acquired, Balance, Cluster, ClusterSpec, EndpointSpec, HashPolicy, Lease, Outcome, Request,
    TrialPolicy, Tried, WhenNone,
};
use fastrand::Rng;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: u64 = 15;
const THREADS: u64 = 8;
const PICKS_TOGETHER: u64 = 800_000;

fn main() {
    // `cargo test --all-targets` runs benches too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("measures nothing unless asked to: cargo bench -p evenkeel-core");
        return;
    }
    println!(
        "nanoseconds a pick      10 endpoints   1,000 endpoints   8 threads / 1 thread (10 endpoints)"
    );
    for (name, balance) in algorithms() {
        let small = cluster(spec(balance, 10));
        let large = cluster(spec(balance, 1000));
        let ratio = rate_of_threads(&small, THREADS) / rate_of_threads(&small, 1);
        println!(
            "{name:<24}{:>12.1}{:>18.1}{ratio:>24.2}",
            alone(&small, 100_000),
            alone(&large, 5_000)
        );
    }
    let limited = ("round-robin, limits", [10, 1000].map(with_limits));
    let substitute = ("hash, substitute", [10, 1000].map(half_disabled));
    least_connections_of_equals();
    for (name, specs) in [limited, substitute] {
        let [small, large] = specs.map(cluster);
        println!(
            "{name:<24}{:>12.1}{:>18.1}",
            alone(&small, 100_000),
            alone(&large, 5_000)
        );
    }
    for endpoints in [10, 100, 1000] {
        let begin = Instant::now();
        black_box(cluster(spec(hash(), endpoints)));
        println!(
            "hash, new snapshot of {endpoints:>4} endpoints: {:?}",
            begin.elapsed()
        );
    }
}

/// As many leases on each endpoint as its weight: none is idle, and all are least loaded.
fn least_connections_of_equals() {
    let costs = [(10, 100_000), (1000, 5_000)].map(|(endpoints, picks)| {
        let spec = spec(Balance::LeastConnections, endpoints);
        let weights = spec.endpoints.iter().map(|endpoint| endpoint.weight.get());
        let count: u32 = weights.sum();
        let cluster = cluster(spec);
        let _held: Vec<Lease> = (0..count).map(|key| lease(&cluster, key)).collect();
        alone(&cluster, picks)
    });
    let [small, large] = costs;
    println!("least, none idle        {small:>12.1}{large:>18.1}");
}

fn lease(cluster: &Arc<Cluster>, key: u32) -> Lease {
    let request = Request {
        key: Some(HashKey(key.into())),
        tried: &Tried::default(),
        waiter: None,
    };
    match cluster.acquire(&request, Time::ZERO, &mut Rng::with_seed(key.into())) {
        Acquired::Lease(lease) => lease,
        Acquired::Wait(_) | Acquired::Refused(_) => panic!("nothing is full here"),
    }
}

fn algorithms() -> [(&'static str, Balance); 5] {
    [
        ("round-robin", Balance::RoundRobin),
        ("random", Balance::Random),
        ("two-choices", Balance::TwoChoices),
        ("least-connections", Balance::LeastConnections),
        ("hash", hash()),
    ]
}

fn hash() -> Balance {
    Balance::Hash(HashPolicy::default())
}

fn spec(balance: Balance, endpoints: usize) -> ClusterSpec {
    ClusterSpec {
        name: "bench".into(),
        endpoints: (0..endpoints).map(endpoint).collect(),
        balance,
        trials: TrialPolicy::default(),
        ejection: None,
        slow_start: Duration::ZERO,
        queue_max: 0,
        when_none: WhenNone::Fail,
    }
}

/// Weights 1 to 5.
fn endpoint(number: usize) -> EndpointSpec {
    let port = u16::try_from(number).expect("at most 1,000");
    EndpointSpec {
        name: format!("endpoint-{number}").into(),
        address: Address::Ip(SocketAddr::from(([127, 0, 0, 1], port))),
        weight: Weight::new(u32::from(port) % 5 + 1).expect("small"),
        backup: false,
        disabled: false,
        max_connections: None,
    }
}

fn with_limits(endpoints: usize) -> ClusterSpec {
    let mut spec = spec(Balance::RoundRobin, endpoints);
    for endpoint in &mut spec.endpoints {
        endpoint.max_connections = NonZeroU32::new(1000);
    }
    spec
}

/// Every other endpoint is out, so that half of the keys go to a substitute.
fn half_disabled(endpoints: usize) -> ClusterSpec {
    let mut spec = spec(hash(), endpoints);
    for endpoint in spec.endpoints.iter_mut().step_by(2) {
        endpoint.disabled = true;
    }
    spec
}

fn cluster(spec: ClusterSpec) -> Arc<Cluster> {
    Cluster::new(spec, 0, Time::ZERO)
}

/// Nanoseconds of one pick, on one thread.
fn alone(cluster: &Arc<Cluster>, picks: u32) -> f64 {
    let rounds = (0..ROUNDS).map(|round| {
        let begin = processor_time();
        pick_many(cluster, picks, round);
        (processor_time() - begin).as_nanos() as f64 / f64::from(picks)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// What this thread has used of a processor: other programs at work do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("not negative")
}

/// Picks per second of `threads` threads together.
fn rate_of_threads(cluster: &Arc<Cluster>, threads: u64) -> f64 {
    let picks_each = u32::try_from(PICKS_TOGETHER / threads).expect("small");
    let rounds = (0..ROUNDS).map(|_| {
        let start = Barrier::new(usize::try_from(threads).expect("small") + 1);
        let begin = std::thread::scope(|scope| {
            for thread in 0..threads {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    pick_many(cluster, picks_each, thread);
                });
            }
            start.wait();
            Instant::now()
        });
        PICKS_TOGETHER as f64 / begin.elapsed().as_secs_f64()
    });
    rounds.fold(0.0, f64::max)
}

fn pick_many(cluster: &Arc<Cluster>, picks: u32, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let tried = Tried::default();
    for _ in 0..picks {
        let request = Request {
            key: Some(HashKey(rng.u64(..))),
            tried: &tried,
            waiter: None,
        };
        match cluster.acquire(&request, Time::ZERO, &mut rng) {
            Acquired::Lease(lease) => black_box(lease).finish(Outcome::Completed, Time::ZERO),
            Acquired::Wait(_) | Acquired::Refused(_) => panic!("nothing is full here"),
        }
    }
}
