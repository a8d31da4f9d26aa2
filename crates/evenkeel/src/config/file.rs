//! The raw form: one file as the user wrote it, with nothing filled in and nothing looked up.
//!
//! A value that is not there was not written, or was wrong and has been reported. [`build`](super::build) turns this into
//! settings.

mod health;
mod http;
mod pool;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_core::{Failback, WhenNone};
use evenkeel_proxy::discovery::{DnsName, Family};
use evenkeel_proxy::settings::{KeySource, LogFormat, OnDown, Splice};
use evenkeel_proxy::{HostPattern, Sender};
use toml::de::DeTable;

use super::diagnostics::{FileId, Located, Problems, Span};
use super::endpoint_address::EndpointAddress;
use super::keys::Table;
use super::read::{Choice, Item, NamedTable, TableReader, WordOrTable};
use super::tables::{INCLUDED, ROOT};
use super::values::WordOrPath;
use super::words::{BalanceName, HeaderName, LogLevel, Protocol};

pub(super) use health::Health;
pub(super) use http::Http;
pub(super) use pool::Pool;
pub(super) use tls::EndpointTls;

/// A value that may be missing.
type Maybe<T> = Option<Located<T>>;
/// A limit that may be missing, and may be `"off"`.
type MaybeLimit<T> = Option<Located<Option<T>>>;

/// What a file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Everything.
    Main,
    /// Listeners and clusters.
    Included,
}

/// One file, or several merged into the first.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) include: Vec<Located<String>>,
    pub(super) process: Process,
    pub(super) admin: Admin,
    pub(super) log: Log,
    pub(super) dns: Dns,
    pub(super) timeouts: Timeouts,
    pub(super) listeners: Vec<Listener>,
    pub(super) clusters: Vec<Cluster>,
}

/// `[process]`.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) workers: Maybe<u64>,
    pub(super) splice_pipes_max: Maybe<u64>,
    pub(super) max_connections: Maybe<u64>,
    pub(super) ready_delay: MaybeLimit<Duration>,
    pub(super) stop_deadline: MaybeLimit<Duration>,
    pub(super) control_socket: Maybe<WordOrPath>,
    pub(super) state_file: Maybe<WordOrPath>,
}

/// `[admin]`.
#[derive(Debug, Default)]
pub(super) struct Admin {
    pub(super) bind: Maybe<Address>,
}

/// `[log]`.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) access: Maybe<WordOrPath>,
    pub(super) access_format: Maybe<LogFormat>,
    pub(super) level: Maybe<LogLevel>,
}

/// `[dns]`.
#[derive(Debug, Default)]
pub(super) struct Dns {
    pub(super) servers: Maybe<Vec<Located<SocketAddr>>>,
    pub(super) timeout: MaybeLimit<Duration>,
    pub(super) refresh_min: MaybeLimit<Duration>,
    pub(super) refresh_max: MaybeLimit<Duration>,
}

/// `timeouts`, wherever it is: a listener and a cluster each have their part of it.
#[derive(Debug, Default)]
pub(super) struct Timeouts {
    pub(super) connect: MaybeLimit<Duration>,
    pub(super) queue: MaybeLimit<Duration>,
    pub(super) first_byte: MaybeLimit<Duration>,
    pub(super) idle: MaybeLimit<Duration>,
    pub(super) half_closed: MaybeLimit<Duration>,
    pub(super) preread: MaybeLimit<Duration>,
    pub(super) dead_peer: MaybeLimit<Duration>,
}

/// `[listener.NAME]`.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) name: Located<String>,
    pub(super) bind: Maybe<Address>,
    pub(super) permissions: Maybe<u32>,
    pub(super) to: Maybe<String>,
    pub(super) protocol: Maybe<Protocol>,
    pub(super) routes: Maybe<Vec<Rule>>,
    pub(super) http: Option<Http>,
    pub(super) max_connections: Maybe<u64>,
    pub(super) timeouts: Timeouts,
    pub(super) proxy_protocol: Maybe<Vec<Sender>>,
    pub(super) splice: Maybe<Splice>,
    pub(super) failure_reply: Maybe<Reply>,
    pub(super) empty_reply: Maybe<String>,
}

/// An item of `routes`.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) at: Span,
    pub(super) sni: Maybe<HostPattern>,
    pub(super) host: Maybe<HostPattern>,
    pub(super) path: Maybe<String>,
    pub(super) to: Maybe<String>,
}

