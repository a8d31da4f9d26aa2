//! The head of an answer. What it means depends on what was asked: HEAD has no body, whatever the head says.

use super::framing::Said;
use super::{
    Asked, BodyFraming, Connection, FieldSlots, Fields, Limits, Parsed, Persistence, Refusal,
    Version, diagnose,
};

/// `HTTP/1.1 200`: what stands before the space and the reason.
const BEFORE_REASON_BYTES: usize = 12;

/// An answer, up to its body. Everything in it lies in the buffer that it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'h> {
    /// The version of the endpoint.
    pub version: Version,
    /// Three digits, the first of them not 0.
    pub status: u16,
    /// What stands behind the status, as it was written; may be empty.
    pub reason: &'h [u8],
    /// Where its body ends.
    pub framing: BodyFraming,
    /// What it says of the connection.
    pub connection: Connection,
    /// Its header lines.
    pub fields: Fields<'h>,
    asked: Asked,
    lacks_promised_body: bool,
}

impl<'h> ResponseHead<'h> {
    /// Reads a head at the beginning of `bytes`, of which no more than the limit is looked at. Nothing is passed over: between two
    /// answers there is nothing.
    pub fn parse<'b: 'h>(
        bytes: &'b [u8],
        asked: Asked,
        limits: &Limits,
        slots: &'h mut FieldSlots<'b>,
    ) -> Parsed<Self> {
        let window = limits.window(bytes);
        if matches!(window, [b'\r' | b'\n', ..]) {
            return Parsed::Refused(Refusal::StatusLine);
        }
        let FieldSlots { tokens, known } = slots;
        let tokens = &mut tokens[..limits.fields_in_force()];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut response, window, tokens) {
            Ok(httparse::Status::Complete(end)) => {
                let fields = Fields::new(response.headers, known);
                Self::believe(
                    &window[..end],
                    (response.version, response.code),
                    fields,
                    asked,
                )
                .map_or_else(Parsed::Refused, |head| Parsed::Complete(head, end))
            }
            Ok(httparse::Status::Partial) if window.len() == limits.head_bytes_in_force() => {
                Parsed::Refused(Refusal::HeadTooLarge)
            }
            Ok(httparse::Status::Partial) => Parsed::Incomplete,
            Err(error) => Parsed::Refused(diagnose::response(error, window)),
        }
    }

    fn believe(
        bytes: &'h [u8],
        line: (Option<u8>, Option<u16>),
        fields: Fields<'h>,
        asked: Asked,
    ) -> Result<Self, Refusal> {
        let (Some(minor), Some(status @ 100..)) = line else {
            return Err(Refusal::StatusLine);
        };
        diagnose::no_bare_line_feed(bytes)?;
        let version = Version::of_minor(minor);
        let said = Said::of(fields, version)?;
        let reason = diagnose::first_line(bytes).get(BEFORE_REASON_BYTES + 1..);
        Ok(Self {
            version,
            status,
            reason: reason.unwrap_or_default(),
            framing: framing(said, status, asked),
            connection: Connection::of(fields)?,
            fields,
            asked,
            lacks_promised_body: is_bodiless(status)
                && !matches!(said, Said::Nothing | Said::Length(0)),
        })
    }

    /// Whether the final answer is still to come. 101 is final: it begins a tunnel.
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether what follows is no HTTP any more, in both directions.
    pub const fn begins_tunnel(&self) -> bool {
        let is_connected = matches!(self.asked, Asked::Connect) && self.status / 100 == 2;
        self.status == 101 || is_connected
    }

    /// Whether the endpoint's connection is there for another request after this answer. After one that promises a body where there is
    /// none (1xx, 204), an endpoint could send it, and it would be taken for the next answer.
    pub const fn persistence(&self) -> Persistence {
        match self.framing {
            BodyFraming::UntilClose => Persistence::Close,
            _ if self.lacks_promised_body => Persistence::Close,
            _ => self.connection.persistence(self.version),
        }
    }
}

/// RFC 9110, 15.2 and 15.3.5: neither a body nor a word about one.
pub(super) const fn is_bodiless(status: u16) -> bool {
    status < 200 || status == 204
}

/// RFC 9112, 6.3.
const fn framing(said: Said, status: u16, asked: Asked) -> BodyFraming {
    let is_empty = is_bodiless(status) || status == 304 || matches!(asked, Asked::Head);
    let is_tunnel = matches!(asked, Asked::Connect) && status / 100 == 2;
    match said {
        _ if is_empty || is_tunnel => BodyFraming::None,
        Said::Length(0) => BodyFraming::None,
        Said::Length(length) => BodyFraming::Length(length),
        Said::Chunked => BodyFraming::Chunked,
        Said::Nothing => BodyFraming::UntilClose,
    }
}
