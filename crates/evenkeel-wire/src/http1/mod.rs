//! HTTP/1.0 and HTTP/1.1, both roles: heads, bodies and their framing, from bytes and to bytes.
//!
//! Sources: RFC 9110 (semantics) and RFC 9112 (HTTP/1.1). `httparse` finds where tokens begin and end; whether a message is believed is
//! decided here, by the policy of `docs/decisions/0011-http1-framing.md`: what two programs could read in two ways is refused, never
//! repaired. Nothing is copied out of the caller's buffer to be read. Routes, timeouts and connections are not known here.

mod answer;
mod body;
mod chunk;
mod chunked;
mod connection;
mod diagnose;
mod edit;
mod field;
mod forwarding;
mod framing;
mod host;
mod method;
mod refusal;
mod request;
mod response;
mod target;
#[cfg(test)]
mod tests;
mod trailers;
mod write;

pub use answer::{Answer, Form, reason_phrase};
pub use body::{BodyDecoder, BodyPart, LengthDecoder};
pub use chunk::{CHUNK_END, ChunkHead, append_last_chunk};
pub use chunked::ChunkedDecoder;
pub use connection::{Connection, Persistence};
pub use edit::{FieldEdit, FieldName, FieldValue, RequestEdits, ResponseEdits, Upgrade};
pub use field::{FIELDS_MAX, Field, FieldSlots, Fields, Known};
pub use forwarding::{Forward, Forwarding, client_address};
pub use framing::BodyFraming;
pub use host::Host;
pub use method::{Asked, Method};
pub use refusal::{Message, Refusal};
pub use request::{Expect, RequestHead};
pub use response::ResponseHead;
pub use target::{Scheme, Target};

/// The most bytes of a head that [`Limits::head_bytes`] can allow.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// A version that is spoken. What is sent is always 1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0: no chunks, no interim answers, and a connection for one exchange unless both sides say otherwise.
    Http10,
    /// HTTP/1.1.
    Http11,
}

impl Version {
    const fn of_minor(minor: u8) -> Self {
        if minor == 0 {
            Self::Http10
        } else {
            Self::Http11
        }
    }
}

/// How large a head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, its last empty line included. Above [`HEAD_BYTES_MAX`] counts as that.
    pub head_bytes: usize,
    /// Header lines. Above [`FIELDS_MAX`] counts as that.
    pub fields: usize,
    /// Bytes of a request's target.
    pub target_bytes: usize,
    /// Whether a request may ask for a tunnel.
    pub connect: ConnectMethod,
}

/// What is done with requests of the method CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectMethod {
    /// They are refused: evenkeel stands before endpoints, not before the internet.
    Refuse,
    /// They are read like all others.
    Accept,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 << 10,
            fields: 100,
            target_bytes: 8 << 10,
            connect: ConnectMethod::Refuse,
        }
    }
}

impl Limits {
    /// The part of `bytes` that may be a head. Every decision is made on this part alone, so that it does not depend on how much
    /// more has arrived.
    fn window<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..bytes.len().min(self.head_bytes_in_force())]
    }

    fn head_bytes_in_force(&self) -> usize {
        self.head_bytes.min(HEAD_BYTES_MAX)
    }

    fn fields_in_force(&self) -> usize {
        self.fields.min(FIELDS_MAX)
    }
}

/// What bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The beginning of a head; there must be more. Before parsing again, see [`is_worth_parsing`].
    Incomplete,
    /// A head, and how many bytes it takes, with all that stands before it.
    Complete(T, usize),
    /// No head, and no further bytes make it one.
    Refused(Refusal),
}

/// Whether a head that was [`Parsed::Incomplete`] when `seen` of these bytes were there can be complete, or too large, now.
///
/// Parsing starts at the beginning each time. A peer that sends byte by byte would have a head of 16 KiB parsed 16 thousand times; asked first,
/// this looks at the new bytes alone.
pub fn is_worth_parsing(bytes: &[u8], seen: usize, limits: &Limits) -> bool {
    /// An empty line may have begun so many bytes before the new ones.
    const EMPTY_LINE_BEFORE: usize = 3;
    let unseen = &bytes[seen.saturating_sub(EMPTY_LINE_BEFORE).min(bytes.len())..];
    bytes.len() >= limits.head_bytes_in_force() || has_empty_line(unseen)
}

/// Bare line feeds count: they are what the head is then refused for.
fn has_empty_line(bytes: &[u8]) -> bool {
    let ends_line = |pair: &[u8]| pair == b"\n\n";
    bytes.windows(3).any(|three| three == b"\n\r\n") || bytes.windows(2).any(ends_line)
}
