//! What a listener that speaks HTTP is built into: where requests go, how long anything may take, how large it may be.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::forwarding::{ForwardingSettings, ReasonHeader};
use crate::host_pattern::HostPattern;

/// HTTP/1 on a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// At most [`HttpSettings::ROUTES_MAX`]. The most specific one wins, in whatever order they are; what none of them takes goes to
    /// the listener's `to`, or is answered with 404.
    pub routes: Vec<HttpRoute>,
    /// How long anything may take.
    pub timeouts: HttpTimeouts,
    /// How large anything may be.
    pub limits: HttpLimits,
    /// What endpoints are told of clients.
    pub forwarding: ForwardingSettings,
    /// Whether answers of evenkeel's own tell their reason in a header.
    pub reason_header: ReasonHeader,
}

/// Which requests go to which cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRoute {
    /// The hosts whose requests it takes; `None` is all.
    pub host: Option<HostPattern>,
    /// What their paths begin with, by whole segments unless it ends with a slash: `/api` takes `/api` and `/api/x`, not
    /// `/apix`. Empty takes every path.
    pub path: Arc<str>,
    /// The cluster that they go to.
    pub to: Arc<str>,
}

/// How long anything may take; `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTimeouts {
    /// For the whole head of a request, from its first byte; for the first one, from the accept.
    pub head: Duration,
    /// Between two bytes of a request's body.
    pub body_idle: Option<Duration>,
    /// From an answer to the next request's first byte.
    pub keep_alive: Duration,
    /// Between two bytes of an endpoint while it owes an answer, also before the first one.
    pub upstream_idle: Option<Duration>,
    /// For an exchange, from the request's first byte to the answer's last.
    pub request: Option<Duration>,
    /// Between two bytes, in either direction, once the connection has been given to another protocol.
    pub tunnel_idle: Option<Duration>,
}

/// How large anything may be; `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of a head, with its first line; at most [`HttpSettings::HEAD_BYTES_MAX`].
    pub head_bytes: usize,
    /// Headers of a head; at most [`HttpSettings::HEADERS_MAX`].
    pub headers: usize,
    /// Bytes of a request's target, at most those of a head.
    pub target_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: Option<u64>,
    /// Requests on one connection.
    pub requests: Option<NonZeroU32>,
}

impl HttpSettings {
    /// The most routes of one listener.
    pub const ROUTES_MAX: usize = 1024;
    /// The most bytes that a head may be allowed: what is read at once.
    pub const HEAD_BYTES_MAX: usize = 64 << 10;
    /// The most headers that a head may be allowed.
    pub const HEADERS_MAX: usize = evenkeel_wire::http1::FIELDS_MAX;
}

impl Default for HttpTimeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body_idle: Some(Duration::from_secs(30)),
            keep_alive: Duration::from_secs(60),
            upstream_idle: Some(Duration::from_secs(60)),
            request: None,
            tunnel_idle: Some(Duration::from_secs(3600)),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            head_bytes: 32 << 10,
            headers: 100,
            target_bytes: 8 << 10,
            body_bytes: None,
            requests: None,
        }
    }
}
