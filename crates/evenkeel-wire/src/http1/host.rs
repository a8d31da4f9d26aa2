//! A name or an address, perhaps with a port: what `Host` and the authority of a target are made of (RFC 3986, 3.2).

use std::net::Ipv6Addr;

use super::Refusal;

/// Whom a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'h> {
    /// The whole of it, as it was written: what is passed on.
    pub text: &'h str,
    /// The name or the address, as it was written; an IPv6 address with its brackets. May be empty.
    pub name: &'h str,
    /// The port, where one is said.
    pub port: Option<u16>,
}

impl<'h> Host<'h> {
    /// Reads the value of a `Host`, or an authority. There is no user in it: what has `@` is refused.
    pub(super) fn parse(value: &'h [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(value).map_err(|_| Refusal::Host)?;
        let (name, port) = split(text).ok_or(Refusal::Host)?;
        Ok(Self {
            text,
            name,
            port: number(port)?,
        })
    }
}

/// The name, and what stands behind its colon.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if text.starts_with('[') {
        let end = text.find(']')? + 1;
        let (name, rest) = text.split_at(end);
        let is_address = name[1..end - 1].parse::<Ipv6Addr>().is_ok();
        return match (is_address, rest) {
            (true, "") => Some((name, None)),
            (true, rest) => Some((name, Some(rest.strip_prefix(':')?))),
            (false, _) => None,
        };
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    name.bytes().all(is_of_name).then_some((name, port))
}

/// A registered name of RFC 3986, but for its comma: what has one is a list of hosts to some.
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'%'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b';'
                | b'='
        )
}

/// A colon without a port behind it says nothing, which RFC 3986 allows.
fn number(port: Option<&str>) -> Result<Option<u16>, Refusal> {
    let Some(port) = port.filter(|port| !port.is_empty()) else {
        return Ok(None);
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Host);
    }
    port.parse().map(Some).map_err(|_| Refusal::Host)
}
