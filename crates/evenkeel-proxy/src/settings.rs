//! What a configuration file is built into: checked, complete, ready to run.
//!
//! Nothing here is optional because it was not written: the program has filled in every default. The raw form, as the
//! user writes it, lives in the program crate.

mod forwarding;
mod http;
mod probe;
mod tls;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::ClusterSpec;
use evenkeel_core::units::{Address, Weight};
pub use evenkeel_reactor::Splice;
pub use evenkeel_wire::proxy_protocol::Version as ProxyVersion;
pub use forwarding::{Forward, ForwardingSettings, ReasonHeader, RequestId};
pub use http::{HttpLimits, HttpRoute, HttpSettings, HttpTimeouts};
pub use probe::{
    Check, ExpectAt, HttpCheck, HttpMethod, MysqlCheck, OnDown, ProbeSettings, ProbeTarget,
    RedisCheck, RedisRole, Secret, SendExpectCheck, StatusRange,
};

pub use crate::upstream::pool::PoolPolicy;
pub use tls::{
    CertificateFiles, ClientCertificates, Demand, EndpointTls, ListenerTls, TlsVersions, Trust,
};

use crate::discovery::Question;
use crate::host_pattern::HostPattern;
use crate::senders::Sender;

#[cfg(test)]
pub(crate) mod sample;

/// Everything that one process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads and the files of the process itself.
    pub process: ProcessSettings,
    /// Where the access log goes.
    pub access_log: AccessLogSettings,
    /// Where the process tells how it is; `None` turns it off.
    pub admin: Option<AdminSettings>,
    /// How names are resolved.
    pub dns: DnsSettings,
    /// In the order of the file; names are unique.
    pub listeners: Vec<ListenerSettings>,
    /// In the order of the file; names are unique, and distinct from every other target's.
    pub clusters: Vec<ClusterSettings>,
}

impl Settings {
    /// How many endpoints are probed.
    pub fn probed_endpoints(&self) -> usize {
        let clusters = self.clusters.iter();
        let probed = clusters.filter(|cluster| cluster.probe.is_some());
        probed.map(|cluster| cluster.spec.endpoints.len()).sum()
    }
}

/// The process itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Reactor workers; at least 1, at most [`ProcessSettings::WORKERS_MAX`]. It never grows with load.
    pub workers: usize,
    /// Pipes that all workers together may have for splicing; 0 copies everything. At most
    /// [`ProcessSettings::SPLICE_PIPES_MAX`].
    pub splice_pipes_max: usize,
    /// The most sessions at one time, of all listeners together; `None` leaves it to the descriptors there are.
    pub max_connections: Option<NonZeroU32>,
    /// How long a graceful stop goes on accepting after `/readyz` has said no.
    pub ready_delay: Duration,
    /// How long a graceful stop lets sessions finish before it closes them.
    pub stop_deadline: Duration,
    /// The Unix socket for `status`, `route` and `stop`; `None` turns it off.
    pub control_socket: Option<PathBuf>,
    /// Where overrides outlive the process; `None` forgets them.
    pub state_file: Option<PathBuf>,
}

impl ProcessSettings {
    /// The most workers one process may be given.
    pub const WORKERS_MAX: usize = 1024;
    /// The most pipes: 64 GiB of bytes behind readers that have all stopped.
    pub const SPLICE_PIPES_MAX: usize = 65_536;
}

/// The admin listener: metrics, liveness, readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Where it listens.
    pub bind: Address,
}

/// Where a line per session goes, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// Where to.
    pub destination: LogDestination,
    /// In which form.
    pub format: LogFormat,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDestination {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to a file.
    File(PathBuf),
}

/// How a line of the access log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `key=value` words, for people.
    Text,
    /// One JSON object per line, for machines.
    Json,
}

/// How names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    /// Name servers to ask instead of those in `/etc/resolv.conf`; at most [`DnsSettings::SERVERS_MAX`].
    pub servers: Vec<SocketAddr>,
    /// How long a name server may take before it, or the next one, is asked again.
    pub timeout: Duration,
    /// A name is asked for at most that often, however short its records live.
    pub refresh_min: Duration,
    /// A name is asked for at least that often, however long its records live.
    pub refresh_max: Duration,
}

impl DnsSettings {
    /// The most name servers.
    pub const SERVERS_MAX: usize = 8;
    /// The most names in one process.
    pub const NAMES_MAX: usize = 4096;
}

impl Default for DnsSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            timeout: Duration::from_secs(2),
            refresh_min: Duration::from_secs(1),
            refresh_max: Duration::from_secs(300),
        }
    }
}

/// A bound address that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Its name in the file.
    pub name: Arc<str>,
    /// Where it listens.
    pub bind: Address,
    /// The permissions of its file, if it listens on a Unix socket: whoever may write to it may connect.
    pub permissions: u32,
    /// The cluster its sessions go to unless a route says otherwise; `None` is nowhere.
    pub to: Option<Arc<str>>,
    /// Where sessions go by what is known of them; at most [`ListenerSettings::ROUTES_MAX`], no two of them for the same.
    pub routes: Vec<RouteSettings>,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// The most sessions at one time; further clients wait in the backlog. `None` is no limit.
    pub max_connections: Option<NonZeroU32>,
    /// Who must begin with a PROXY header and is believed; `None` is nobody.
    pub proxy_protocol: Option<Arc<[Sender]>>,
    /// How long a client may take for what.
    pub timeouts: ListenerTimeouts,
    /// Whether what moves in bulk is spliced.
    pub splice: Splice,
    /// Sent to a client when no endpoint could serve it.
    pub failure_reply: Option<FailureReply>,
    /// Sent to a client that sends nothing usable (nothing but white space before its end of stream, or nothing within
    /// the preread timeout). Where set, the session waits for the client's first bytes before it chooses an endpoint.
    pub empty_reply: Option<Arc<[u8]>>,
}

