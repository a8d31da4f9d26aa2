//! From the raw form to settings: every default is filled in here, and nowhere else.
//!
//! Runs after [`check`](super::check); `None` means that something required is missing, which has been reported.

mod health;
mod http;
mod pool;
mod tls;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Weight;
use evenkeel_core::{Balance, ClusterSpec, EjectionPolicy, EndpointSpec, HashPolicy, TrialPolicy};
use evenkeel_proxy::discovery::{Family, Question};
use evenkeel_proxy::settings::{
    AccessLogSettings, AdminSettings, ClusterSettings, DnsSettings, FailureReply, ListenerSettings,
    ListenerTimeouts, LogDestination, LogFormat, NamedEndpoints, OnDown, ProcessSettings, Protocol,
    RouteSettings, Settings, Splice,
};

use super::diagnostics::Located;
use super::endpoint_address::EndpointAddress;
use super::file::{
    Cluster, Dns, Ejection, EjectionKeys, Endpoint, File, Listener, Log, Pool, Process, Reply,
    Rule, Timeouts, Trials,
};
use super::read::Choice;
use super::surroundings::Surroundings;
use super::values::WordOrPath;
use super::words::{self, BalanceName, HeaderName, LogLevel};

pub(super) use health::probe_every;

/// A quarter of a GiB at most lies in that many, behind readers that have all stopped.
const SPLICE_PIPES_MAX: usize = 256;
/// The process's own user and group.
const PERMISSIONS: u32 = 0o660;
const READY_DELAY: Duration = Duration::ZERO;
const STOP_DEADLINE: Duration = Duration::from_secs(25);
const CONNECT: Duration = Duration::from_secs(2);
const QUEUE: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(3600);
const HALF_CLOSED: Duration = Duration::from_secs(300);
const PREREAD: Duration = Duration::from_secs(3);
const DEAD_PEER: Duration = Duration::from_secs(300);
const QUEUE_MAX: usize = 1024;
const ATTEMPTS: usize = 3;

/// What the program starts from, with the level of its own log, which is no business of the data path.
pub(super) fn build(
    file: &File,
    folder: &Path,
    surroundings: &Surroundings,
) -> Option<(Settings, LogLevel)> {
    let settings = Settings {
        process: process(&file.process, folder, surroundings),
        access_log: access_log(&file.log, folder),
        admin: file.admin.bind.as_ref().map(|bind| AdminSettings {
            bind: bind.value.clone(),
        }),
        dns: dns(&file.dns),
        listeners: file
            .listeners
            .iter()
            .map(|written| listener(written, &file.timeouts))
            .collect::<Option<_>>()?,
        clusters: file
            .clusters
            .iter()
            .map(|written| cluster(written, &file.timeouts, folder))
            .collect::<Option<_>>()?,
    };
    Some((settings, or(&file.log.level, LogLevel::default())))
}

fn process(written: &Process, folder: &Path, surroundings: &Surroundings) -> ProcessSettings {
    ProcessSettings {
        workers: count(
            &written.workers,
            surroundings.cores.clamp(1, ProcessSettings::WORKERS_MAX),
        ),
        splice_pipes_max: count(&written.splice_pipes_max, SPLICE_PIPES_MAX),
        max_connections: most(&written.max_connections),
        ready_delay: limit(&[&written.ready_delay], None).unwrap_or(READY_DELAY),
        stop_deadline: limit(&[&written.stop_deadline], Some(STOP_DEADLINE))
            .unwrap_or(STOP_DEADLINE),
        control_socket: control_socket(written, folder, surroundings),
        state_file: state_file(written, folder),
    }
}

/// `None` if there is none.
pub(super) fn state_file(written: &Process, folder: &Path) -> Option<PathBuf> {
    match written.state_file.as_ref().map(|file| &file.value) {
        None | Some(WordOrPath::Word(_)) => None,
        Some(WordOrPath::Path(path)) => Some(within(folder, path)),
    }
}

