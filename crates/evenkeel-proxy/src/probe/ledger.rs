//! The last result of each endpoint's probes: written by the control plane, read by whoever shows it.

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

/// The last result of each endpoint that is probed; an endpoint whose first probe has not ended has none.
#[derive(Debug, Default)]
pub struct Ledger {
    findings: Mutex<HashMap<EndpointId, Arc<Finding>>>,
}

impl Ledger {
    /// The endpoint's last result.
    pub fn last(&self, endpoint: EndpointId) -> Option<Arc<Finding>> {
        self.findings.lock().get(&endpoint).cloned()
    }

    pub(super) fn enter(&self, endpoint: EndpointId, finding: Finding) {
        self.findings.lock().insert(endpoint, Arc::new(finding));
    }

    pub(super) fn forget(&self, endpoint: EndpointId) {
        self.findings.lock().remove(&endpoint);
    }
}
