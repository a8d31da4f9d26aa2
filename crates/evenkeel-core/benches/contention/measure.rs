//! The measuring: threads that pick and work, in interleaved rounds, and the medians of those.
//!
//! A sample counts only if its threads had the cores to themselves: the scheduler tells how long each has waited for one.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use evenkeel_core::units::{Address, HashKey, Time, Weight};
use evenkeel_core::{
    Acquired, Awaited, Balance, Cluster, ClusterSpec, EndpointSpec, Failback, HashPolicy, Outcome,
    Request, TrialPolicy, Tried, WhenNone,
};
use fastrand::Rng;
use rustix::time::{ClockId, clock_gettime};

/// How many threads pick at once. More than there are cores show what it costs to be interrupted with the lock held.
pub(crate) const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Nanoseconds of private work between two picks: half of it while the lease is held, half after.
pub(crate) const WORK: [u32; 7] = [0, 100, 250, 500, 1000, 2000, 4000];

pub(crate) const ALGORITHMS: [(&str, Balance); 5] = [
    ("round-robin", Balance::RoundRobin),
    ("random", Balance::Random),
    ("two-choices", Balance::TwoChoices),
    ("least-connections", Balance::LeastConnections),
    (
        "hash",
        Balance::Hash(HashPolicy {
            bounded_load_percent: None,
        }),
    ),
];

const ROUNDS: usize = 15;
const WINDOW: Duration = Duration::from_millis(4);
const ENDPOINTS: u16 = 10;

/// Picks between two looks at the stop flag.
const PICKS_AT_ONCE: u64 = 16;

/// The part of its time that a thread may have waited for a core in a sample that counts.
const DELAYED_MAX: f64 = 0.02;

/// How often a disturbed sample is taken again.
const TRIES_MAX: usize = 16;

/// Samples that must count before the others are left out; below it the median is of all of them.
const UNDISTURBED_MIN: usize = 7;

/// One measurement.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sample {
    /// Picks of all threads together, per second by one clock, in a time in which all of them were under way.
    pub(crate) rate: f64,
    /// Processor time of one pick and the private work that belongs to it.
    pub(crate) processor_nanos: f64,
    /// The part of their time that the threads waited for a core.
    delayed: f64,
}

impl Sample {
    /// How long one thread takes from one pick to the next, by the clock.
    pub(crate) fn cycle_nanos(self, threads: usize) -> f64 {
        threads as f64 * 1e9 / self.rate
    }

    fn of(threads: &[Used], rate: f64) -> Self {
        let picks = threads.iter().map(|used| used.picks).sum::<f64>();
        let processor: Duration = threads.iter().map(|used| used.processor).sum();
        let delayed: Duration = threads.iter().map(|used| used.delayed).sum();
        let wall: Duration = threads.iter().map(|used| used.wall).sum();
        Self {
            rate,
            processor_nanos: processor.as_nanos() as f64 / picks,
            delayed: delayed.as_secs_f64() / wall.as_secs_f64(),
        }
    }
}

/// All samples, by algorithm, work and threads.
pub(crate) struct Measured(Vec<Vec<Sample>>);

impl Measured {
    /// The median of the rounds that count, for each figure by itself.
    pub(crate) fn median(&self, algorithm: usize, work: usize, threads: usize) -> Sample {
        let all = &self.0[cell(algorithm, work, threads)];
        let undisturbed: Vec<Sample> = all.iter().copied().filter(Self::counts).collect();
        let samples = if undisturbed.len() < UNDISTURBED_MIN {
            all
        } else {
            &undisturbed
        };
        let of = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
        Sample {
            rate: of(|sample| sample.rate),
            processor_nanos: of(|sample| sample.processor_nanos),
            delayed: of(|sample| sample.delayed),
        }
    }

    /// Whether enough of a cell's samples count.
    pub(crate) fn is_sound(&self, algorithm: usize, work: usize, threads: usize) -> bool {
        let samples = &self.0[cell(algorithm, work, threads)];
        samples
            .iter()
            .filter(|&sample| Self::counts(sample))
            .count()
            >= UNDISTURBED_MIN
    }

    /// The cells, of those with no more threads than `cores`, that other programs disturbed too often.
    pub(crate) fn disturbed_cells(&self, cores: usize) -> usize {
        let cells = (0..ALGORITHMS.len()).flat_map(|algorithm| {
            (0..WORK.len()).flat_map(move |work| {
                (0..THREADS.len()).map(move |column| (algorithm, work, column))
            })
        });
        cells
            .filter(|&(algorithm, work, column)| {
                THREADS[column] <= cores && !self.is_sound(algorithm, work, column)
            })
            .count()
    }

    fn counts(sample: &Sample) -> bool {
        sample.delayed <= DELAYED_MAX
    }
}

/// Measures everything once per round, so that a slow minute of the machine is slow for all.
/// More threads than `cores` disturb each other, which is what they are for.
pub(crate) fn all(cores: usize) -> Measured {
    let clusters = ALGORITHMS.map(|(_, balance)| Cluster::new(spec(balance), 0, Time::ZERO));
    let turns = Turns::calibrated();
    let mut measured = vec![Vec::new(); ALGORITHMS.len() * WORK.len() * THREADS.len()];
    for _ in 0..ROUNDS {
        for (algorithm, cluster) in clusters.iter().enumerate() {
            for (work, nanos) in WORK.iter().enumerate() {
                for (column, &threads) in THREADS.iter().enumerate() {
                    let tries = if threads > cores { 1 } else { TRIES_MAX };
                    let sample = least_disturbed(tries, cluster, threads, turns.of(*nanos));
                    measured[cell(algorithm, work, column)].push(sample);
                }
            }
        }
    }
    Measured(measured)
}

