//! What an endpoint is told of the client (`X-Forwarded-*`, `Forwarded` by RFC 7239, `Via`, `X-Request-Id`), and what a trusted
//! proxy before us says of it.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use super::field::{elements, trimmed};
use super::write::append_field;
use super::{FieldValue, Fields, Known, RequestHead, Scheme, Version};

/// What an endpoint is told of the client.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding<'e> {
    /// Who has connected, or whom a trusted peer has announced.
    pub client: IpAddr,
    /// How the client has connected.
    pub scheme: Scheme,
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    pub x_forwarded: Forward,
    /// `Forwarded`.
    pub forwarded: Forward,
    /// By what name evenkeel enters itself in `Via`; `None` leaves `Via` as it is.
    pub via: Option<FieldValue<'e>>,
    /// `X-Request-Id`; `None` leaves what there is.
    pub request_id: Option<FieldValue<'e>>,
}

/// What is done with a header that tells of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// It is left as it is.
    Leave,
    /// To what a trusted proxy has said, the peer is added; its scheme and its host are kept.
    Append,
    /// Whatever was said is replaced.
    Replace,
}

impl Forwarding<'_> {
    /// Whether lines of this name are not passed on, but written anew.
    pub(super) fn rewrites(&self, known: Known) -> bool {
        match known {
            Known::XForwardedFor => self.x_forwarded != Forward::Leave,
            Known::XForwardedProto | Known::XForwardedHost => self.x_forwarded == Forward::Replace,
            Known::Forwarded => self.forwarded != Forward::Leave,
            Known::Via => self.via.is_some(),
            Known::XRequestId => self.request_id.is_some(),
            _ => false,
        }
    }

    pub(super) fn append(&self, head: &RequestHead<'_>, out: &mut Vec<u8>) {
        if self.x_forwarded != Forward::Leave {
            self.append_x_forwarded(head, out);
        }
        if self.forwarded != Forward::Leave {
            self.append_forwarded(head, out);
        }
        if let Some(via) = self.via {
            append_via(head.fields, head.version, via, out);
        }
        if let Some(id) = self.request_id {
            append_field(out, "X-Request-Id", id.as_bytes());
        }
    }

    fn append_x_forwarded(&self, head: &RequestHead<'_>, out: &mut Vec<u8>) {
        begin_list(
            "X-Forwarded-For",
            before(head.fields, Known::XForwardedFor, self.x_forwarded),
            out,
        );
        append_display(out, format_args!("{}\r\n", self.client));
        if self.is_to_say(head.fields, Known::XForwardedProto) {
            append_field(out, "X-Forwarded-Proto", self.scheme.as_str().as_bytes());
        }
        let host = head
            .host
            .filter(|_| self.is_to_say(head.fields, Known::XForwardedHost));
        if let Some(host) = host {
            append_field(out, "X-Forwarded-Host", host.text.as_bytes());
        }
    }

    fn is_to_say(&self, fields: Fields<'_>, known: Known) -> bool {
        self.x_forwarded == Forward::Replace || fields.of(known).next().is_none()
    }

    /// RFC 7239: what has a colon or a bracket is quoted, and an IPv6 address has brackets.
    fn append_forwarded(&self, head: &RequestHead<'_>, out: &mut Vec<u8>) {
        begin_list(
            "Forwarded",
            before(head.fields, Known::Forwarded, self.forwarded),
            out,
        );
        match self.client {
            IpAddr::V4(ip) => append_display(out, format_args!("for={ip}")),
            IpAddr::V6(ip) => append_display(out, format_args!("for=\"[{ip}]\"")),
        }
        append_display(out, format_args!(";proto={}", self.scheme.as_str()));
        if let Some(host) = head.host.filter(|host| !host.text.is_empty()) {
            // A host has neither quotes nor backslashes.
            append_display(out, format_args!(";host=\"{}\"", host.text));
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends `Via`: who was there before, and by which version the message came to evenkeel.
pub(super) fn append_via(
    fields: Fields<'_>,
    version: Version,
    name: FieldValue<'_>,
    out: &mut Vec<u8>,
) {
    begin_list("Via", fields.of(Known::Via), out);
    out.extend_from_slice(match version {
        Version::Http10 => b"1.0 ",
        Version::Http11 => b"1.1 ",
    });
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What was said before, where it is kept.
fn before(fields: Fields<'_>, known: Known, forward: Forward) -> impl Iterator<Item = &[u8]> {
    fields.of(known).filter(move |_| forward == Forward::Append)
}

/// All lines become one; the new element is the last.
fn begin_list<'v>(name: &str, values: impl Iterator<Item = &'v [u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    for value in values.filter(|value| !value.is_empty()) {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
}

fn append_display(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes everything");
}

/// The client on whose behalf a peer speaks: the right-most address of `X-Forwarded-For` that is not itself trusted. A peer that is not
/// trusted is the client, whatever it says; where the list ends, or an element is no address, the last trusted one is.
pub fn client_address(
    fields: Fields<'_>,
    peer: IpAddr,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut client = peer;
    let lines = fields.of(Known::XForwardedFor).rev();
    let from_the_right = lines.flat_map(|line| line.rsplit(|byte| *byte == b','));
    for element in from_the_right
        .map(trimmed)
        .filter(|element| !element.is_empty())
    {
        if !is_trusted(client) {
            break;
        }
        let Some(address) = address(element) else {
            break;
        };
        client = address;
    }
    client
}

/// An address, with or without a port.
fn address(element: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(element).ok()?;
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// Whether a list names something, in whatever case it is written.
pub(super) fn lists(value: &[u8], name: &[u8]) -> bool {
    elements(value).any(|element| {
        let word = element
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default();
        trimmed(word).eq_ignore_ascii_case(name)
    })
}