/// `failure_reply`.
#[derive(Debug)]
pub(super) enum Reply {
    MysqlError,
    Text(String),
}

/// `[cluster.NAME]`.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) name: Located<String>,
    pub(super) balance: Choice<BalanceName>,
    pub(super) key: Choice<KeySource>,
    pub(super) bounded_load: MaybeLimit<u64>,
    /// Those that could be read.
    pub(super) endpoints: Maybe<Vec<Endpoint>>,
    pub(super) queue_max: Maybe<u64>,
    pub(super) attempts: Maybe<u64>,
    pub(super) replay: MaybeLimit<u64>,
    pub(super) proxy_protocol: Maybe<HeaderName>,
    pub(super) pool: Pool,
    pub(super) slow_start: MaybeLimit<Duration>,
    pub(super) ejection: Option<Ejection>,
    pub(super) trials: Trials,
    pub(super) health: Option<Health>,
    pub(super) on_down: Maybe<OnDown>,
    pub(super) when_none: Maybe<WhenNone>,
    pub(super) failback: Maybe<Failback>,
    pub(super) timeouts: Timeouts,
}

/// An item of `endpoints`.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) at: Span,
    pub(super) name: Maybe<String>,
    pub(super) address: Maybe<EndpointAddress>,
    pub(super) srv: Maybe<DnsName>,
    pub(super) family: Maybe<Family>,
    pub(super) weight: Maybe<u64>,
    pub(super) backup: Maybe<bool>,
    pub(super) disabled: Maybe<bool>,
    pub(super) max_connections: Maybe<u64>,
}

/// `ejection`.
#[derive(Debug)]
pub(super) enum Ejection {
    Off,
    On(EjectionKeys),
}

/// `ejection` as a table.
#[derive(Debug, Default)]
pub(super) struct EjectionKeys {
    pub(super) failures: Maybe<u64>,
    pub(super) base: MaybeLimit<Duration>,
    pub(super) max: MaybeLimit<Duration>,
    pub(super) share_max: MaybeLimit<u64>,
}

/// `trials`.
#[derive(Debug, Default)]
pub(super) struct Trials {
    pub(super) every: MaybeLimit<Duration>,
    pub(super) every_max: MaybeLimit<Duration>,
}

impl File {
    /// Reads a parsed document; whatever is wrong with it goes to `problems`.
    pub(super) fn read(
        document: &DeTable<'_>,
        role: Role,
        file: FileId,
        problems: &Problems,
    ) -> Self {
        let top = Span { file, bytes: 0..0 };
        let root = TableReader::open(role.table(), document, "the file".to_owned(), top, problems);
        let mut read = Self {
            listeners: root
                .named("listener")
                .into_iter()
                .map(Listener::read)
                .collect(),
            clusters: root
                .named("cluster")
                .into_iter()
                .map(Cluster::read)
                .collect(),
            ..Self::default()
        };
        if role == Role::Main {
            read.include = root.strings("include", "an included path");
            read.process = root
                .table("process")
                .map(|table| Process::read(&table))
                .unwrap_or_default();
            read.admin = root
                .table("admin")
                .map(|table| Admin::read(&table))
                .unwrap_or_default();
            read.log = root
                .table("log")
                .map(|table| Log::read(&table))
                .unwrap_or_default();
            read.dns = root
                .table("dns")
                .map(|table| Dns::read(&table))
                .unwrap_or_default();
            let defaults = root.table("defaults");
            read.timeouts = defaults
                .and_then(|table| table.table("timeouts"))
                .map(|table| Timeouts::read(&table))
                .unwrap_or_default();
        }
        read
    }

    /// Adds what an included file holds.
    pub(super) fn merge(&mut self, included: Self) {
        self.listeners.extend(included.listeners);
        self.clusters.extend(included.clusters);
    }
}

impl Role {
    fn table(self) -> &'static Table {
        match self {
            Self::Main => &ROOT,
            Self::Included => &INCLUDED,
        }
    }
}

impl Process {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            workers: table.whole("workers"),
            splice_pipes_max: table.whole("splice_pipes_max"),
            max_connections: table.whole("max_connections"),
            ready_delay: table.duration("ready_delay"),
            stop_deadline: table.duration("stop_deadline"),
            control_socket: table.word_or_path("control_socket"),
            state_file: table.word_or_path("state_file"),
        }
    }
}

