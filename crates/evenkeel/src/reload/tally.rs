//! How reloads have gone, counted for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What became of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Something is different.
    Done,
    /// Nothing is different, or not before a restart.
    Unchanged,
    /// The configuration before stays in force.
    Failed,
}

/// Written by whoever reloads, read by anybody.
#[derive(Debug)]
pub(crate) struct Tally {
    done: AtomicU64,
    unchanged: AtomicU64,
    failed: AtomicU64,
    last_success: AtomicU64,
}

/// The counters as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) done: u64,
    pub(crate) unchanged: u64,
    pub(crate) failed: u64,
    /// When the configuration in force was last read: in seconds since 1970.
    pub(crate) last_success: u64,
}

impl Tally {
    /// That of a process whose configuration has just been read.
    pub(super) fn started_at(now: SystemTime) -> Self {
        Self {
            done: AtomicU64::new(0),
            unchanged: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            last_success: AtomicU64::new(seconds(now)),
        }
    }

    pub(super) fn count(&self, verdict: Verdict, now: SystemTime) {
        let counter = match verdict {
            Verdict::Done => &self.done,
            Verdict::Unchanged => &self.unchanged,
            Verdict::Failed => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if verdict != Verdict::Failed {
            self.last_success.store(seconds(now), Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            done: read(&self.done),
            unchanged: read(&self.unchanged),
            failed: read(&self.failed),
            last_success: read(&self.last_success),
        }
    }
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A failure leaves the time of the last success as it was; a reload that found nothing new moves it.
    #[test]
    fn failures_are_no_success() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let tally = Tally::started_at(at(10));
        let success = |tally: &Tally| tally.counts().last_success;

        tally.count(Verdict::Failed, at(20));
        assert_eq!(success(&tally), 10);
        tally.count(Verdict::Unchanged, at(30));
        assert_eq!(success(&tally), 30);
        tally.count(Verdict::Done, at(40));

        let expected = Counts {
            done: 1,
            unchanged: 1,
            failed: 1,
            last_success: 40,
        };
        assert_eq!(tally.counts(), expected);
    }
}
