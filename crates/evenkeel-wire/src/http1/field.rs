//! Header lines as they stand in the caller's buffer, and the few names that mean something here.

use std::mem::MaybeUninit;

/// The most header lines that a head can have.
pub const FIELDS_MAX: usize = 128;

/// Room for the header lines of one head: a few KiB of stack that nobody has to clear.
pub struct FieldSlots<'b> {
    pub(super) tokens: [MaybeUninit<httparse::Header<'b>>; FIELDS_MAX],
    pub(super) known: [Known; FIELDS_MAX],
}

impl FieldSlots<'_> {
    /// Room for a head.
    pub const fn new() -> Self {
        Self {
            tokens: [const { MaybeUninit::uninit() }; FIELDS_MAX],
            known: [Known::Other; FIELDS_MAX],
        }
    }
}

impl Default for FieldSlots<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// One header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'h> {
    /// Its name, as it was written.
    pub name: &'h str,
    /// Its value, without the white space around it. It has no control character but tabs; it need not be UTF-8.
    pub value: &'h [u8],
    /// Which name it is.
    pub known: Known,
}

/// The header lines of a head, in their order.
#[derive(Clone, Copy)]
pub struct Fields<'h> {
    tokens: &'h [httparse::Header<'h>],
    known: &'h [Known],
}

impl<'h> Fields<'h> {
    /// Notes for each line which name it is.
    pub(super) fn new(tokens: &'h [httparse::Header<'h>], known: &'h mut [Known]) -> Self {
        for (known, token) in known.iter_mut().zip(tokens) {
            *known = Known::of(token.name);
        }
        Self {
            tokens,
            known: &known[..tokens.len()],
        }
    }

    /// All of them.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Field<'h>> + Clone {
        let both = self.tokens.iter().zip(self.known);
        both.map(|(token, &known)| Field {
            name: token.name,
            value: token.value,
            known,
        })
    }

    /// The values of all lines of a name.
    pub fn of(self, known: Known) -> impl DoubleEndedIterator<Item = &'h [u8]> + Clone {
        let same = self.iter().filter(move |field| field.known == known);
        same.map(|field| field.value)
    }

    /// The value of the first line of a name, in whatever case it is written.
    pub fn value(self, name: &str) -> Option<&'h [u8]> {
        let mut fields = self.iter();
        let found = fields.find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value)
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.tokens.is_empty()
    }
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields<'_> {}

/// Names that framing, connections and forwarding depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Any other name.
    Other,
    /// `Accept`
    Accept,
    /// `Connection`
    Connection,
    /// `Content-Length`
    ContentLength,
    /// `Expect`
    Expect,
    /// `Forwarded`
    Forwarded,
    /// `Host`
    Host,
    /// `Keep-Alive`
    KeepAlive,
    /// `Proxy-Connection`
    ProxyConnection,
    /// `TE`
    Te,
    /// `Trailer`
    Trailer,
    /// `Transfer-Encoding`
    TransferEncoding,
    /// `Upgrade`
    Upgrade,
    /// `Via`
    Via,
    /// `X-Forwarded-For`
    XForwardedFor,
    /// `X-Forwarded-Host`
    XForwardedHost,
    /// `X-Forwarded-Proto`
    XForwardedProto,
    /// `X-Request-Id`
    XRequestId,
}

impl Known {
    /// By length first: of most lines, that alone says that they are none of these.
    pub fn of(name: &str) -> Self {
        let candidates: &[(&str, Self)] = match name.len() {
            2 => &[("te", Self::Te)],
            3 => &[("via", Self::Via)],
            4 => &[("host", Self::Host)],
            6 => &[("accept", Self::Accept), ("expect", Self::Expect)],
            7 => &[("upgrade", Self::Upgrade), ("trailer", Self::Trailer)],
            9 => &[("forwarded", Self::Forwarded)],
            10 => &[
                ("connection", Self::Connection),
                ("keep-alive", Self::KeepAlive),
            ],
            12 => &[("x-request-id", Self::XRequestId)],
            14 => &[("content-length", Self::ContentLength)],
            15 => &[("x-forwarded-for", Self::XForwardedFor)],
            16 => &[
                ("x-forwarded-host", Self::XForwardedHost),
                ("proxy-connection", Self::ProxyConnection),
            ],
            17 => &[
                ("transfer-encoding", Self::TransferEncoding),
                ("x-forwarded-proto", Self::XForwardedProto),
            ],
            _ => &[],
        };
        let found = candidates
            .iter()
            .find(|(text, _)| text.eq_ignore_ascii_case(name));
        found.map_or(Self::Other, |&(_, known)| known)
    }
}

/// Whether a name is one of those, written with `_`. Programs that are given headers as variables (CGI, WSGI, PHP) cannot tell the two apart, so
/// that a client would say by this one what it is not believed by the other.
pub(super) fn is_disguised(name: &str) -> bool {
    const LONGEST: usize = 17;
    let mut dashed = [0; LONGEST];
    let Some(dashed) = dashed.get_mut(..name.len()) else {
        return false;
    };
    if !name.contains('_') {
        return false;
    }
    for (to, from) in dashed.iter_mut().zip(name.bytes()) {
        *to = if from == b'_' { b'-' } else { from };
    }
    std::str::from_utf8(dashed).is_ok_and(|dashed| Known::of(dashed) != Known::Other)
}

/// The elements of a value that is a list, without the white space around them; empty ones are none.
pub(super) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let elements = value.split(|byte| *byte == b',').map(trimmed);
    elements.filter(|element| !element.is_empty())
}

/// Without the white space of HTTP around it: spaces and tabs.
pub(super) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