impl Admin {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            bind: table.address("bind"),
        }
    }
}

impl Log {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            access: table.word_or_path("access"),
            access_format: table.word("access_format"),
            level: table.word("level"),
        }
    }
}

impl Dns {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            servers: table.name_servers("servers"),
            timeout: table.duration("timeout"),
            refresh_min: table.duration("refresh_min"),
            refresh_max: table.duration("refresh_max"),
        }
    }
}

impl Timeouts {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            connect: table.duration_if_known("connect"),
            queue: table.duration_if_known("queue"),
            first_byte: table.duration_if_known("first_byte"),
            idle: table.duration_if_known("idle"),
            half_closed: table.duration_if_known("half_closed"),
            preread: table.duration_if_known("preread"),
            dead_peer: table.duration_if_known("dead_peer"),
        }
    }

    fn inside(table: &TableReader<'_>) -> Self {
        table
            .table("timeouts")
            .map(|timeouts| Self::read(&timeouts))
            .unwrap_or_default()
    }
}

impl Listener {
    fn read(NamedTable { name, table }: NamedTable<'_>) -> Self {
        table.require_either("to", "routes");
        Self {
            name,
            bind: table.address("bind"),
            permissions: table.permissions("permissions"),
            to: table.string("to"),
            protocol: table.word_or_advice("protocol", advise_protocol),
            http: table.table("http").map(|http| Http::read(&http)),
            routes: table
                .tables("routes", "this route")
                .map(|rules| rules.map(|rules| rules.iter().map(Rule::read).collect())),
            max_connections: table.whole("max_connections"),
            timeouts: Timeouts::inside(&table),
            proxy_protocol: table
                .table("proxy_protocol")
                .and_then(|senders| senders.senders("from")),
            splice: table.word("splice"),
            failure_reply: table.word_or_table("failure_reply").and_then(Reply::read),
            empty_reply: table.text("empty_reply"),
        }
    }
}

impl Listener {
    /// What is spoken on it.
    pub(super) fn spoken(&self) -> Protocol {
        self.protocol
            .as_ref()
            .map_or(Protocol::Tcp, |protocol| protocol.value)
    }

    /// Its rules, as far as they could be read.
    pub(super) fn rules(&self) -> &[Rule] {
        self.routes.as_ref().map_or(&[], |rules| &rules.value)
    }

    /// The clusters that its sessions may go to; one may come several times.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Located<String>> {
        let ruled = self.rules().iter().filter_map(|rule| rule.to.as_ref());
        self.to.iter().chain(ruled)
    }
}

impl Rule {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            at: table.place(),
            sni: table.host_pattern("sni"),
            host: table.host_pattern("host"),
            path: table.text("path"),
            to: table.string("to"),
        }
    }
}

/// The protocols that are known by name and not carried yet.
fn advise_protocol(written: &str) -> Option<String> {
    const ANNOUNCED: [&str; 4] = ["https", "http2", "thrift", "mysql"];
    let announced = ANNOUNCED.contains(&written);
    announced
        .then(|| format!("\"{written}\" is not there yet; \"tcp\" carries it without reading it"))
}

impl Reply {
    fn read(written: Located<WordOrTable<'_>>) -> Maybe<Self> {
        let value = match written.value {
            WordOrTable::Word => Self::MysqlError,
            WordOrTable::Table(table) => Self::Text(table.text("text")?.value),
        };
        Some(Located {
            value,
            span: written.span,
        })
    }
}

impl Cluster {
    fn read(NamedTable { name, table }: NamedTable<'_>) -> Self {
        let endpoints = table.items("endpoints", "this endpoint");
        Self {
            name,
            balance: table.choice("balance"),
            key: table.choice("key"),
            bounded_load: table.percent("bounded_load"),
            endpoints: endpoints
                .map(|list| list.map(|items| items.into_iter().map(Endpoint::read).collect())),
            queue_max: table.whole("queue_max"),
            attempts: table.whole("attempts"),
            replay: table.size("replay"),
            proxy_protocol: table.word("proxy_protocol"),
            pool: table
                .table("pool")
                .map(|pool| Pool::read(&pool))
                .unwrap_or_default(),
            slow_start: table.duration("slow_start"),
            ejection: table
                .word_or_table("ejection")
                .map(|written| Ejection::read(written.value)),
            trials: table
                .table("trials")
                .map(|trials| Trials::read(&trials))
                .unwrap_or_default(),
            health: table.table("health").map(|health| Health::read(&health)),
            on_down: table.word("on_down"),
            when_none: table.word("when_none"),
            failback: table.word("failback"),
            timeouts: Timeouts::inside(&table),
        }
    }
}

