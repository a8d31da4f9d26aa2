//! The first message of a TLS client, read without speaking TLS: which name it asks for, and which protocols it offers.
//!
//! Sources: RFC 8446 §4.1.2 and §5.1, RFC 6066 §3, RFC 7301 §3.1. The message may be divided over any number of records. It is read as far
//! as a route needs it; what else is in it is the business of whoever ends the TLS. Where a stream goes is not decided here.

mod body;
mod reader;
mod records;
#[cfg(test)]
mod tests;

use std::fmt;

pub use body::normal_name;
use reader::Reader;

/// The most bytes of a stream that are looked at, with the heads of records. A browser's message has about 2,000.
pub const HELLO_BYTES_MAX: usize = 16 << 10;

/// The longest name that DNS knows.
pub const SERVER_NAME_BYTES_MAX: usize = 253;

/// What a client's first message says of where it wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The name it asks for: in lower case, without a dot at its end. `None` if it names none, or an IP address, which the
    /// protocol does not allow and some clients send all the same.
    pub server_name: Option<Box<str>>,
    /// The list of protocols as it came, checked: each with its length before it.
    protocols: Box<[u8]>,
}

impl ClientHello {
    /// The protocols that it offers (ALPN), the preferred one first.
    pub fn protocols(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Reader::new(&self.protocols);
        std::iter::from_fn(move || rest.short_vector())
    }
}

/// What bytes begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a client's first message; there must be more.
    Partial,
    /// The whole message.
    Whole(ClientHello),
}

/// Why bytes are no first message of a TLS client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are no handshake of TLS.
    NotTls,
    /// The handshake begins with another message.
    NotClientHello,
    /// A record is empty, or longer than the protocol allows.
    Record,
    /// It has more than [`HELLO_BYTES_MAX`].
    TooLong,
    /// A field is longer than what it is in, or shorter than the protocol allows.
    Structure,
    /// An extension that is read comes twice.
    Twice,
    /// The name is none that DNS could know.
    ServerName,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "it does not begin with a TLS handshake",
            Self::NotClientHello => "the handshake does not begin with a ClientHello",
            Self::Record => "a record is empty or too long",
            Self::TooLong => "the ClientHello is too long",
            Self::Structure => "a field of the ClientHello does not fit into it",
            Self::Twice => "an extension comes twice",
            Self::ServerName => "the server name is no name of a host",
        })
    }
}

/// Reads the first message at the beginning of bytes, of which at most [`HELLO_BYTES_MAX`] are needed. What follows it is not
/// looked at.
///
/// # Errors
///
/// The bytes are no such message, and no further ones make them one.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Refused> {
    let bounded = &bytes[..bytes.len().min(HELLO_BYTES_MAX)];
    match records::client_hello(bounded)? {
        Some(body) => body::parse(&body).map(Parsed::Whole),
        None if bounded.len() == HELLO_BYTES_MAX => Err(Refused::TooLong),
        None => Ok(Parsed::Partial),
    }
}