/// `None` if it is turned off.
pub(super) fn control_socket(
    written: &Process,
    folder: &Path,
    surroundings: &Surroundings,
) -> Option<PathBuf> {
    match written.control_socket.as_ref().map(|socket| &socket.value) {
        None => Some(surroundings.control_socket()),
        Some(WordOrPath::Word(_)) => None,
        Some(WordOrPath::Path(path)) => Some(within(folder, path)),
    }
}

/// Without the `.` parts, which say nothing; a `..` stays, because a link may lie before it.
fn within(folder: &Path, path: &str) -> PathBuf {
    folder.join(path).components().collect()
}

fn access_log(written: &Log, folder: &Path) -> AccessLogSettings {
    AccessLogSettings {
        destination: written
            .access
            .as_ref()
            .map_or(LogDestination::Stdout, |access| {
                destination(&access.value, folder)
            }),
        format: or(&written.access_format, LogFormat::Text),
    }
}

fn destination(written: &WordOrPath, folder: &Path) -> LogDestination {
    match written {
        WordOrPath::Word("off") => LogDestination::Off,
        WordOrPath::Word("stderr") => LogDestination::Stderr,
        WordOrPath::Word(_) => LogDestination::Stdout,
        WordOrPath::Path(path) => LogDestination::File(within(folder, path)),
    }
}

/// What is not written is the default of the settings.
pub(super) fn dns(written: &Dns) -> DnsSettings {
    let default = DnsSettings::default();
    let servers = written.servers.iter().flat_map(|servers| &servers.value);
    DnsSettings {
        servers: servers.map(|server| server.value).collect(),
        timeout: limit(&[&written.timeout], None).unwrap_or(default.timeout),
        refresh_min: limit(&[&written.refresh_min], None).unwrap_or(default.refresh_min),
        refresh_max: limit(&[&written.refresh_max], None).unwrap_or(default.refresh_max),
    }
}

fn listener(written: &Listener, defaults: &Timeouts) -> Option<ListenerSettings> {
    Some(ListenerSettings {
        name: name(&written.name),
        bind: written.bind.as_ref()?.value.clone(),
        permissions: or(&written.permissions, PERMISSIONS),
        to: written.to.as_ref().map(name),
        protocol: protocol(written)?,
        routes: routes(written)?,
        max_connections: most(&written.max_connections),
        timeouts: listener_timeouts(&written.timeouts, defaults),
        proxy_protocol: written
            .proxy_protocol
            .as_ref()
            .map(|senders| Arc::from(senders.value.as_slice())),
        splice: or(&written.splice, Splice::default()),
        failure_reply: written
            .failure_reply
            .as_ref()
            .map(|reply| failure_reply(&reply.value)),
        empty_reply: written
            .empty_reply
            .as_ref()
            .map(|text| Arc::from(text.value.as_bytes())),
    })
}

fn protocol(written: &Listener) -> Option<Protocol> {
    Some(match written.spoken() {
        words::Protocol::Tcp => Protocol::Tcp,
        words::Protocol::Http => Protocol::Http(Arc::new(http::settings(written)?)),
    })
}

/// Those for sessions; requests have theirs with their protocol.
fn routes(written: &Listener) -> Option<Vec<RouteSettings>> {
    match written.spoken() {
        words::Protocol::Tcp => written.rules().iter().map(rule).collect(),
        words::Protocol::Http => Some(Vec::new()),
    }
}

fn rule(written: &Rule) -> Option<RouteSettings> {
    Some(RouteSettings {
        server_name: written.sni.as_ref()?.value.clone(),
        to: name(written.to.as_ref()?),
    })
}

fn listener_timeouts(own: &Timeouts, defaults: &Timeouts) -> ListenerTimeouts {
    ListenerTimeouts {
        idle: limit(&[&own.idle, &defaults.idle], Some(IDLE)),
        half_closed: limit(
            &[&own.half_closed, &defaults.half_closed],
            Some(HALF_CLOSED),
        ),
        preread: limit(&[&own.preread, &defaults.preread], None).unwrap_or(PREREAD),
        dead_peer: limit(&[&own.dead_peer, &defaults.dead_peer], Some(DEAD_PEER)),
    }
}

