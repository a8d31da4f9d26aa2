//! What a load is to do, and what came of it: the two things that pass between the bench and its load.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One load, from its start to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// What the connections do.
    pub load: Load,
    /// How many of them there are at once.
    pub connections: usize,
    /// Where they go: the proxy, or an endpoint for a direct connection.
    pub target: SocketAddr,
    /// Where the endpoints listen.
    pub endpoints: Vec<SocketAddr>,
    /// How long the load runs before anything is measured.
    pub warm_up_millis: u64,
    /// How long it is measured.
    pub window_millis: u64,
    /// The certificate of the proxy, as PEM, where connections are secured by TLS.
    pub trusted: Option<PathBuf>,
    /// The proxy's processes, whose use of the machine is read; none for a direct connection.
    pub watched: Vec<u32>,
}

/// What the connections of a load do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// They move bytes.
    Tcp(TcpLoad),
    /// They make requests, and are answered.
    Http(HttpLoad),
}

/// What connections that move bytes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcpLoad {
    /// Each sends 64 bytes, waits for them to come back, and goes on.
    PingPong,
    /// Each connects, sends 64 bytes, waits for them to come back, closes, and begins anew.
    Connect,
    /// Each reads a stream that the endpoint sends without end.
    Bulk,
    /// Each exchanges 64 bytes once and then stays open; the window is as long as it takes to open them.
    Idle,
}

/// Which exchanges of HTTP are made, and on which connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HttpLoad {
    /// The body of the request: GET has none.
    pub request: Request,
    /// Bytes of the answer's body.
    pub answer_bytes: u64,
    /// What a connection does with its exchanges.
    pub course: Course,
    /// How it is secured on its way to the proxy.
    pub transport: Transport,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// GET, without a body.
    Get,
    /// POST, with a body of so many bytes.
    Post(u64),
}

/// What a connection does with its exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// Makes one after the other.
    KeepAlive,
    /// Makes one and closes; another is opened then.
    Connect,
    /// Makes one and then stays open; the window is as long as it takes to open the connections.
    Idle,
}

/// How connections to the proxy are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Not at all.
    Plain,
    /// By TLS, without resumption.
    Tls,
}

/// What was measured in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Work done: exchanges, bytes read ([`TcpLoad::Bulk`]) or connections opened (idle loads).
    pub work: u64,
    /// How long the window was.
    pub window_nanos: u64,
    /// How long an exchange took; none where there are no exchanges to time.
    pub latency: Option<Latency>,
    /// What the watched processes used; none if there are none.
    pub usage: Option<Usage>,
    /// Connections made from the start to the end, also outside of the window.
    pub connections: u64,
    /// Exchanges made from the start to the end; 0 for [`TcpLoad::Bulk`].
    pub exchanges: u64,
}

/// How long an exchange took, to about 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50_nanos: u64,
    /// 99 of 100 took no longer.
    pub p99_nanos: u64,
}

/// What the watched processes used in the window, all their threads together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Time on a core, in user space and in the kernel.
    pub cpu_nanos: u64,
    /// Resident memory at the end of the window.
    pub resident_bytes: u64,
    /// How much resident memory grew within the window; 0 if it shrank.
    pub resident_growth_bytes: u64,
}
