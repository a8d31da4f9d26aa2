//! What is in the message: fields that are stepped over, and extensions, of which two are read.

use std::net::IpAddr;

use super::reader::Reader;
use super::{ClientHello, Refused, SERVER_NAME_BYTES_MAX};

/// The version, of which TLS 1.3 makes no use, and the random bytes.
const FIXED_BYTES: usize = 2 + 32;
const SESSION_BYTES_MAX: usize = 32;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;
/// The only kind of name that was ever given a number.
const HOST_NAME: u8 = 0;
const LABEL_BYTES_MAX: usize = 63;

pub(super) fn parse(body: &[u8]) -> Result<ClientHello, Refused> {
    let mut body = Reader::new(body);
    step_over_fixed_fields(&mut body).ok_or(Refused::Structure)?;
    // Before TLS 1.2 a client could do without.
    let extensions = if body.is_empty() {
        &[]
    } else {
        body.vector().ok_or(Refused::Structure)?
    };
    if !body.is_empty() {
        return Err(Refused::Structure);
    }
    let Extensions { name, protocols } = read_extensions(extensions)?;
    Ok(ClientHello {
        server_name: name.map(server_name).transpose()?.flatten(),
        protocols: protocols
            .map(check_protocols)
            .transpose()?
            .unwrap_or_default()
            .into(),
    })
}

/// Version, random bytes, session, cipher suites, compression; `None` if one of them is not as it must be.
fn step_over_fixed_fields(body: &mut Reader<'_>) -> Option<()> {
    body.take(FIXED_BYTES)?;
    let session = body.short_vector()?;
    let suites = body.vector()?;
    let compressions = body.short_vector()?;
    let is_sound = session.len() <= SESSION_BYTES_MAX
        && !suites.is_empty()
        && suites.len().is_multiple_of(2)
        && !compressions.is_empty();
    is_sound.then_some(())
}

/// What the extensions that are read hold.
#[derive(Default)]
struct Extensions<'a> {
    name: Option<&'a [u8]>,
    protocols: Option<&'a [u8]>,
}

fn read_extensions(bytes: &[u8]) -> Result<Extensions<'_>, Refused> {
    let mut rest = Reader::new(bytes);
    let mut found = Extensions::default();
    while !rest.is_empty() {
        let kind = rest.number().ok_or(Refused::Structure)?;
        let content = rest.vector().ok_or(Refused::Structure)?;
        let place = match kind {
            SERVER_NAME => &mut found.name,
            PROTOCOLS => &mut found.protocols,
            _ => continue,
        };
        if place.replace(content).is_some() {
            return Err(Refused::Twice);
        }
    }
    Ok(found)
}

/// The list of an extension that is nothing but a list, which is never empty.
fn only_list(content: &[u8]) -> Result<&[u8], Refused> {
    let mut rest = Reader::new(content);
    let list = rest.vector().filter(|list| !list.is_empty());
    list.filter(|_| rest.is_empty()).ok_or(Refused::Structure)
}

fn server_name(content: &[u8]) -> Result<Option<Box<str>>, Refused> {
    let mut rest = Reader::new(only_list(content)?);
    let mut found = None;
    while !rest.is_empty() {
        let kind = rest.byte().ok_or(Refused::Structure)?;
        let name = rest.vector().ok_or(Refused::Structure)?;
        if kind == HOST_NAME && found.replace(name).is_some() {
            return Err(Refused::Twice);
        }
    }
    let Some(name) = found else { return Ok(None) };
    let name = str::from_utf8(name).map_err(|_| Refused::ServerName)?;
    if name.parse::<IpAddr>().is_ok() {
        return Ok(None);
    }
    normal_name(name).map(Some).ok_or(Refused::ServerName)
}

/// A host's name as names are compared: in lower case, without a dot at its end. `None` if it is no name of a host.
pub fn normal_name(written: &str) -> Option<Box<str>> {
    let name = written.strip_suffix('.').unwrap_or(written);
    let is_name = name.len() <= SERVER_NAME_BYTES_MAX && name.split('.').all(is_label);
    is_name.then(|| name.to_ascii_lowercase().into())
}

/// With the underscore, which is in no name of a host by the book and in many by practice.
fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_allowed)
}

fn check_protocols(content: &[u8]) -> Result<&[u8], Refused> {
    let list = only_list(content)?;
    let mut rest = Reader::new(list);
    while !rest.is_empty() {
        rest.short_vector()
            .filter(|protocol| !protocol.is_empty())
            .ok_or(Refused::Structure)?;
    }
    Ok(list)
}
