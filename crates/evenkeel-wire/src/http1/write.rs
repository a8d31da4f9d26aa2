//! Heads as they are passed on: written anew from what was understood, into a buffer of the caller's.
//!
//! What is meant for the next hop alone stays behind: headers that `Connection` names, and those that are known to be so. Never those on which
//! framing, routing or trust depends, whatever `Connection` says of them.

use super::edit::is_edited;
use super::field::{elements, is_disguised};
use super::response::is_bodiless;
use super::{
    BodyFraming, Connection, Expect, FieldEdit, Fields, Known, Persistence, RequestEdits,
    RequestHead, ResponseEdits, ResponseHead, Target, Upgrade, Version,
};

const VERSION: &[u8] = b" HTTP/1.1\r\n";

impl RequestHead<'_> {
    /// Appends the head as an endpoint gets it: in origin-form, as HTTP/1.1, with `Host` first.
    pub fn write(&self, edits: &RequestEdits<'_>, out: &mut Vec<u8>) {
        self.append_line(out);
        append_field(
            out,
            "Host",
            self.host.map_or("", |host| host.text).as_bytes(),
        );
        let is_upgrade = edits.upgrade == Upgrade::Forward && self.upgrade().is_some();
        let named = Named::of(self.connection, self.fields);
        let mut lengths = Once::default();
        for field in self.fields.iter() {
            let goes_on = match field.known {
                Known::Host
                | Known::Connection
                | Known::KeepAlive
                | Known::ProxyConnection
                | Known::Te => false,
                Known::TransferEncoding => true,
                Known::ContentLength => lengths.is_first(),
                Known::Expect if self.expect == Expect::Nothing => false,
                Known::Upgrade => is_upgrade,
                Known::Other if is_disguised(field.name) => false,
                _ if edits.forwarding.rewrites(field.known) => false,
                known if is_of_forwarding(known) => !is_edited(edits.fields, field.name),
                _ => named.lets_pass(field.name) && !is_edited(edits.fields, field.name),
            };
            if goes_on {
                append_field(out, field.name, field.value);
            }
        }
        self.append_connection(edits.persistence, is_upgrade, out);
        edits.forwarding.append(self, out);
        append_edits(edits.fields, out);
        out.extend_from_slice(b"\r\n");
    }

    fn append_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        match self.target {
            Target::Authority(host) => out.extend_from_slice(host.text.as_bytes()),
            target => append_path(&target, out),
        }
        out.extend_from_slice(VERSION);
    }

    /// An endpoint's connection stays unless it is said not to. `TE` is for the next hop alone, and evenkeel passes trailers on.
    fn append_connection(&self, persistence: Persistence, is_upgrade: bool, out: &mut Vec<u8>) {
        let mut codings = self.fields.of(Known::Te).flat_map(elements);
        let takes_trailers = codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
        if takes_trailers {
            append_field(out, "TE", b"trailers");
        }
        let options = [
            (persistence == Persistence::Close, "close"),
            (takes_trailers, "te"),
            (is_upgrade, "upgrade"),
        ];
        append_options(options, out);
    }
}

impl ResponseHead<'_> {
    /// Appends the head as a client gets it, as HTTP/1.1.
    pub fn write(&self, edits: &ResponseEdits<'_>, out: &mut Vec<u8>) {
        append_status(out, self.status, self.reason);
        let is_upgrade = edits.upgrade == Upgrade::Forward && matches!(self.status, 101 | 426);
        let named = Named::of(self.connection, self.fields);
        let mut lengths = Once::default();
        for field in self.fields.iter() {
            let goes_on = match field.known {
                Known::Connection | Known::KeepAlive | Known::ProxyConnection | Known::Te => false,
                Known::TransferEncoding => {
                    self.keeps_framing(edits) && edits.client == Version::Http11
                }
                Known::ContentLength => self.keeps_framing(edits) && lengths.is_first(),
                Known::Upgrade => is_upgrade,
                Known::Via if edits.via.is_some() => false,
                _ => named.lets_pass(field.name) && !is_edited(edits.fields, field.name),
            };
            if goes_on {
                append_field(out, field.name, field.value);
            }
        }
        if !self.keeps_framing(edits) && edits.framing == BodyFraming::Chunked {
            append_field(out, "Transfer-Encoding", b"chunked");
        }
        self.append_connection(edits, is_upgrade, out);
        if let Some(via) = edits.via {
            super::forwarding::append_via(self.fields, self.version, via, out);
        }
        append_edits(edits.fields, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Whether what the head says of the body holds for what is sent.
    fn keeps_framing(&self, edits: &ResponseEdits<'_>) -> bool {
        edits.framing == self.framing && !is_bodiless(self.status)
    }

    /// An interim answer says nothing of the connection.
    fn append_connection(&self, edits: &ResponseEdits<'_>, is_upgrade: bool, out: &mut Vec<u8>) {
        let is_final = !self.is_interim() && self.status != 101;
        let options = [
            (is_final && edits.persistence == Persistence::Close, "close"),
            (
                is_final
                    && edits.persistence == Persistence::KeepAlive
                    && edits.client == Version::Http10,
                "keep-alive",
            ),
            (is_upgrade, "upgrade"),
        ];
        append_options(options, out);
    }
}

pub(super) fn append_status(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    debug_assert!((100..1000).contains(&status), "a status has three digits");
    out.extend_from_slice(b"HTTP/1.1 ");
    append_number(out, status.into());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn append_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + ": \r\n".len());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn append_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b"0123456789"[(rest % 10) as usize];
        rest /= 10;
        if rest == 0 {
            return out.extend_from_slice(&digits[start..]);
        }
    }
}

fn append_path(target: &Target<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(target.path().as_bytes());
    if let Some(query) = target.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

fn append_options<const N: usize>(options: [(bool, &str); N], out: &mut Vec<u8>) {
    let mut before: &[u8] = b"Connection: ";
    for (_, option) in options.into_iter().filter(|(is_said, _)| *is_said) {
        out.extend_from_slice(before);
        out.extend_from_slice(option.as_bytes());
        before = b", ";
    }
    if before == b", " {
        out.extend_from_slice(b"\r\n");
    }
}

pub(super) fn append_edits(edits: &[FieldEdit<'_>], out: &mut Vec<u8>) {
    for edit in edits {
        match edit {
            FieldEdit::Set(name, value) | FieldEdit::Add(name, value) => {
                append_field(out, name.as_str(), value.as_bytes());
            }
            FieldEdit::Remove(_) => {}
        }
    }
}

/// The headers that `Connection` says are for the next hop alone.
struct Named<'h>(Option<Fields<'h>>);

impl<'h> Named<'h> {
    /// Mostly there are none, and no header is held against them.
    fn of(connection: Connection, fields: Fields<'h>) -> Self {
        Self(connection.names_fields.then_some(fields))
    }

    fn lets_pass(&self, name: &str) -> bool {
        let Some(fields) = self.0 else {
            return true;
        };
        let mut options = fields.of(Known::Connection).flat_map(elements);
        !options.any(|option| option.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// A client must not be able to have its own trail removed.
const fn is_of_forwarding(known: Known) -> bool {
    matches!(
        known,
        Known::Forwarded
            | Known::Via
            | Known::XForwardedFor
            | Known::XForwardedHost
            | Known::XForwardedProto
            | Known::XRequestId
    )
}

/// Of several lines that say the same, one goes on.
#[derive(Default)]
struct Once(bool);

impl Once {
    const fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.0, true)
    }
}