impl Cluster {
    /// The balancer that is written, or the default one; `None` if what is written is none.
    pub(super) fn balance_name(&self) -> Option<BalanceName> {
        match &self.balance {
            Choice::Absent => Some(BalanceName::RoundRobin),
            Choice::Unreadable => None,
            Choice::Made(balance) => Some(balance.value),
        }
    }

    /// The endpoints that could be read.
    pub(super) fn endpoints(&self) -> &[Endpoint] {
        self.endpoints
            .as_ref()
            .map_or(&[], |endpoints| &endpoints.value)
    }

    /// Where it says that connections begin with a PROXY header.
    pub(super) fn announces(&self) -> Option<&Span> {
        let header = self.proxy_protocol.as_ref()?;
        (header.value != HeaderName::Off).then_some(&header.span)
    }

    /// Their fixed addresses, as far as they could be read, and where each is written.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&Address, &Span)> {
        let endpoints = self.endpoints().iter();
        let addresses = endpoints.filter_map(|endpoint| endpoint.address.as_ref());
        addresses.filter_map(|address| match &address.value {
            EndpointAddress::Fixed(fixed) => Some((fixed, &address.span)),
            EndpointAddress::Host(..) => None,
        })
    }
}

impl Endpoint {
    /// The name that is written, or what stands for it: no two endpoints of a cluster have the same.
    pub(super) fn effective_name(&self) -> Option<String> {
        let written = self.name.as_ref().map(|name| name.value.clone());
        let address = || {
            self.address
                .as_ref()
                .map(|address| address.value.to_string())
        };
        let service = || self.srv.as_ref().map(|service| service.value.to_string());
        written.or_else(address).or_else(service)
    }

    /// Where a name is that has to be resolved.
    pub(super) fn resolved_at(&self) -> Option<&Span> {
        match (&self.srv, &self.address) {
            (Some(service), _) => Some(&service.span),
            (None, Some(address)) => match address.value {
                EndpointAddress::Host(..) => Some(&address.span),
                EndpointAddress::Fixed(_) => None,
            },
            (None, None) => None,
        }
    }

    /// Where its name comes from.
    pub(super) fn name_at(&self) -> &Span {
        let address = self.address.as_ref().map(|address| &address.span);
        let service = self.srv.as_ref().map(|service| &service.span);
        let name = self.name.as_ref().map(|name| &name.span);
        name.or(address).or(service).unwrap_or(&self.at)
    }

    /// Whether it is out whatever happens.
    pub(super) fn never_gets_work(&self) -> bool {
        let disabled = self
            .disabled
            .as_ref()
            .is_some_and(|disabled| disabled.value);
        disabled || self.weight.as_ref().is_some_and(|weight| weight.value == 0)
    }

    fn read(item: Item<'_>) -> Self {
        match item {
            Item::Address(address) => Self::at_address(address),
            Item::Table(table) => Self::from_table(&table),
        }
    }

    fn at_address(address: Located<EndpointAddress>) -> Self {
        Self {
            at: address.span.clone(),
            address: Some(address),
            name: None,
            srv: None,
            family: None,
            weight: None,
            backup: None,
            disabled: None,
            max_connections: None,
        }
    }

    fn from_table(table: &TableReader<'_>) -> Self {
        table.require_either("address", "srv");
        Self {
            at: table.place(),
            name: table.string("name"),
            address: table.endpoint_address("address"),
            srv: table.service("srv"),
            family: table.word("family"),
            weight: table.whole("weight"),
            backup: table.flag("backup"),
            disabled: table.flag("disabled"),
            max_connections: table.whole("max_connections"),
        }
    }
}

impl Ejection {
    fn read(written: WordOrTable<'_>) -> Self {
        match written {
            WordOrTable::Word => Self::Off,
            WordOrTable::Table(table) => Self::On(EjectionKeys {
                failures: table.whole("failures"),
                base: table.duration("base"),
                max: table.duration("max"),
                share_max: table.percent("share_max"),
            }),
        }
    }
}

impl Trials {
    fn read(table: &TableReader<'_>) -> Self {
        Self {
            every: table.duration("every"),
            every_max: table.duration("every_max"),
        }
    }
}