fn failure_reply(written: &Reply) -> FailureReply {
    match written {
        Reply::MysqlError => FailureReply::MysqlError,
        Reply::Text(text) => FailureReply::Text(Arc::from(text.as_bytes())),
    }
}

fn cluster(written: &Cluster, defaults: &Timeouts, folder: &Path) -> Option<ClusterSettings> {
    let own = &written.timeouts;
    let probe = match &written.health {
        Some(health) => Some(Arc::new(health::probe(health, folder)?)),
        None => None,
    };
    Some(ClusterSettings {
        spec: spec(written)?,
        probe,
        on_down: or(&written.on_down, OnDown::default()),
        names: names(written)?,
        key: match &written.key {
            Choice::Made(key) => Some(key.value),
            Choice::Absent | Choice::Unreadable => None,
        },
        connect_timeout: limit(&[&own.connect, &defaults.connect], None).unwrap_or(CONNECT),
        queue_timeout: limit(&[&own.queue, &defaults.queue], None).unwrap_or(QUEUE),
        first_byte_timeout: limit(&[&own.first_byte, &defaults.first_byte], None),
        attempts: count(&written.attempts, ATTEMPTS),
        replay: limit(&[&written.replay], None).map_or(0, whole),
        proxy_protocol: or(&written.proxy_protocol, HeaderName::Off).into(),
        pool: pool::policy(&written.pool),
    })
}

fn spec(written: &Cluster) -> Option<ClusterSpec> {
    Some(ClusterSpec {
        name: name(&written.name),
        endpoints: written
            .endpoints()
            .iter()
            .filter(|written| written.resolved_at().is_none())
            .map(|written_endpoint| endpoint(written_endpoint, &written.pool))
            .collect::<Option<_>>()?,
        balance: balance(written)?,
        trials: trial_policy(&written.trials),
        ejection: match &written.ejection {
            None => Some(EjectionPolicy::default()),
            Some(Ejection::Off) => None,
            Some(Ejection::On(keys)) => Some(ejection_policy(keys)),
        },
        slow_start: limit(&[&written.slow_start], None).unwrap_or(Duration::ZERO),
        queue_max: count(&written.queue_max, QUEUE_MAX),
        health: written.health.as_ref().map(health::policy),
        when_none: or(&written.when_none, evenkeel_core::WhenNone::default()),
        failback: or(&written.failback, evenkeel_core::Failback::default()),
        awaited: evenkeel_core::Awaited::default(),
    })
}

fn endpoint(written: &Endpoint, pool: &Pool) -> Option<EndpointSpec> {
    let EndpointAddress::Fixed(address) = &written.address.as_ref()?.value else {
        return None;
    };
    Some(EndpointSpec {
        name: Arc::from(written.effective_name()?),
        address: address.clone(),
        weight: weight(written).unwrap_or(Weight::ONE),
        backup: or(&written.backup, false),
        disabled: or(&written.disabled, false),
        max_connections: most_in_flight(written, pool),
    })
}

/// Its own limit, or that of all endpoints of its cluster.
fn most_in_flight(written: &Endpoint, pool: &Pool) -> Option<NonZeroU32> {
    most(&written.max_connections).or_else(|| most(&pool.max_in_flight))
}

/// Those endpoints that are names, with the number of the others before each.
fn names(written: &Cluster) -> Option<Vec<NamedEndpoints>> {
    let mut position = 0;
    let mut names = Vec::new();
    for endpoint in written.endpoints() {
        match endpoint.resolved_at() {
            None => position += 1,
            Some(_) => names.push(named(endpoint, &written.pool, position)?),
        }
    }
    Some(names)
}

