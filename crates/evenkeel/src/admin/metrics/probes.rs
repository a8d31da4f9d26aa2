//! Figures of each endpoint's probes; an endpoint that is not probed, or whose first probe has not ended, has none.

use std::sync::Arc;

use evenkeel_proxy::probe::{Finding, Ledger, ProbeCounts, Verdict};

use super::clusters::Named;
use super::family;
use super::text::Page;

/// An endpoint that is probed.
struct Probed<'s> {
    labels: [&'s str; 2],
    last: Arc<Finding>,
    counts: ProbeCounts,
}

pub(super) fn write(endpoints: &[Named<'_>], ledger: &Ledger, page: &mut Page) {
    let probed: Vec<Probed<'_>> = endpoints
        .iter()
        .filter_map(|named| find(named, ledger))
        .collect();
    let mut probes = page.family(&family::PROBES);
    for Probed { labels, counts, .. } in &probed {
        let [cluster, endpoint] = labels;
        probes.put(&[cluster, endpoint, "passed"], counts.passed);
        probes.put(&[cluster, endpoint, "failed"], counts.failed);
        probes.put(&[cluster, endpoint, "not_asked"], counts.not_asked);
    }
    let mut passed = page.family(&family::PROBE_PASSED);
    for Probed { labels, last, .. } in &probed {
        passed.put(labels, u8::from(last.verdict == Verdict::Passed));
    }
    let mut durations = page.family(&family::PROBE_DURATION);
    for Probed { labels, last, .. } in &probed {
        durations.put(labels, last.took.as_secs_f64());
    }
}

fn find<'s>((cluster, endpoint): &Named<'s>, ledger: &Ledger) -> Option<Probed<'s>> {
    Some(Probed {
        labels: [cluster, &endpoint.name],
        last: ledger.last(endpoint.id)?,
        counts: ledger.counts(endpoint.id)?,
    })
}
