//! What is changed about a head on its way. Names and values that are put into a head are checked once, where they are made: nothing
//! that a head is given can end its line.

use super::diagnose::is_of_token;
use super::{BodyFraming, Forwarding, Known, Persistence, Version};

/// What is changed about a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestEdits<'e> {
    /// What becomes of the endpoint's connection.
    pub persistence: Persistence,
    /// Whether the client's wish to upgrade goes on.
    pub upgrade: Upgrade,
    /// What the endpoint is told of the client.
    pub forwarding: Forwarding<'e>,
    /// Everything else.
    pub fields: &'e [FieldEdit<'e>],
}

/// What is changed about an answer.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEdits<'e> {
    /// The client's version: HTTP/1.0 has no chunks, and has to be told that its connection stays.
    pub client: Version,
    /// What becomes of the client's connection.
    pub persistence: Persistence,
    /// How the body is sent. Where it is not how it comes, what the head says of it is replaced.
    pub framing: BodyFraming,
    /// Whether `Upgrade` goes on: of 101, and of 426.
    pub upgrade: Upgrade,
    /// By what name evenkeel enters itself in `Via`; `None` leaves `Via` as it is.
    pub via: Option<FieldValue<'e>>,
    /// Everything else.
    pub fields: &'e [FieldEdit<'e>],
}

/// Whether an upgrade goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// As it was said.
    Forward,
    /// It stays behind.
    Drop,
}

/// One change to the lines of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldEdit<'e> {
    /// A further line.
    Add(FieldName<'e>, FieldValue<'e>),
    /// A line in the place of all of that name.
    Set(FieldName<'e>, FieldValue<'e>),
    /// No line of that name.
    Remove(FieldName<'e>),
}

/// The name of a header: a token, and none on which framing or a connection depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName<'e>(&'e str);

impl<'e> FieldName<'e> {
    /// `None` for what is no token, and for `Host`, `Content-Length` and the like: a head has them in one place, and not from here.
    pub fn new(name: &'e str) -> Option<Self> {
        let is_token = !name.is_empty() && name.bytes().all(is_of_token);
        (is_token && !is_of_framing(Known::of(name))).then_some(Self(name))
    }

    /// The name.
    pub const fn as_str(self) -> &'e str {
        self.0
    }
}

const fn is_of_framing(known: Known) -> bool {
    matches!(
        known,
        Known::Connection
            | Known::ContentLength
            | Known::Host
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::Te
            | Known::TransferEncoding
            | Known::Upgrade
    )
}

/// The value of a header: no control character but tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue<'e>(&'e [u8]);

impl<'e> FieldValue<'e> {
    /// `None` for what would not be one value.
    pub fn new(value: &'e [u8]) -> Option<Self> {
        let is_value = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
        value.iter().all(is_value).then_some(Self(value))
    }

    /// The value.
    pub const fn as_bytes(self) -> &'e [u8] {
        self.0
    }
}

pub(super) fn is_edited(edits: &[FieldEdit<'_>], name: &str) -> bool {
    edits.iter().any(|edit| match edit {
        FieldEdit::Set(edited, _) | FieldEdit::Remove(edited) => {
            edited.0.eq_ignore_ascii_case(name)
        }
        FieldEdit::Add(..) => false,
    })
}