const fn cell(algorithm: usize, work: usize, threads: usize) -> usize {
    (algorithm * WORK.len() + work) * THREADS.len() + threads
}

/// The first sample that counts, or the last one.
fn least_disturbed(tries: usize, cluster: &Arc<Cluster>, threads: usize, turns: u64) -> Sample {
    let mut samples = (0..tries).map(|_| sample(cluster, threads, turns));
    let mut last = Sample::default();
    samples
        .find(|sample| {
            last = *sample;
            Measured::counts(sample)
        })
        .unwrap_or(last)
}

fn sample(cluster: &Arc<Cluster>, threads: usize, turns: u64) -> Sample {
    let start = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    let counters: Vec<Counter> = (0..threads).map(|_| Counter::default()).collect();
    let (used, rate) = std::thread::scope(|scope| {
        let spawn = |(seed, counter)| {
            let (start, stop) = (&start, &stop);
            scope.spawn(move || {
                // Before it starts: one that gets a core late picks alone for a while, and so do the others.
                let delayed = time_delayed();
                start.wait();
                let used = pick_until(stop, counter, (cluster, turns, seed));
                Used {
                    delayed: time_delayed().saturating_sub(delayed),
                    ..used
                }
            })
        };
        let workers: Vec<_> = (0..).zip(&counters).map(spawn).collect();
        start.wait();
        let rate = rate_of(&counters);
        stop.store(true, Ordering::Relaxed);
        let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        let used = joined.map(|used| used.expect("a pick does not panic"));
        (used.collect::<Vec<_>>(), rate)
    });
    Sample::of(&used, rate)
}

/// By one clock for all: if each thread's rate were by its own, those that start late or stop early would count as if
/// they had been there all the time.
fn rate_of(counters: &[Counter]) -> f64 {
    let sum = || -> u64 { counters.iter().map(Counter::picks).sum() };
    let (begin, before) = (Instant::now(), sum());
    std::thread::sleep(WINDOW);
    (sum() - before) as f64 / begin.elapsed().as_secs_f64()
}

/// What one thread has picked so far. On a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Counter {
    fn picks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one thread did and used.
struct Used {
    picks: f64,
    wall: Duration,
    processor: Duration,
    /// Ready to run, while others had the core.
    delayed: Duration,
}

fn pick_until(
    stop: &AtomicBool,
    counter: &Counter,
    (cluster, turns, seed): (&Arc<Cluster>, u64, u64),
) -> Used {
    let mut rng = Rng::with_seed(seed);
    let tried = Tried::default();
    let (begin, processor) = (Instant::now(), processor_time());
    let mut picks = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..PICKS_AT_ONCE {
            pick(cluster, &tried, turns, &mut rng);
        }
        picks += PICKS_AT_ONCE;
        counter.0.store(picks, Ordering::Relaxed);
    }
    Used {
        picks: picks as f64,
        wall: begin.elapsed(),
        processor: processor_time() - processor,
        delayed: Duration::ZERO,
    }
}

fn pick(cluster: &Arc<Cluster>, tried: &Tried, turns: u64, rng: &mut Rng) {
    let request = Request {
        key: Some(HashKey(rng.u64(..))),
        tried,
        waiter: None,
    };
    let Acquired::Lease(lease) = cluster.acquire(&request, Time::ZERO, rng) else {
        panic!("nothing is full here");
    };
    // As a session goes on with what its lease says: work that needs nothing of it would hide the wait for its cache line.
    work(lease.endpoint().0, turns / 2);
    lease.finish(Outcome::Completed, Time::ZERO);
    work(turns, turns - turns / 2);
}

/// Works in registers: each turn waits for the one before.
fn work(seed: u64, turns: u64) {
    let mut value = black_box(seed);
    for turn in 0..turns {
        value = value.wrapping_mul(0x5851_F42D_4C95_7F2D) ^ turn;
    }
    black_box(value);
}

/// How long a turn of [`work`] takes.
struct Turns {
    nanos: f64,
}

impl Turns {
    fn calibrated() -> Self {
        const TURNS: u64 = 2_000_000;
        let rounds = (0..ROUNDS).map(|_| {
            let begin = processor_time();
            work(1, black_box(TURNS));
            (processor_time() - begin).as_nanos() as f64 / TURNS as f64
        });
        Self {
            nanos: median(rounds.collect()),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "some thousand")]
    fn of(&self, nanos: u32) -> u64 {
        (f64::from(nanos) / self.nanos) as u64
    }
}

/// What this thread has used of a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("not negative")
}

/// How long this thread has been ready to run without running: the second number of its `schedstat`.
fn time_delayed() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_ascii_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn spec(balance: Balance) -> ClusterSpec {
    ClusterSpec {
        name: "bench".into(),
        endpoints: (0..ENDPOINTS).map(endpoint).collect(),
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
fn endpoint(number: u16) -> EndpointSpec {
    EndpointSpec {
        name: format!("endpoint-{number}").into(),
        address: Address::Ip(SocketAddr::from(([127, 0, 0, 1], number))),
        weight: Weight::new(u32::from(number) % 5 + 1).expect("small"),
        backup: false,
        disabled: false,
        max_connections: None,
    }
}
