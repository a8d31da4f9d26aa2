//! Sessions ended and bytes moved, per listener, cluster and endpoint, by reason; and how long things took.
//!
//! There is a counter for each name in the settings, and for no other: a reload makes those of new names and drops those of
//! names that have gone. Counting a session is a few look-ups in maps that do not change and a few relaxed additions, once per
//! session. Live numbers (sessions now, in-flight) are not here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use super::histogram::{Histogram, LIFE_BOUNDS, WAIT_BOUNDS};
use super::reason::Reason;
use super::record::{ExchangeRecord, SessionRecord};
use crate::settings::{ClusterSettings, Settings};

/// All counters of a process.
#[derive(Debug)]
pub struct Counters(ArcSwap<Table>);

/// The counters of one moment's names. What is counted under a name goes on from table to table.
#[derive(Debug, Default)]
struct Table {
    listeners: HashMap<Arc<str>, Arc<ListenerTally>>,
    clusters: HashMap<Arc<str>, ClusterCounters>,
}

#[derive(Debug, Default)]
struct ClusterCounters {
    all: Arc<ClusterTally>,
    endpoints: HashMap<Arc<str>, Arc<Tally>>,
}

impl Counters {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut table = Table::default();
        table.add(settings, &Table::default());
        Self(ArcSwap::from_pointee(table))
    }

    /// Goes over to the names in these settings. Those that were there before go on counting.
    pub(super) fn follow(&self, settings: &[&Settings]) {
        let before = self.0.load();
        let mut table = Table::default();
        for settings in settings {
            table.add(settings, &before);
        }
        self.0.store(Arc::new(table));
    }

    /// Counts a session under every name it carries. Does not allocate.
    pub(super) fn record(&self, record: &SessionRecord) {
        let table = self.0.load();
        if let Some(listener) = table.listeners.get(&record.listener) {
            listener.record(record);
        }
        let cluster = record.cluster.as_ref();
        if let Some(cluster) = cluster.and_then(|name| table.clusters.get(name)) {
            cluster.record(record);
        }
    }

    /// Counts an exchange under every name it carries. Does not allocate.
    pub(super) fn record_exchange(&self, record: &ExchangeRecord) {
        let table = self.0.load();
        let session = &record.session;
        if let Some(listener) = table.listeners.get(&session.listener) {
            listener.exchanges.record(record);
        }
        let cluster = session.cluster.as_ref();
        if let Some(cluster) = cluster.and_then(|name| table.clusters.get(name)) {
            cluster.record(session);
            cluster.all.exchanges.record(record);
        }
    }

    /// The counters of a listener.
    pub fn listener(&self, name: &str) -> Option<Arc<ListenerTally>> {
        self.0.load().listeners.get(name).cloned()
    }

    /// The counters of a cluster as a whole.
    pub fn cluster(&self, name: &str) -> Option<Arc<ClusterTally>> {
        let table = self.0.load();
        table
            .clusters
            .get(name)
            .map(|cluster| Arc::clone(&cluster.all))
    }

    /// The counters of the sessions that an endpoint served, or was the last one tried for.
    pub fn endpoint(&self, cluster: &str, endpoint: &str) -> Option<Arc<Tally>> {
        let table = self.0.load();
        table
            .clusters
            .get(cluster)?
            .endpoints
            .get(endpoint)
            .cloned()
    }
}

impl Table {
    /// Adds the names of these settings, with what has been counted under them before.
    fn add(&mut self, settings: &Settings, before: &Self) {
        for listener in &settings.listeners {
            keep(&mut self.listeners, &listener.name, &before.listeners);
        }
        for cluster in &settings.clusters {
            let name = &cluster.spec.name;
            let counted = before.clusters.get(name);
            let counters = self.clusters.entry(Arc::clone(name));
            counters
                .or_insert_with(|| ClusterCounters::of(counted))
                .add(cluster, counted);
        }
    }
}

/// Adds a name, with what has been counted under it before.
fn keep<T: Default>(
    tallies: &mut HashMap<Arc<str>, Arc<T>>,
    name: &Arc<str>,
    before: &HashMap<Arc<str>, Arc<T>>,
) {
    let counted = || before.get(name).cloned().unwrap_or_default();
    tallies.entry(Arc::clone(name)).or_insert_with(counted);
}

impl ClusterCounters {
    fn of(before: Option<&Self>) -> Self {
        Self {
            all: before
                .map(|before| Arc::clone(&before.all))
                .unwrap_or_default(),
            endpoints: HashMap::new(),
        }
    }

