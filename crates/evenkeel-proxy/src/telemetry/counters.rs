//! Sessions ended and bytes moved, per listener, cluster and endpoint, by reason.
//!
//! Every counter exists from the start, for each name in the settings: counting a session is a few look-ups in maps that
//! never change and a few relaxed additions, once per session. Live numbers (sessions now, in-flight) are not here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::reason::Reason;
use super::record::SessionRecord;
use crate::settings::{ClusterSettings, Settings};

/// All counters of a process.
#[derive(Debug)]
pub struct Counters {
    listeners: HashMap<Arc<str>, Tally>,
    clusters: HashMap<Arc<str>, ClusterCounters>,
}

#[derive(Debug)]
struct ClusterCounters {
    all: Tally,
    endpoints: HashMap<Arc<str>, Tally>,
}

impl Counters {
    pub(super) fn new(settings: &Settings) -> Self {
        let listeners = settings.listeners.iter();
        let clusters = settings.clusters.iter();
        Self {
            listeners: listeners
                .map(|listener| (Arc::clone(&listener.name), Tally::default()))
                .collect(),
            clusters: clusters
                .map(|cluster| {
                    (
                        Arc::clone(&cluster.spec.name),
                        ClusterCounters::new(cluster),
                    )
                })
                .collect(),
        }
    }

    /// Counts a session under every name it carries. Does not allocate.
    pub(super) fn record(&self, record: &SessionRecord) {
        if let Some(listener) = self.listeners.get(&record.listener) {
            listener.record(record);
        }
        if let Some(cluster) = self.clusters.get(&record.cluster) {
            cluster.record(record);
        }
    }

    /// The counters of a listener.
    pub fn listener(&self, name: &str) -> Option<&Tally> {
        self.listeners.get(name)
    }

    /// The counters of a cluster as a whole.
    pub fn cluster(&self, name: &str) -> Option<&Tally> {
        self.clusters.get(name).map(|cluster| &cluster.all)
    }

    /// The counters of the sessions that an endpoint served, or was the last one tried for.
    pub fn endpoint(&self, cluster: &str, endpoint: &str) -> Option<&Tally> {
        self.clusters.get(cluster)?.endpoints.get(endpoint)
    }
}

impl ClusterCounters {
    fn new(cluster: &ClusterSettings) -> Self {
        let endpoints = cluster.spec.endpoints.iter();
        Self {
            all: Tally::default(),
            endpoints: endpoints
                .map(|endpoint| (Arc::clone(&endpoint.name), Tally::default()))
                .collect(),
        }
    }

    fn record(&self, record: &SessionRecord) {
        self.all.record(record);
        let served_by = record.endpoint.as_ref();
        if let Some(endpoint) = served_by.and_then(|name| self.endpoints.get(name)) {
            endpoint.record(record);
        }
    }
}

/// What has been counted under one name. Sums only: they never go down while the process runs.
#[derive(Debug, Default)]
pub struct Tally {
    by_reason: [AtomicU64; Reason::ALL.len()],
    attempts: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

impl Tally {
    fn record(&self, record: &SessionRecord) {
        add(&self.by_reason[record.reason as usize], 1);
        add(&self.attempts, u64::from(record.attempts));
        add(&self.bytes_up, record.bytes_up);
        add(&self.bytes_down, record.bytes_down);
    }

    /// Sessions that ended for this reason.
    pub fn ended(&self, reason: Reason) -> u64 {
        self.by_reason[reason as usize].load(Ordering::Relaxed)
    }

    /// Attempts of the sessions that have ended.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Bytes from clients to endpoints, of the sessions that have ended.
    pub fn bytes_up(&self) -> u64 {
        self.bytes_up.load(Ordering::Relaxed)
    }

    /// Bytes from endpoints to clients, of the sessions that have ended.
    pub fn bytes_down(&self) -> u64 {
        self.bytes_down.load(Ordering::Relaxed)
    }
}

/// Relaxed: each counter stands for itself, and nothing is decided by two of them together.
fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use evenkeel_reactor::Origin;

    use super::*;

    fn world() -> Counters {
        let endpoints = ["a", "b"].map(|name| (Arc::from(name), Tally::default()));
        let web = ClusterCounters {
            all: Tally::default(),
            endpoints: HashMap::from(endpoints),
        };
        Counters {
            listeners: HashMap::from([(Arc::from("front"), Tally::default())]),
            clusters: HashMap::from([(Arc::from("web"), web)]),
        }
    }

    fn session(endpoint: Option<&str>, reason: Reason) -> SessionRecord {
        SessionRecord {
            listener: Arc::from("front"),
            cluster: Arc::from("web"),
            client: Origin::Ip("192.0.2.7:50312".parse().unwrap()),
            endpoint: endpoint.map(Arc::from),
            attempts: 2,
            bytes_up: 10,
            bytes_down: 100,
            queued: Duration::ZERO,
            connect: None,
            first_byte: None,
            total: Duration::ZERO,
            reason,
        }
    }

    /// One session counts once for its listener, its cluster and its endpoint, and not for the endpoint's neighbour.
    #[test]
    fn a_session_counts_under_each_of_its_names() {
        let counters = world();

        counters.record(&session(Some("a"), Reason::Done));

        let tallies = [
            counters.listener("front"),
            counters.cluster("web"),
            counters.endpoint("web", "a"),
        ];
        for tally in tallies.map(Option::unwrap) {
            assert_eq!(tally.ended(Reason::Done), 1);
            assert_eq!(tally.attempts(), 2);
            assert_eq!((tally.bytes_up(), tally.bytes_down()), (10, 100));
        }
        let neighbour = counters.endpoint("web", "b").unwrap();
        assert_eq!(neighbour.ended(Reason::Done), 0);
    }

    /// Every reason has a counter of its own.
    #[test]
    fn reasons_are_counted_apart() {
        let counters = world();

        for reason in Reason::ALL {
            counters.record(&session(None, *reason));
        }

        let front = counters.listener("front").unwrap();
        for reason in Reason::ALL {
            assert_eq!(front.ended(*reason), 1, "{reason}");
        }
    }

    /// A session under a name that is in no settings is not counted, and harms nothing.
    #[test]
    fn an_unknown_name_is_left_out() {
        let counters = world();

        counters.record(&session(Some("gone"), Reason::Done));

        assert_eq!(counters.cluster("web").unwrap().ended(Reason::Done), 1);
        assert!(counters.endpoint("web", "gone").is_none());
    }
}
