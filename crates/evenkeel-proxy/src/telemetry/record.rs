//! What is known of a session, or of one exchange within a session, when it has ended: one record, from which the access log
//! and the counters are made.

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

/// An exchange that has ended: a request and its answer.
#[derive(Clone, Debug)]
pub struct ExchangeRecord {
    /// What is known of it as of a session. Times count from the first byte of its request.
    pub session: SessionRecord,
    /// The request line's two parts that say what was wanted, and whom: `None` if no head could be read.
    pub request: Option<RequestLine>,
    /// The answer's status; `None` if the client was sent none.
    pub status: Option<u16>,
}

/// What was wanted, as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// The method, the host and the target, one after the other.
    text: Box<str>,
    method_length: u32,
    host_length: u32,
}

impl RequestLine {
    /// The most bytes of a host, a path or a query that are kept; the rest is cut off.
    pub const PART_BYTES_MAX: usize = 2048;

    /// Of these parts; the path with the query behind it is the target.
    pub fn new(method: &str, host: &str, (path, query): (&str, Option<&str>)) -> Self {
        let (method, host, path) = (cut(method), cut(host), cut(path));
        let query = query.map(cut);
        let length = query.map_or(0, |query| 1 + query.len());
        let mut text = String::with_capacity(method.len() + host.len() + path.len() + length);
        text.push_str(method);
        text.push_str(host);
        text.push_str(path);
        if let Some(query) = query {
            text.push('?');
            text.push_str(query);
        }
        Self {
            text: text.into(),
            method_length: u32::try_from(method.len()).unwrap_or(0),
            host_length: u32::try_from(host.len()).unwrap_or(0),
        }
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.text[..self.method_length as usize]
    }

    /// Whom the request is for; empty if it did not say.
    pub fn host(&self) -> &str {
        let begin = self.method_length as usize;
        &self.text[begin..begin + self.host_length as usize]
    }

    /// The path and the query.
    pub fn target(&self) -> &str {
        &self.text[self.method_length as usize + self.host_length as usize..]
    }
}

fn cut(part: &str) -> &str {
    let mut end = part.len().min(RequestLine::PART_BYTES_MAX);
    while !part.is_char_boundary(end) {
        end -= 1;
    }
    &part[..end]
}
