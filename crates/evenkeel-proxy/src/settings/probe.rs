//! How a cluster's endpoints are probed: what is asked, how often, and what counts as an answer.
//!
//! How many answers make an endpoint up or down is the core's business: `ClusterSpec::health`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Address;

use super::EndpointTls;

/// How each endpoint of a cluster is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// What is asked.
    pub check: Check,
    /// How often; each pause is up to a tenth shorter or longer.
    pub every: Duration,
    /// How long an answer may take, from the connecting on; at most `every`.
    pub timeout: Duration,
    /// Whom to ask.
    pub target: ProbeTarget,
    /// How TLS is spoken first; `None` asks in the clear. Never with a check of MySQL, which has TLS in its own protocol.
    pub tls: Option<EndpointTls>,
}

/// Whom a probe asks about an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    /// The endpoint.
    Endpoint,
    /// Another port of the endpoint's machine; there is none of a Unix socket.
    Port(u16),
    /// Another address altogether.
    Address(Address),
}

/// What a probe asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Whether a connection is taken.
    Tcp,
    /// An HTTP/1.1 request.
    Http(HttpCheck),
    /// A login, a ping, and perhaps a query.
    Mysql(MysqlCheck),
    /// A ping, and perhaps the role.
    Redis(RedisCheck),
    /// Bytes of one's own.
    SendExpect(SendExpectCheck),
}

impl Check {
    /// The password that it takes, if any.
    pub const fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Mysql(mysql) => mysql.password.as_ref(),
            Self::Redis(redis) => redis.password.as_ref(),
            Self::Tcp | Self::Http(_) | Self::SendExpect(_) => None,
        }
    }
}

/// What is asked over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// With or without a body in the answer.
    pub method: HttpMethod,
    /// What is asked for; it begins with `/`, and has neither spaces nor control characters.
    pub path: Arc<str>,
    /// The `Host` header, without spaces and control characters; `None` is the address that is asked.
    pub host: Option<Arc<str>>,
    /// The answers that are right; not empty.
    pub status: Vec<StatusRange>,
}

/// The method of an HTTP probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`.
    Head,
}

/// Status codes from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// At least 100.
    pub first: u16,
    /// At most 599, and not below `first`.
    pub last: u16,
}

impl StatusRange {
    /// Whether the code is one of them.
    pub const fn contains(self, code: u16) -> bool {
        self.first <= code && code <= self.last
    }
}

/// How a probe logs in to MySQL, and what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlCheck {
    /// The account, without NUL.
    pub user: Arc<str>,
    /// `None` for an account without a password.
    pub password: Option<Secret>,
    /// The first value of its first row says whether the endpoint is well; `None` asks nothing.
    pub query: Option<Arc<str>>,
}

/// How a probe logs in to Redis, and what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCheck {
    /// The account; `None` is Redis's `default`.
    pub user: Option<Arc<str>>,
    /// `None` does not log in.
    pub password: Option<Secret>,
    /// What the endpoint has to be; `None` is either.
    pub role: Option<RedisRole>,
}

/// What a Redis server is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisRole {
    /// It takes writes.
    Master,
    /// It follows a master.
    Replica,
}

/// Bytes that are sent, and those that are hoped for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendExpectCheck {
    /// `None` waits for an endpoint that speaks first.
    pub send: Option<Arc<[u8]>>,
    /// Not empty.
    pub expect: Arc<[u8]>,
    /// Where in the answer.
    pub at: ExpectAt,
}

/// Where in an answer the expected bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectAt {
    /// The answer begins with them.
    #[default]
    Start,
    /// Within the first 16 KiB.
    Anywhere,
}

/// A password, or where it is. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// As it is written in the configuration.
    Text(Arc<str>),
    /// A file that holds it; read for each probe, so that it may be changed at any time.
    File(PathBuf),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("(a secret)"),
            Self::File(path) => write!(f, "(a secret in {})", path.display()),
        }
    }
}

/// What becomes of an endpoint's sessions when its probes say that it is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDown {
    /// They go on while they can.
    #[default]
    Keep,
    /// They are closed.
    Close,
}
