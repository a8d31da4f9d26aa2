//! The way back: settings as a configuration file in which nothing is left to a default.
//!
//! What this prints can be read again, and means the same, but for passwords, which are not printed. Timeouts are printed where they apply, so there is no `[defaults]`.

mod health;
mod http;
mod pool;
mod tls;

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use evenkeel_core::units::{Address, Weight};
use evenkeel_core::{Balance, EjectionPolicy, EndpointSpec};
use evenkeel_proxy::Sender;
use evenkeel_proxy::discovery::Question;
use evenkeel_proxy::settings::{
    self, AccessLogSettings, AdminSettings, ClusterSettings, DnsSettings, FailureReply,
    ListenerSettings, LogDestination, NamedEndpoints, ProcessSettings, RouteSettings,
};

use super::Loaded;
use super::units::{print_duration, print_percent, print_permissions, print_size};
use super::words::{BalanceName, HeaderName, LogLevel, Protocol, Words};

/// The complete configuration as TOML.
pub fn dump(loaded: &Loaded) -> String {
    let settings = &loaded.settings;
    let mut tables = vec![process(&settings.process)];
    tables.extend(settings.admin.as_ref().map(admin));
    tables.push(log(&settings.access_log, loaded.log_level));
    tables.push(dns(&settings.dns));
    tables.extend(settings.listeners.iter().map(listener));
    tables.extend(settings.clusters.iter().map(cluster));
    tables
        .iter()
        .map(TableText::finish)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A table with a header, one line for each key.
struct TableText(String);

impl TableText {
    fn new(header: &str) -> Self {
        Self(format!("[{header}]\n"))
    }

    /// `value` is TOML already.
    fn line(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.0.push_str(&format!("{key} = {value}\n"));
        self
    }

    fn optional(self, key: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.line(key, value),
            None => self,
        }
    }

    fn finish(&self) -> String {
        self.0.clone()
    }
}

fn process(process: &ProcessSettings) -> TableText {
    TableText::new("process")
        .line("workers", process.workers)
        .line("splice_pipes_max", process.splice_pipes_max)
        .optional("max_connections", most(process.max_connections))
        .line("ready_delay", duration(process.ready_delay))
        .line("stop_deadline", duration(process.stop_deadline))
        .line(
            "control_socket",
            process.control_socket.as_deref().map_or_else(off, path),
        )
        .line(
            "state_file",
            process.state_file.as_deref().map_or_else(off, path),
        )
}

fn admin(admin: &AdminSettings) -> TableText {
    TableText::new("admin").line("bind", quoted(&admin.bind.to_string()))
}

fn log(access: &AccessLogSettings, level: LogLevel) -> TableText {
    let destination = match &access.destination {
        LogDestination::Off => off(),
        LogDestination::Stdout => quoted("stdout"),
        LogDestination::Stderr => quoted("stderr"),
        LogDestination::File(file) => path(file),
    };
    TableText::new("log")
        .line("access", destination)
        .line("access_format", word(access.format))
        .line("level", word(level))
}

/// Without name servers the key is left out: then those of the system are asked.
fn dns(dns: &DnsSettings) -> TableText {
    let servers = dns.servers.iter().map(|server| quoted(&server.to_string()));
    let servers = format!("[{}]", servers.collect::<Vec<_>>().join(", "));
    TableText::new("dns")
        .optional("servers", Some(servers).filter(|_| !dns.servers.is_empty()))
        .line("timeout", duration(dns.timeout))
        .line("refresh_min", duration(dns.refresh_min))
        .line("refresh_max", duration(dns.refresh_max))
}

fn listener(listener: &ListenerSettings) -> TableText {
    let is_tcp = spoken(&listener.protocol) == Protocol::Tcp;
    TableText::new(&format!("listener.{}", listener.name))
        .line("bind", quoted(&listener.bind.to_string()))
        .optional("permissions", permissions(listener))
        .line("protocol", word(spoken(&listener.protocol)))
        .optional("to", listener.to.as_deref().map(quoted))
        .optional("routes", routes(listener))
        .optional("http", http_of(&listener.protocol))
        .optional("max_connections", most(listener.max_connections))
        .line("timeouts", timeouts(listener))
        .optional(
            "proxy_protocol",
            listener.proxy_protocol.as_deref().map(senders),
        )
        .optional("splice", is_tcp.then(|| word(listener.splice)))
        .optional(
            "failure_reply",
            listener.failure_reply.as_ref().map(failure_reply),
        )
        .optional("empty_reply", listener.empty_reply.as_deref().map(bytes))
}

