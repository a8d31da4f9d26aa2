//! The head of a request: parsed in the caller's buffer, and believed only if it can be read in one way.

use super::diagnose;
use super::field::elements;
use super::framing::Said;
use super::method::METHOD_BYTES_MAX;
use super::target::is_of_target;
use super::{
    BodyFraming, ConnectMethod, Connection, FieldSlots, Fields, Host, Known, Limits, Method,
    Parsed, Persistence, Refusal, Target, Version,
};

/// The most empty lines before a request that are passed over. RFC 9112 (2.2) asks for one at least, for the sake of clients that send one
/// behind a body.
const LEADING_LINES_MAX: usize = 4;

const LINE_END: &[u8] = b"\r\n";

/// A request, up to its body. Everything in it lies in the buffer that it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'h> {
    /// What is asked for.
    pub method: Method<'h>,
    /// What it is about.
    pub target: Target<'h>,
    /// The version of the client.
    pub version: Version,
    /// Whom it is for: by its target if that says so, else by its `Host`. Absent in HTTP/1.0 at most.
    pub host: Option<Host<'h>>,
    /// Where its body ends; never [`BodyFraming::UntilClose`].
    pub framing: BodyFraming,
    /// What it says of the connection.
    pub connection: Connection,
    /// What it waits for before it sends its body.
    pub expect: Expect,
    /// Its header lines.
    pub fields: Fields<'h>,
}

/// What a client waits for before it sends its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// For nothing. In HTTP/1.0, whatever is said.
    Nothing,
    /// For an answer of 100, or a final one.
    Continue,
    /// For something else, which is for the endpoint to judge.
    Other,
}

impl<'h> RequestHead<'h> {
    /// Reads a head at the beginning of `bytes`, of which no more than the limit is looked at.
    pub fn parse<'b: 'h>(
        bytes: &'b [u8],
        limits: &Limits,
        slots: &'h mut FieldSlots<'b>,
    ) -> Parsed<Self> {
        let window = limits.window(bytes);
        let leading = match leading_lines(window) {
            Ok(leading) => leading,
            Err(refusal) => return Parsed::Refused(refusal),
        };
        let FieldSlots { tokens, known } = slots;
        let tokens = &mut tokens[..limits.fields_in_force()];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(&window[leading..], tokens);
        let unfinished = &window[leading..];
        match parsed {
            Ok(httparse::Status::Complete(length)) => {
                let end = leading + length;
                let fields = Fields::new(request.headers, known);
                let line = (request.method, request.path, request.version);
                Self::believe(&window[leading..end], line, fields, limits)
                    .map_or_else(Parsed::Refused, |head| Parsed::Complete(head, end))
            }
            Ok(httparse::Status::Partial) => match too_long(unfinished, limits) {
                Some(refusal) => Parsed::Refused(refusal),
                None if window.len() == limits.head_bytes_in_force() => {
                    Parsed::Refused(Refusal::HeadTooLarge)
                }
                None => Parsed::Incomplete,
            },
            Err(error) => Parsed::Refused(
                too_long(unfinished, limits)
                    .unwrap_or_else(|| diagnose::request(error, unfinished)),
            ),
        }
    }