    fn add(&mut self, cluster: &ClusterSettings, before: Option<&Self>) {
        let none = HashMap::new();
        let before = before.map_or(&none, |before| &before.endpoints);
        for endpoint in &cluster.spec.endpoints {
            keep(&mut self.endpoints, &endpoint.name, before);
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

/// What has been counted for a listener.
#[derive(Debug)]
pub struct ListenerTally {
    /// Its sessions that have ended.
    pub sessions: Tally,
    /// How long they lived.
    pub lives: Histogram,
    /// The exchanges in them, where it has such.
    pub exchanges: ExchangeTally,
}

impl Default for ListenerTally {
    fn default() -> Self {
        Self {
            sessions: Tally::default(),
            lives: Histogram::new(LIFE_BOUNDS),
            exchanges: ExchangeTally::default(),
        }
    }
}

impl ListenerTally {
    fn record(&self, record: &SessionRecord) {
        self.sessions.record(record);
        self.lives.observe(record.total);
    }
}

/// What has been counted for a cluster.
#[derive(Debug)]
pub struct ClusterTally {
    /// Its sessions that have ended.
    pub sessions: Tally,
    /// How long it took to connect those that were.
    pub connects: Histogram,
    /// How long those waited for a free slot that had to.
    pub waits: Histogram,
    /// The exchanges that were meant for it, where it has such.
    pub exchanges: ExchangeTimes,
}

impl Default for ClusterTally {
    fn default() -> Self {
        Self {
            sessions: Tally::default(),
            connects: Histogram::new(WAIT_BOUNDS),
            waits: Histogram::new(WAIT_BOUNDS),
            exchanges: ExchangeTimes::default(),
        }
    }
}

impl ClusterTally {
    fn record(&self, record: &SessionRecord) {
        self.sessions.record(record);
        if let Some(connect) = record.connect {
            self.connects.observe(connect);
        }
        if !record.queued.is_zero() {
            self.waits.observe(record.queued);
        }
    }
}

/// A counter for each reason.
#[derive(Debug)]
struct ByReason([AtomicU64; Reason::ALL.len()]);

impl Default for ByReason {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Reason::ALL.len()])
    }
}

impl ByReason {
    const fn of(&self, reason: Reason) -> &AtomicU64 {
        &self.0[reason as usize]
    }
}

/// How exchanges ended.
#[derive(Debug, Default)]
pub struct ExchangeTally {
    by_class: [AtomicU64; StatusClass::ALL.len()],
    by_reason: ByReason,
}

/// The first digit of an answer's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// The client was sent no answer.
    None,
    /// 101: the protocol was changed.
    Informational,
    /// 2xx.
    Success,
    /// 3xx.
    Redirection,
    /// 4xx.
    ClientError,
    /// 5xx, and whatever an endpoint may make up beyond.
    ServerError,
}

impl StatusClass {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Informational,
        Self::Success,
        Self::Redirection,
        Self::ClientError,
        Self::ServerError,
    ];

    /// As metrics spell it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Informational => "1xx",
            Self::Success => "2xx",
            Self::Redirection => "3xx",
            Self::ClientError => "4xx",
            Self::ServerError => "5xx",
        }
    }

    const fn of(status: Option<u16>) -> Self {
        match status {
            None => Self::None,
            Some(..200) => Self::Informational,
            Some(200..300) => Self::Success,
            Some(300..400) => Self::Redirection,
            Some(400..500) => Self::ClientError,
            Some(500..) => Self::ServerError,
        }
    }
}

impl ExchangeTally {
    fn record(&self, record: &ExchangeRecord) {
        add(&self.by_class[StatusClass::of(record.status) as usize], 1);
        add(self.by_reason.of(record.session.reason), 1);
    }

    /// Exchanges that were answered so.
    pub fn answered(&self, class: StatusClass) -> u64 {
        self.by_class[class as usize].load(Ordering::Relaxed)
    }

    /// Exchanges that ended for this reason.
    pub fn ended(&self, reason: Reason) -> u64 {
        self.by_reason.of(reason).load(Ordering::Relaxed)
    }
}

/// How long exchanges took.
#[derive(Debug)]
pub struct ExchangeTimes {
    /// From the first byte of the request to the first byte of the answer.
    pub first_bytes: Histogram,
    /// From the first byte of the request to the last of the answer.
    pub totals: Histogram,
}