/// Those that count while bytes move are a TCP listener's: requests have others.
fn timeouts(listener: &ListenerSettings) -> String {
    let timeouts = &listener.timeouts;
    let moving = [
        ("idle", duration_or_off(timeouts.idle)),
        ("half_closed", duration_or_off(timeouts.half_closed)),
    ];
    let all = [
        ("preread", duration(timeouts.preread)),
        ("dead_peer", duration_or_off(timeouts.dead_peer)),
    ];
    match spoken(&listener.protocol) {
        Protocol::Tcp => inline(&[&moving[..], &all].concat()),
        Protocol::Http => inline(&all),
    }
}

const fn spoken(protocol: &settings::Protocol) -> Protocol {
    match protocol {
        settings::Protocol::Tcp => Protocol::Tcp,
        settings::Protocol::Http(_) => Protocol::Http,
    }
}

fn http_of(protocol: &settings::Protocol) -> Option<String> {
    match protocol {
        settings::Protocol::Tcp => None,
        settings::Protocol::Http(settings) => Some(http::http(settings)),
    }
}

fn routes(listener: &ListenerSettings) -> Option<String> {
    let rule = |route: &RouteSettings| {
        let rule = [
            ("sni", quoted(&route.server_name.to_string())),
            ("to", quoted(&route.to)),
        ];
        format!("  {},\n", inline(&rule))
    };
    let sessions = listener.routes.iter().map(rule);
    let requests = listener.protocol.request_routes().iter().map(http::route);
    let lines: String = sessions.chain(requests).collect();
    (!lines.is_empty()).then(|| format!("[\n{lines}]"))
}

fn senders(senders: &[Sender]) -> String {
    inline(&[("from", sender_list(senders))])
}

fn sender_list(senders: &[Sender]) -> String {
    let quoted: Vec<String> = senders
        .iter()
        .map(|sender| quoted(&sender.to_string()))
        .collect();
    format!("[{}]", quoted.join(", "))
}

/// Refused for anything but a Unix socket, so printed only there.
fn permissions(listener: &ListenerSettings) -> Option<String> {
    match listener.bind {
        Address::Unix(_) => Some(quoted(&print_permissions(listener.permissions))),
        Address::Ip(_) => None,
    }
}

fn failure_reply(reply: &FailureReply) -> String {
    match reply {
        FailureReply::MysqlError => quoted("mysql-error"),
        FailureReply::Text(text) => inline(&[("text", bytes(text))]),
    }
}

fn cluster(cluster: &ClusterSettings) -> TableText {
    let spec = &cluster.spec;
    let timeouts = inline(&[
        ("connect", duration(cluster.connect_timeout)),
        ("queue", duration(cluster.queue_timeout)),
        ("first_byte", duration_or_off(cluster.first_byte_timeout)),
    ]);
    let trials = inline(&[
        ("every", duration(spec.trials.every)),
        ("every_max", duration(spec.trials.every_max)),
    ]);
    balance(TableText::new(&format!("cluster.{}", spec.name)), cluster)
        .line("endpoints", endpoints(cluster))
        .line("queue_max", spec.queue_max)
        .line("attempts", cluster.attempts)
        .line(
            "replay",
            if cluster.replay == 0 {
                off()
            } else {
                quoted(&print_size(cluster.replay as u64))
            },
        )
        .line(
            "proxy_protocol",
            word(HeaderName::from(cluster.proxy_protocol)),
        )
        .line("pool", pool::pool(&cluster.pool))
        .line(
            "slow_start",
            duration_or_off(Some(spec.slow_start).filter(|slow_start| !slow_start.is_zero())),
        )
        .line(
            "ejection",
            spec.ejection.as_ref().map_or_else(off, ejection),
        )
        .line("trials", trials)
        .optional("health", health(cluster))
        .optional(
            "on_down",
            cluster.probe.as_ref().map(|_| word(cluster.on_down)),
        )
        .line("when_none", word(spec.when_none))
        .line("failback", word(spec.failback))
        .line("timeouts", timeouts)
}

/// The thresholds are the core's, the rest is the prober's.
fn health(cluster: &ClusterSettings) -> Option<String> {
    let (probe, policy) = (cluster.probe.as_ref()?, cluster.spec.health?);
    Some(health::health(probe, policy))
}

