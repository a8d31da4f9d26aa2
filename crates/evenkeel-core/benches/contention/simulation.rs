//! The same by simulation: cores that work for themselves for a while, then hold one lock for a fixed time, first come first
//! served. It shows what the model's means do not: how long the unlucky wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

pub(crate) const SEED: u64 = 20_261_130;

const CONNECTIONS: usize = 500_000;

/// Nanoseconds, but for the rate.
pub(crate) struct Run {
    /// Connections a second, all cores together.
    pub(crate) rate: f64,
    pub(crate) mean_wait: f64,
    /// 99 of 100 wait no longer.
    pub(crate) wait_99: f64,
}

/// `held` and `private` are nanoseconds; private work varies as if it could end at any moment (exponentially).
pub(crate) fn run(cores: usize, held: f64, private: f64) -> Run {
    let mut rng = Rng::with_seed(SEED);
    let mut arrivals: BinaryHeap<Reverse<Arrival>> = (0..cores)
        .map(|_| Reverse(Arrival(exponential(private, &mut rng))))
        .collect();
    let mut free_at = 0.0_f64;
    let mut waits = Vec::with_capacity(CONNECTIONS);
    while waits.len() < CONNECTIONS {
        let Some(Reverse(Arrival(arrival))) = arrivals.pop() else {
            break;
        };
        let begin = arrival.max(free_at);
        waits.push(begin - arrival);
        free_at = begin + held;
        arrivals.push(Reverse(Arrival(free_at + exponential(private, &mut rng))));
    }
    summarise(waits, free_at)
}

fn summarise(mut waits: Vec<f64>, end: f64) -> Run {
    waits.sort_by(f64::total_cmp);
    let count = waits.len() as f64;
    Run {
        rate: count * 1e9 / end,
        mean_wait: waits.iter().sum::<f64>() / count,
        wait_99: waits[waits.len() * 99 / 100],
    }
}

/// When a core comes to the lock.
#[derive(Clone, Copy)]
struct Arrival(f64);

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Arrival {}

fn exponential(mean: f64, rng: &mut Rng) -> f64 {
    -mean * (1.0 - rng.f64()).ln()
}
