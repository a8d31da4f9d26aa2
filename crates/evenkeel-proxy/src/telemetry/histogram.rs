//! How long things took: counts of durations between fixed bounds, and their sum.
//!
//! Observed once a session, when it has ended, with two relaxed additions. How it is printed is the reader's business.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds for what a session waits for: a connection, a free slot.
pub const WAIT_BOUNDS: &[Duration] = &[
    Duration::from_micros(250),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// Bounds for how long a session lives: a lookup is over in a millisecond, a pool's connection lives for hours.
pub const LIFE_BOUNDS: &[Duration] = &[
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
    Duration::from_secs(6 * 3_600),
];

/// Durations, counted by size.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [Duration],
    /// One for each bound, and one for what is beyond the last.
    counts: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
}

impl Histogram {
    /// Nothing yet, between these bounds, which grow.
    pub fn new(bounds: &'static [Duration]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum_micros: AtomicU64::new(0),
        }
    }

    /// Counts one. Does not allocate.
    pub fn observe(&self, duration: Duration) {
        let place = self.bounds.partition_point(|bound| *bound < duration);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Each bound with how many were at most that long, and at the end, without a bound, how many there were.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count.load(Ordering::Relaxed);
            Some(*sum)
        });
        bounds.zip(counts)
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_micros.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: &[Duration] = &[Duration::from_millis(1), Duration::from_millis(10)];

    /// A duration that is a bound belongs below it, one beyond all bounds only to the whole.
    #[test]
    fn durations_are_counted_up_to_their_bound() {
        let histogram = Histogram::new(BOUNDS);

        for millis in [0, 1, 2, 10, 11] {
            histogram.observe(Duration::from_millis(millis));
        }

        let counted: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(counted, [2, 4, 5]);
        assert_eq!(histogram.sum(), Duration::from_millis(24));
    }

    /// The search for a place relies on it.
    #[test]
    fn bounds_grow() {
        assert!(WAIT_BOUNDS.is_sorted() && LIFE_BOUNDS.is_sorted());
    }
}