/// `key` and `bounded_load` are refused where the balancer does not take them, so they are printed only where it does.
fn balance(table: TableText, cluster: &ClusterSettings) -> TableText {
    let (name, policy) = match cluster.spec.balance {
        Balance::RoundRobin => (BalanceName::RoundRobin, None),
        Balance::Random => (BalanceName::Random, None),
        Balance::TwoChoices => (BalanceName::TwoChoices, None),
        Balance::LeastConnections => (BalanceName::LeastConnections, None),
        Balance::SourceHash(policy) => (BalanceName::SourceHash, Some(policy)),
        Balance::Hash(policy) => (BalanceName::Hash, Some(policy)),
    };
    let bounded_load = policy.map(|policy| policy.bounded_load_percent.map_or_else(off, percent));
    table
        .line("balance", word(name))
        .optional("key", cluster.key.map(word))
        .optional("bounded_load", bounded_load)
}

/// In the order of the file.
fn endpoints(cluster: &ClusterSettings) -> String {
    let mut items: Vec<String> = cluster.spec.endpoints.iter().map(endpoint).collect();
    for named in cluster.names.iter().rev() {
        items.insert(named.position.min(items.len()), named_endpoints(named));
    }
    let lines: String = items.iter().map(|item| format!("  {item},\n")).collect();
    format!("[\n{lines}]")
}

/// Where the name is the default it is left out: two ports of one host may share it, and no two names that are written.
fn named_endpoints(named: &NamedEndpoints) -> String {
    let (place, default) = match &named.question {
        Question::Host { name, port, .. } => (("address", format!("{name}:{port}")), name),
        Question::Service { name, .. } => (("srv", name.to_string()), name),
    };
    let mut keys = vec![
        (place.0, quoted(&place.1)),
        ("family", word(named.question.family())),
        ("backup", named.backup.to_string()),
        ("disabled", named.disabled.to_string()),
    ];
    if &*named.label != default.as_str() {
        keys.insert(0, ("name", quoted(&named.label)));
    }
    keys.extend(named.weight.map(|weight| ("weight", weight.to_string())));
    let most = named.max_connections;
    keys.extend(most.map(|most| ("max_connections", most.to_string())));
    inline(&keys)
}

fn endpoint(endpoint: &EndpointSpec) -> String {
    let mut keys = vec![
        ("name", quoted(&endpoint.name)),
        ("address", quoted(&endpoint.address.to_string())),
        ("weight", endpoint.weight.to_string()),
        ("backup", endpoint.backup.to_string()),
        ("disabled", endpoint.disabled.to_string()),
    ];
    keys.extend(most(endpoint.max_connections).map(|most| ("max_connections", most)));
    inline(&keys)
}

/// One endpoint as a person would write it: what is not the default.
pub(crate) fn endpoint_line(endpoint: &EndpointSpec) -> String {
    let address = endpoint.address.to_string();
    let named = *endpoint.name != *address;
    let keys = [
        named.then(|| ("name", quoted(&endpoint.name))),
        Some(("address", quoted(&address))),
        (endpoint.weight != Weight::ONE).then(|| ("weight", endpoint.weight.to_string())),
        endpoint.backup.then(|| ("backup", true.to_string())),
        endpoint.disabled.then(|| ("disabled", true.to_string())),
        endpoint
            .max_connections
            .map(|most| ("max_connections", most.to_string())),
    ];
    inline(&keys.into_iter().flatten().collect::<Vec<_>>())
}

fn ejection(policy: &EjectionPolicy) -> String {
    inline(&[
        ("failures", policy.failures.to_string()),
        ("base", duration(policy.base)),
        ("max", duration(policy.max)),
        ("share_max", percent(policy.share_max_percent)),
    ])
}

fn most(connections: Option<NonZeroU32>) -> Option<String> {
    connections.map(|most| most.to_string())
}

fn inline(keys: &[(&str, String)]) -> String {
    let pairs: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn off() -> String {
    quoted("off")
}

fn word(value: impl Words) -> String {
    quoted(value.word())
}

fn duration(value: Duration) -> String {
    quoted(&print_duration(value))
}

fn duration_or_off(value: Option<Duration>) -> String {
    value.map_or_else(off, duration)
}

fn percent(value: u32) -> String {
    quoted(&print_percent(value))
}

fn path(value: &Path) -> String {
    quoted(&value.to_string_lossy())
}

/// Replies come from a TOML text, so they are UTF-8.
fn bytes(value: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(value))
}

/// As a basic string in one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}