fn named(written: &Endpoint, pool: &Pool, position: usize) -> Option<NamedEndpoints> {
    let label = written.name.as_ref().map(|name| name.value.clone());
    Some(NamedEndpoints {
        label: label.or_else(|| default_name(written))?.into(),
        question: question(written)?,
        position,
        weight: weight(written),
        backup: or(&written.backup, false),
        disabled: or(&written.disabled, false),
        max_connections: most_in_flight(written, pool),
    })
}

fn question(written: &Endpoint) -> Option<Question> {
    let family = or(&written.family, Family::default());
    if let Some(service) = &written.srv {
        let name = service.value.clone();
        return Some(Question::Service { name, family });
    }
    match &written.address.as_ref()?.value {
        EndpointAddress::Fixed(_) => None,
        EndpointAddress::Host(name, port) => Some(Question::Host {
            name: name.clone(),
            port: *port,
            family,
        }),
    }
}

/// What an endpoint is called by if it has no `name`.
pub(super) fn default_name(written: &Endpoint) -> Option<String> {
    if let Some(service) = &written.srv {
        return Some(service.value.to_string());
    }
    match &written.address.as_ref()?.value {
        EndpointAddress::Fixed(address) => Some(address.to_string()),
        EndpointAddress::Host(name, _) => Some(name.to_string()),
    }
}

fn weight(written: &Endpoint) -> Option<Weight> {
    let weight = written.weight.as_ref()?;
    Some(Weight::new(narrow(weight.value)).unwrap_or(Weight::MAX))
}

fn balance(written: &Cluster) -> Option<Balance> {
    let policy = HashPolicy {
        bounded_load_percent: limit(&[&written.bounded_load], None).map(narrow),
    };
    Some(match written.balance_name()? {
        BalanceName::RoundRobin => Balance::RoundRobin,
        BalanceName::Random => Balance::Random,
        BalanceName::TwoChoices => Balance::TwoChoices,
        BalanceName::LeastConnections => Balance::LeastConnections,
        BalanceName::SourceHash => Balance::SourceHash(policy),
        BalanceName::Hash => Balance::Hash(policy),
    })
}

/// What is not written is the core's default.
pub(super) fn ejection_policy(written: &EjectionKeys) -> EjectionPolicy {
    let default = EjectionPolicy::default();
    EjectionPolicy {
        failures: written
            .failures
            .as_ref()
            .map_or(default.failures, |failures| narrow(failures.value)),
        base: limit(&[&written.base], None).unwrap_or(default.base),
        max: limit(&[&written.max], None).unwrap_or(default.max),
        share_max_percent: limit(&[&written.share_max], None)
            .map_or(default.share_max_percent, narrow),
    }
}

/// What is not written is the core's default.
pub(super) fn trial_policy(written: &Trials) -> TrialPolicy {
    let default = TrialPolicy::default();
    TrialPolicy {
        every: limit(&[&written.every], None).unwrap_or(default.every),
        every_max: limit(&[&written.every_max], None).unwrap_or(default.every_max),
    }
}

fn name(written: &Located<String>) -> Arc<str> {
    Arc::from(written.value.as_str())
}

fn or<T: Copy>(written: &Option<Located<T>>, default: T) -> T {
    written.as_ref().map_or(default, |located| located.value)
}

fn count(written: &Option<Located<u64>>, default: usize) -> usize {
    written
        .as_ref()
        .map_or(default, |located| whole(located.value))
}

/// A limit on connections; the table of keys keeps it above 0.
fn most(written: &Option<Located<u64>>) -> Option<NonZeroU32> {
    let written = written.as_ref()?;
    NonZeroU32::new(narrow(written.value))
}

/// The first that is written counts, `"off"` as well as a value.
fn limit<T: Copy>(written: &[&Option<Located<Option<T>>>], default: Option<T>) -> Option<T> {
    let first = written.iter().find_map(|candidate| candidate.as_ref());
    first.map_or(default, |located| located.value)
}

/// The table of keys keeps every number below both limits; a number that is not becomes the largest.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
