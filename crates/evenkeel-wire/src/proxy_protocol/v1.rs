//! Version 1: a line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::{Ends, Header, Malformed, Parsed};

pub(super) const SIGNATURE: &[u8] = b"PROXY ";

/// The longest line, with its CR and LF.
pub(super) const LINE_BYTES_MAX: usize = 107;

const LINE_END: &[u8] = b"\r\n";

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    let line = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return partial_unless_full(line);
    };
    match line.get(end..end + LINE_END.len()) {
        Some(LINE_END) => Ok(Parsed::Whole(header(&line[..end])?, end + LINE_END.len())),
        None if line[end] == b'\r' => partial_unless_full(line),
        _ => Err(Malformed::Line),
    }
}

const fn partial_unless_full(line: &[u8]) -> Result<Parsed, Malformed> {
    if line.len() == LINE_BYTES_MAX {
        Err(Malformed::Line)
    } else {
        Ok(Parsed::Partial)
    }
}

/// The line without its end. What follows `UNKNOWN` is to be ignored, whatever it is.
fn header(line: &[u8]) -> Result<Header, Malformed> {
    let words = line.strip_prefix(SIGNATURE).ok_or(Malformed::Words)?;
    if words == b"UNKNOWN" || words.starts_with(b"UNKNOWN ") {
        return Ok(Header::Local);
    }
    let words = std::str::from_utf8(words).map_err(|_| Malformed::Words)?;
    let words: Vec<&str> = words.split(' ').collect();
    let [family, source, destination, source_port, destination_port] = words[..] else {
        return Err(Malformed::Words);
    };
    let ip = match family {
        "TCP4" => ip::<Ipv4Addr>,
        "TCP6" => ip::<Ipv6Addr>,
        _ => return Err(Malformed::Words),
    };
    Ok(Header::Tcp(Ends {
        source: SocketAddr::new(ip(source)?, port(source_port)?),
        destination: SocketAddr::new(ip(destination)?, port(destination_port)?),
    }))
}

/// The standard library refuses zeros in front, and every form but the canonical ones.
fn ip<T: FromStr + Into<IpAddr>>(word: &str) -> Result<IpAddr, Malformed> {
    word.parse().map(T::into).map_err(|_| Malformed::Address)
}

fn port(word: &str) -> Result<u16, Malformed> {
    let is_plain = word == "0" || word.starts_with(|first: char| matches!(first, '1'..='9'));
    word.parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or(Malformed::Port)
}

pub(super) fn encode(header: &Header) -> Vec<u8> {
    let line = match header {
        Header::Tcp(ends) => line(ends),
        Header::Local | Header::Unix(_) => "PROXY UNKNOWN\r\n".to_owned(),
    };
    line.into_bytes()
}

fn line(ends: &Ends<SocketAddr>) -> String {
    let Ends {
        source,
        destination,
    } = ends.of_one_family();
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    format!(
        "PROXY {family} {} {} {} {}\r\n",
        source.ip(),
        destination.ip(),
        source.port(),
        destination.port()
    )
}

impl Ends<SocketAddr> {
    /// Where one end is IPv4 and the other IPv6, both as IPv6: a header has one family.
    pub(super) fn of_one_family(&self) -> Self {
        if self.source.is_ipv4() == self.destination.is_ipv4() {
            return *self;
        }
        Self {
            source: as_ipv6(self.source),
            destination: as_ipv6(self.destination),
        }
    }
}

fn as_ipv6(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}