impl ListenerSettings {
    /// The most routes of one listener.
    pub const ROUTES_MAX: usize = 4096;

    /// Every cluster that its sessions may go to; one may come several times.
    pub fn targets(&self) -> impl Iterator<Item = &Arc<str>> {
        let requests = self.protocol.request_routes();
        self.to
            .iter()
            .chain(self.routes.iter().map(|route| &route.to))
            .chain(requests.iter().map(|route| &route.to))
    }

    /// Whether its sessions may go to that cluster.
    pub fn leads_to(&self, cluster: &str) -> bool {
        self.targets().any(|target| **target == *cluster)
    }
}

/// One rule of a listener: where sessions go of which something is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSettings {
    /// The name that the client asks for in its TLS handshake, which is not ended here but passed on.
    pub server_name: HostPattern,
    /// The cluster they go to.
    pub to: Arc<str>,
}

/// What is spoken on a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Whatever it is: bytes are passed on as they are.
    Tcp,
    /// HTTP/1, a request at a time.
    Http(Arc<HttpSettings>),
}

impl Protocol {
    /// The word for it in the configuration.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http(_) => "http",
        }
    }

    /// On which layer it is carried.
    pub const fn layer(&self) -> Layer {
        match self {
            Self::Tcp => Layer::Transport,
            Self::Http(_) => Layer::Application,
        }
    }

    /// The rules for requests; none where requests are not seen.
    pub fn request_routes(&self) -> &[HttpRoute] {
        match self {
            Self::Tcp => &[],
            Self::Http(http) => &http.routes,
        }
    }
}

/// Who serves a listener: workers that move bytes, or workers that understand what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The reactor's, layer 4.
    Transport,
    /// Those with an asynchronous runtime, layer 7.
    Application,
}

/// Waits on the client's side; `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTimeouts {
    /// No byte in either direction for this long ends a session.
    pub idle: Option<Duration>,
    /// As `idle`, once one side has sent its end of stream.
    pub half_closed: Option<Duration>,
    /// How long the first bytes may take where a session needs them before it can choose an endpoint.
    pub preread: Duration,
    /// How long a peer, on either side, may leave sent bytes unacknowledged, its window shut, or keepalive probes
    /// unanswered, before the kernel gives the connection up.
    pub dead_peer: Option<Duration>,
}

/// What a client gets when no endpoint could serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureReply {
    /// These bytes.
    Text(Arc<[u8]>),
    /// A MySQL ERR packet that carries the reason.
    MysqlError,
}

/// A named set of interchangeable endpoints, and how sessions are put onto them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// What the core decides by: endpoints, weights, balancer, ejection, limits. Its name is the cluster's.
    pub spec: ClusterSpec,
    /// How its endpoints are probed; `None` asks nothing. The thresholds are in the specification.
    pub probe: Option<Arc<ProbeSettings>>,
    /// What becomes of an endpoint's sessions when its probes find it down.
    pub on_down: OnDown,
    /// Endpoints that are found by name, in the order of the file. Whoever resolves them adds what they lead to to the spec.
    pub names: Vec<NamedEndpoints>,
    /// What the balancer `hash` hashes; `None` for every other balancer.
    pub key: Option<KeySource>,
    /// Which PROXY header each connection to an endpoint begins with; `None` is none.
    pub proxy_protocol: Option<ProxyVersion>,
    /// How long a connection attempt may take.
    pub connect_timeout: Duration,
    /// How long a session may wait for a free slot when every usable endpoint is at its `max_connections`.
    pub queue_timeout: Duration,
    /// How long the first answer byte may take, counted from the client's first byte sent upstream; `None` is no limit.
    pub first_byte_timeout: Option<Duration>,
    /// How many endpoints a session tries before its client is told; at least 1, at most [`ClusterSettings::ATTEMPTS_MAX`].
    pub attempts: usize,
    /// How many bytes of a client are kept, until its first answer byte, to be sent again to another endpoint; 0 is off.
    /// At most [`ClusterSettings::REPLAY_MAX`].
    pub replay: usize,
    /// Its connections that carry one exchange after the other.
    pub pool: PoolPolicy,
}

impl ClusterSettings {
    /// The most attempts a session may be given.
    pub const ATTEMPTS_MAX: usize = 16;
    /// The most bytes a session may keep for replay.
    pub const REPLAY_MAX: usize = 1 << 20;
}

/// An endpoint that is written as a name: it stands for as many as the name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEndpoints {
    /// What its endpoints are called by: each is `LABEL/ADDRESS`.
    pub label: Arc<str>,
    /// What is asked.
    pub question: Question,
    /// How many of the spec's endpoints the file has before it.
    pub position: usize,
    /// The share of each of them; `None` goes by the SRV record, and is 1 without one.
    pub weight: Option<Weight>,
    /// Used only when no other endpoint is usable.
    pub backup: bool,
    /// They take no new work.
    pub disabled: bool,
    /// The most sessions of each of them at one time.
    pub max_connections: Option<NonZeroU32>,
}

/// What the key of a session is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The client's IP address, without the port.
    SourceAddress,
    /// The client's bytes up to the first line feed, its end of stream, or [`KeySource::FIRST_LINE_MAX`] bytes, without
    /// white space at the end.
    FirstLine,
}

impl KeySource {
    /// The most bytes read in search of the end of the first line.
    pub const FIRST_LINE_MAX: usize = 4096;
}
