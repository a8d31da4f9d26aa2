//! What a pick costs: `acquire`, `established` and `finish` of one session, for every algorithm; and what the last two cost alone.
//!
//! Alone among 10 and 1,000 endpoints, then with 8 threads at once. Run with `cargo bench -p evenkeel-core`, or with the
//! profile that packages are built with: `cargo bench -p evenkeel-core --profile dist`. Each time is the best of many
//! short rounds, taken in turn with those of all others: whatever else the machine does only adds to it, and a slow
//! minute is slow for all. Threads together are the faster, the less they really run at once, so there the best would be
//! the round that says least: each rate is the median. The targets it is held against are in `docs/decisions/0002-balancing.md`.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and its arguments"
)]

use std::hint::black_box;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Barrier};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use evenkeel_core::units::{Address, HashKey, Time, Weight};
use evenkeel_core::{
    Acquired, Awaited, Balance, Cluster, ClusterSpec, EndpointSpec, Failback, HashPolicy, Lease,
    Outcome, Request, TrialPolicy, Tried, WhenNone,
};
use fastrand::Rng;
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: u64 = 40;
const THREADS: u64 = 8;
const PICKS_TOGETHER: u64 = 400_000;

fn main() {
    // `cargo test --all-targets` runs benches too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("measures nothing unless asked to: cargo bench -p evenkeel-core");
        return;
    }
    let mut rows = rows();
    for round in 0..ROUNDS {
        rows.iter_mut().for_each(|row| row.measure(round));
    }
    println!(
        "nanoseconds a pick      10 endpoints   1,000 endpoints   8 threads / 1 thread (10 endpoints)"
    );
    rows.iter().for_each(Row::print);
    println!(
        "of which what follows the pick: {:.1}",
        nanos_after_a_pick()
    );
    for endpoints in [10, 100, 1000] {
        let begin = Instant::now();
        black_box(cluster(spec(hash(), endpoints)));
        println!(
            "hash, new snapshot of {endpoints:>4} endpoints: {:?}",
            begin.elapsed()
        );
    }
}

/// What is measured of one algorithm: the best time so far, and every rate.
struct Row {
    name: &'static str,
    small: Arc<Cluster>,
    large: Arc<Cluster>,
    /// Leases that are held all the time.
    _held: Vec<Lease>,
    nanos_of_small: f64,
    nanos_of_large: f64,
    rates_of_one: Vec<f64>,
    rates_of_many: Vec<f64>,
}

impl Row {
    fn new(name: &'static str, [small, large]: [ClusterSpec; 2]) -> Self {
        Self {
            name,
            small: cluster(small),
            large: cluster(large),
            _held: Vec::new(),
            nanos_of_small: f64::INFINITY,
            nanos_of_large: f64::INFINITY,
            rates_of_one: Vec::new(),
            rates_of_many: Vec::new(),
        }
    }

    /// As many leases on each endpoint as its weight: none is idle, and all are least loaded.
    fn none_idle(mut self) -> Self {
        self._held = [&self.small, &self.large]
            .into_iter()
            .flat_map(fill)
            .collect();
        self
    }

    fn measure(&mut self, round: u64) {
        self.nanos_of_small = self.nanos_of_small.min(alone(&self.small, 20_000, round));
        self.nanos_of_large = self.nanos_of_large.min(alone(&self.large, 2_000, round));
        self.rates_of_one.push(rate_of_threads(&self.small, 1));
        self.rates_of_many
            .push(rate_of_threads(&self.small, THREADS));
    }

    fn print(&self) {
        println!(
            "{:<24}{:>12.1}{:>18.1}{:>24.2}",
            self.name,
            self.nanos_of_small,
            self.nanos_of_large,
            median(&self.rates_of_many) / median(&self.rates_of_one)
        );
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn rows() -> Vec<Row> {
    let sizes = [10, 1000];
    let plain = |name, balance| Row::new(name, sizes.map(|endpoints| spec(balance, endpoints)));
    vec![
        plain("round-robin", Balance::RoundRobin),
        Row::new("round-robin, limits", sizes.map(with_limits)),
        plain("random", Balance::Random),
        plain("two-choices", Balance::TwoChoices),
        plain("least-connections", Balance::LeastConnections),
        plain("least, none idle", Balance::LeastConnections).none_idle(),
        plain("hash", hash()),
        Row::new("hash, substitute", sizes.map(half_disabled)),
    ]
}

fn fill(cluster: &Arc<Cluster>) -> Vec<Lease> {
    let status = cluster.status(Time::ZERO);
    let weights = status
        .endpoints
        .iter()
        .map(|endpoint| endpoint.weight.get());
    (0..weights.sum()).map(|key| lease(cluster, key)).collect()
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
        health: None,
        failback: Failback::Auto,
        awaited: Awaited::default(),
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

/// Nanoseconds of one pick, on one thread, whose caches have seen the cluster.
fn alone(cluster: &Arc<Cluster>, picks: u32, seed: u64) -> f64 {
    pick_many(cluster, picks, seed);
    let begin = processor_time();
    pick_many(cluster, picks, seed);
    (processor_time() - begin).as_nanos() as f64 / f64::from(picks)
}

/// Nanoseconds of what a session reports after it has been given an endpoint: success, and its end.
fn nanos_after_a_pick() -> f64 {
    const LEASES: u32 = 2_000;
    let cluster = cluster(spec(Balance::LeastConnections, 10));
    let round = |_| {
        let leases: Vec<Lease> = (0..LEASES).map(|key| lease(&cluster, key)).collect();
        let begin = processor_time();
        for mut lease in leases {
            lease.established(Time::ZERO);
            lease.finish(Outcome::Completed, Time::ZERO);
        }
        (processor_time() - begin).as_nanos() as f64 / f64::from(LEASES)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// What this thread has used of a processor: other programs at work do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("not negative")
}

/// Picks per second of `threads` threads together, from the first one's begin to the last one's end. (With more threads
/// than cores, the thread that waits for them is late for both.)
fn rate_of_threads(cluster: &Arc<Cluster>, threads: u64) -> f64 {
    let picks_each = u32::try_from(PICKS_TOGETHER / threads).expect("small");
    let start = Barrier::new(usize::try_from(threads).expect("small"));
    let timed = |seed| {
        start.wait();
        let begin = Instant::now();
        pick_many(cluster, picks_each, seed);
        (begin, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let timed = &timed;
        let spawned: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || timed(seed)))
            .collect();
        let joined = spawned.into_iter().map(ScopedJoinHandle::join);
        joined.map(|times| times.expect("no pick panics")).collect()
    });
    let begin = times.iter().map(|times| times.0).min();
    let end = times.iter().map(|times| times.1).max();
    let elapsed = end.expect("threads") - begin.expect("threads");
    PICKS_TOGETHER as f64 / elapsed.as_secs_f64()
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
            Acquired::Lease(mut lease) => {
                lease.established(Time::ZERO);
                black_box(lease).finish(Outcome::Completed, Time::ZERO);
            }
            Acquired::Wait(_) | Acquired::Refused(_) => panic!("nothing is full here"),
        }
    }
}