impl Default for ExchangeTimes {
    fn default() -> Self {
        Self {
            first_bytes: Histogram::new(WAIT_BOUNDS),
            totals: Histogram::new(WAIT_BOUNDS),
        }
    }
}

impl ExchangeTimes {
    fn record(&self, record: &ExchangeRecord) {
        if let Some(first_byte) = record.session.first_byte {
            self.first_bytes.observe(first_byte);
        }
        self.totals.observe(record.session.total);
    }
}

/// What has been counted under one name. Sums only: they never go down while the process runs.
#[derive(Debug, Default)]
pub struct Tally {
    by_reason: ByReason,
    attempts: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

impl Tally {
    fn record(&self, record: &SessionRecord) {
        add(self.by_reason.of(record.reason), 1);
        add(&self.attempts, u64::from(record.attempts));
        add(&self.bytes_up, record.bytes_up);
        add(&self.bytes_down, record.bytes_down);
    }

    /// Sessions that ended for this reason.
    pub fn ended(&self, reason: Reason) -> u64 {
        self.by_reason.of(reason).load(Ordering::Relaxed)
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
    use crate::settings::sample::{endpoint, world};

    fn counters() -> Counters {
        Counters::new(&world())
    }

    fn session(endpoint: Option<&str>, reason: Reason) -> SessionRecord {
        SessionRecord {
            listener: Arc::from("front"),
            cluster: Some(Arc::from("web")),
            client: Origin::Ip("192.0.2.7:50312".parse().unwrap()),
            peer: None,
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
        let counters = counters();

        counters.record(&session(Some("a"), Reason::Done));

        let front = counters.listener("front").unwrap();
        let web = counters.cluster("web").unwrap();
        let a = counters.endpoint("web", "a").unwrap();
        for tally in [&front.sessions, &web.sessions, &*a] {
            assert_eq!(tally.ended(Reason::Done), 1);
            assert_eq!(tally.attempts(), 2);
            assert_eq!((tally.bytes_up(), tally.bytes_down()), (10, 100));
        }
        let count = |histogram: &Histogram| histogram.cumulative().last();
        assert_eq!(count(&front.lives), Some((None, 1)));
        assert_eq!(count(&web.connects), Some((None, 0)), "it never was");
        let neighbour = counters.endpoint("web", "b").unwrap();
        assert_eq!(neighbour.ended(Reason::Done), 0);
    }

    /// Every reason has a counter of its own.
    #[test]
    fn reasons_are_counted_apart() {
        let counters = counters();

        for reason in Reason::ALL {
            counters.record(&session(None, *reason));
        }

        let front = counters.listener("front").unwrap();
        for reason in Reason::ALL {
            assert_eq!(front.sessions.ended(*reason), 1, "{reason}");
        }
    }

    /// A session under a name that is in no settings is not counted, and harms nothing.
    #[test]
    fn an_unknown_name_is_left_out() {
        let counters = counters();

        counters.record(&session(Some("gone"), Reason::Done));

        assert_eq!(
            counters
                .cluster("web")
                .unwrap()
                .sessions
                .ended(Reason::Done),
            1
        );
        assert!(counters.endpoint("web", "gone").is_none());
    }

    /// After a reload there are counters for its names and for no others, and what was counted under a name that stays goes on.
    #[test]
    fn counters_follow_the_settings() {
        let counters = counters();
        counters.record(&session(Some("a"), Reason::Done));
        let mut after = world();
        after.clusters[0].spec.endpoints = vec![endpoint("a", 1), endpoint("c", 3)];

        counters.follow(&[&after]);
        counters.record(&session(Some("a"), Reason::Done));
        counters.record(&session(Some("c"), Reason::Done));

        let ended = |name| {
            counters
                .endpoint("web", name)
                .map(|tally| tally.ended(Reason::Done))
        };
        assert_eq!(
            (ended("a"), ended("b"), ended("c")),
            (Some(2), None, Some(1))
        );
        assert_eq!(
            counters
                .cluster("web")
                .unwrap()
                .sessions
                .ended(Reason::Done),
            3
        );
    }

    /// While a reload is under way, both the names before and those after are counted.
    #[test]
    fn counters_may_follow_two_settings_at_once() {
        let counters = counters();
        let mut after = world();
        after.clusters[0].spec.endpoints = vec![endpoint("c", 3)];

        counters.follow(&[&world(), &after]);

        for name in ["a", "b", "c"] {
            assert!(counters.endpoint("web", name).is_some(), "{name}");
        }
    }
}