    /// All that can be wrong with a head whose tokens are right. Faults of the first line come first: a part of the head is enough to
    /// see them, and the rest must not change the answer.
    fn believe(
        bytes: &[u8],
        line: (Option<&'h str>, Option<&'h str>, Option<u8>),
        fields: Fields<'h>,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        let (Some(method), Some(target), Some(minor)) = line else {
            return Err(Refusal::RequestLine);
        };
        check_lengths(method.as_bytes(), target.as_bytes(), limits)?;
        diagnose::no_bare_line_feed(bytes)?;
        let method = Method::of(method);
        let target = Target::parse(method, target)?;
        if method == Method::Connect && limits.connect == ConnectMethod::Refuse {
            return Err(Refusal::ConnectMethod);
        }
        let version = Version::of_minor(minor);
        Ok(Self {
            method,
            target,
            version,
            host: host(fields, version, &target)?,
            framing: framing(Said::of(fields, version)?),
            connection: Connection::of(fields)?,
            expect: expect(fields, version),
            fields,
        })
    }

    /// What the client wants to become of its connection after the answer.
    pub const fn persistence(&self) -> Persistence {
        self.connection.persistence(self.version)
    }

    /// The protocols that the client would rather speak on this connection, as it lists them; `None` unless `Connection` says `upgrade`
    /// too. In HTTP/1.0 there is no such thing. HTTP/2 in the clear (`h2c`) counts as none: it would carry requests past everything that
    /// looks at requests.
    pub fn upgrade(&self) -> Option<&'h [u8]> {
        let is_asked = self.connection.upgrades && self.version == Version::Http11;
        let mut lines = self.fields.of(Known::Upgrade).filter(|_| is_asked);
        let only = lines.next().filter(|protocols| !protocols.is_empty())?;
        let is_clear_http2 =
            |protocol: &[u8]| protocol.len() >= 3 && protocol[..3].eq_ignore_ascii_case(b"h2c");
        let is_offered = lines.next().is_none() && !elements(only).any(is_clear_http2);
        is_offered.then_some(only)
    }
}

/// How many bytes of empty lines stand in front.
fn leading_lines(bytes: &[u8]) -> Result<usize, Refusal> {
    let mut rest = bytes;
    for _ in 0..LEADING_LINES_MAX {
        let Some(after) = rest.strip_prefix(LINE_END) else {
            break;
        };
        rest = after;
    }
    match rest {
        [b'\r', b'\n', ..] => Err(Refusal::LeadingLines),
        [b'\r', _, ..] => Err(Refusal::BareCarriageReturn),
        [b'\n', ..] => Err(Refusal::BareLineFeed),
        _ => Ok(bytes.len() - rest.len()),
    }
}

/// What has no end yet, or a fault further on, may be too long already. A fault that comes before that is the answer.
fn too_long(bytes: &[u8], limits: &Limits) -> Option<Refusal> {
    let mut words = diagnose::first_line(bytes).splitn(3, |byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    if !diagnose::is_token(method) {
        return None;
    }
    let target = words.next().unwrap_or_default();
    let wrong = target.iter().position(|byte| !is_of_target(*byte));
    let target = &target[..wrong.unwrap_or(target.len())];
    check_lengths(method, target, limits).err()
}

const fn check_lengths(method: &[u8], target: &[u8], limits: &Limits) -> Result<(), Refusal> {
    if method.len() > METHOD_BYTES_MAX {
        Err(Refusal::Method)
    } else if target.len() > limits.target_bytes {
        Err(Refusal::TargetTooLong)
    } else {
        Ok(())
    }
}

/// Who is asked. A `Host` has to be right even where the target says it better.
fn host<'h>(
    fields: Fields<'h>,
    version: Version,
    target: &Target<'h>,
) -> Result<Option<Host<'h>>, Refusal> {
    let mut lines = fields.of(Known::Host);
    let said = match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => return Err(Refusal::HostRepeated),
        (None, _) if version == Version::Http11 => return Err(Refusal::HostMissing),
        (only, _) => only.map(Host::parse).transpose()?,
    };
    match *target {
        Target::Absolute { host, .. } | Target::Authority(host) => Ok(Some(host)),
        Target::Origin { .. } | Target::Asterisk => Ok(said),
    }
}

const fn framing(said: Said) -> BodyFraming {
    match said {
        Said::Nothing | Said::Length(0) => BodyFraming::None,
        Said::Length(length) => BodyFraming::Length(length),
        Said::Chunked => BodyFraming::Chunked,
    }
}

fn expect(fields: Fields<'_>, version: Version) -> Expect {
    let mut lines = fields.of(Known::Expect);
    match (lines.next(), lines.next()) {
        _ if version == Version::Http10 => Expect::Nothing,
        (None, _) => Expect::Nothing,
        (Some(only), None) if only.eq_ignore_ascii_case(b"100-continue") => Expect::Continue,
        _ => Expect::Other,
    }
}
