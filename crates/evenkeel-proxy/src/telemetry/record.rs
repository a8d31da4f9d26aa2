//! What is known of a session when it has ended: one record, from which the access log and the counters are made.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_reactor::Origin;

use super::reason::Reason;

/// A session that has ended.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    /// The listener's name.
    pub listener: Arc<str>,
    /// The cluster's name; `None` if the session ended before it was known.
    pub cluster: Option<Arc<str>>,
    /// Whom the session is for.
    pub client: Origin,
    /// Who connected, if it was a proxy that announced the client.
    pub peer: Option<Origin>,
    /// The endpoint that served it, or was tried last; `None` if there never was one.
    pub endpoint: Option<Arc<str>>,
    /// Endpoints tried.
    pub attempts: u32,
    /// Bytes from the client to the endpoint.
    pub bytes_up: u64,
    /// Bytes from the endpoint to the client.
    pub bytes_down: u64,
    /// Time spent waiting for a free slot.
    pub queued: Duration,
    /// From the first attempt to the connection that served; `None` if none was made.
    pub connect: Option<Duration>,
    /// From accept to the first answer byte; `None` if none came.
    pub first_byte: Option<Duration>,
    /// From accept to the end.
    pub total: Duration,
    /// Why it ended.
    pub reason: Reason,
}
