//! The PROXY protocol, versions 1 and 2: who a connection is made for, said before its first byte.
//!
//! Source: "The PROXY protocol, Versions 1 & 2" (HAProxy's `doc/proxy-protocol.txt`), 2020/03/05. Read strictly: what does not
//! match it exactly is malformed, as early as it can be known. TLVs are checked for their form, and a checksum among them is
//! verified; what else they say is skipped. Whom to believe is not decided here.

mod crc32c;
#[cfg(test)]
mod tests;
mod v1;
mod v2;

use std::fmt;
use std::net::SocketAddr;

pub use v2::UNIX_PATH_BYTES;

/// The longest header that is read. Version 1 has at most 107 bytes, and addresses of version 2 take 232; the rest is for TLVs.
pub const HEADER_BYTES_MAX: usize = 4096;

/// A form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// What a header says of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// Nothing: the sender speaks for itself (`LOCAL`), or does not know (`UNKNOWN`, `UNSPEC`, datagrams). The connection's own
    /// addresses count.
    Local,
    /// It is made for a client that has connected over TCP.
    Tcp(Ends<SocketAddr>),
    /// It is made for a client of a Unix stream socket. Version 1 has no words for that.
    Unix(Box<Ends<UnixPath>>),
}

/// Both ends of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends<T> {
    /// Where the client connected from.
    pub source: T,
    /// Where it connected to.
    pub destination: T,
}

/// The path of a Unix socket as version 2 carries it: with zeros to its full length, or nothing but zeros.
pub type UnixPath = [u8; UNIX_PATH_BYTES];

/// What bytes begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a header; there must be more.
    Partial,
    /// A header of so many bytes.
    Whole(Header, usize),
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They begin with neither signature.
    NoHeader,
    /// A line of version 1 does not end within 107 bytes, or not with CR and LF.
    Line,
    /// A line of version 1 has other words than the protocol's, or not as many, or not one space between them.
    Words,
    /// An address is not of the family that is announced, or is none.
    Address,
    /// A port is not a plain number up to 65535.
    Port,
    /// The version is not 2.
    Version,
    /// The command is none of version 2.
    Command,
    /// The family or the transport is none of version 2.
    Family,
    /// It is too short for its addresses, or longer than [`HEADER_BYTES_MAX`].
    Length,
    /// A TLV is longer than the header.
    Tlv,
    /// The checksum is not that of the header.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHeader => "it does not begin with a PROXY header",
            Self::Line => "the line is too long, or does not end with CR and LF",
            Self::Words => "the line has other words than the protocol's",
            Self::Address => "an address is none of the announced family",
            Self::Port => "a port is no plain number up to 65535",
            Self::Version => "the version is not 2",
            Self::Command => "the command is unknown",
            Self::Family => "the family or the transport is unknown",
            Self::Length => "the length is too short for the addresses, or too long",
            Self::Tlv => "a TLV is longer than the header",
            Self::Checksum => "the checksum is wrong",
        })
    }
}

/// Reads a header at the beginning of bytes, of which at most [`HEADER_BYTES_MAX`] are needed. What follows it is not looked at.
///
/// # Errors
///
/// The bytes are not a header, and no further ones make them one.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    if begins_alike(bytes, v1::SIGNATURE) {
        v1::parse(bytes)
    } else if begins_alike(bytes, v2::SIGNATURE) {
        v2::parse(bytes)
    } else {
        Err(Malformed::NoHeader)
    }
}

/// The header as it is sent. What version 1 has no words for is `UNKNOWN`.
pub fn encode(version: Version, header: &Header) -> Vec<u8> {
    match version {
        Version::V1 => v1::encode(header),
        Version::V2 => v2::encode(header),
    }
}

/// The header of a connection that is made for nobody else, such as a probe's. Version 2 says so. Version 1 cannot, and there
/// are receivers that refuse `UNKNOWN`; so it names the connection's own ends, as the specification recommends.
pub fn encode_own(version: Version, ends: Option<Ends<SocketAddr>>) -> Vec<u8> {
    match (version, ends) {
        (Version::V1, Some(ends)) => v1::encode(&Header::Tcp(ends)),
        (version, _) => encode(version, &Header::Local),
    }
}

/// Whether the bytes are the beginning of a signature, or begin with all of it.
fn begins_alike(bytes: &[u8], signature: &[u8]) -> bool {
    let compared = bytes.len().min(signature.len());
    bytes[..compared] == signature[..compared]
}
