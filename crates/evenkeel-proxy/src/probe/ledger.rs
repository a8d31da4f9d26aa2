//! The last result of each endpoint's probes, and how many there were of each kind: written by the control plane, read by whoever shows it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::units::EndpointId;
use parking_lot::Mutex;

use super::verdict::Verdict;

/// One result.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it came to.
    pub verdict: Verdict,
    /// From the connecting to the verdict.
    pub took: Duration,
    /// When there was a verdict.
    pub at: Instant,
}

/// How many probes of an endpoint have ended since it is probed, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// It answered as it should.
    pub passed: u64,
    /// It did not.
    pub failed: u64,
    /// This machine could not ask.
    pub not_asked: u64,
}

impl ProbeCounts {
    fn count(&mut self, verdict: &Verdict) {
        let counter = match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::NotAsked(_) => &mut self.not_asked,
        };
        *counter += 1;
    }
}

#[derive(Debug)]
struct Entry {
    last: Arc<Finding>,
    counts: ProbeCounts,
}

/// The last result of each endpoint that is probed; an endpoint whose first probe has not ended has none.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: Mutex<HashMap<EndpointId, Entry>>,
}

impl Ledger {
    /// The endpoint's last result.
    pub fn last(&self, endpoint: EndpointId) -> Option<Arc<Finding>> {
        let entries = self.entries.lock();
        entries.get(&endpoint).map(|entry| Arc::clone(&entry.last))
    }

    /// How the endpoint's probes have ended.
    pub fn counts(&self, endpoint: EndpointId) -> Option<ProbeCounts> {
        self.entries.lock().get(&endpoint).map(|entry| entry.counts)
    }

    pub(super) fn enter(&self, endpoint: EndpointId, finding: Finding) {
        let mut entries = self.entries.lock();
        let mut counts = entries
            .get(&endpoint)
            .map(|entry| entry.counts)
            .unwrap_or_default();
        counts.count(&finding.verdict);
        let last = Arc::new(finding);
        entries.insert(endpoint, Entry { last, counts });
    }

    pub(super) fn forget(&self, endpoint: EndpointId) {
        self.entries.lock().remove(&endpoint);
    }
}
