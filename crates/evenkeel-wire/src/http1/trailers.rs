//! Trailers: header lines behind the last chunk. They are passed on as trailers, but for those that would mean something in a head.

use super::{Known, Refusal, diagnose};

/// The most bytes of all trailers.
const TRAILER_BYTES_MAX: usize = 8 << 10;

/// The most trailers.
const TRAILERS_MAX: usize = 32;

/// The lines that have come so far. Costs no allocation where there are none.
#[derive(Debug)]
pub(super) struct Trailers {
    lines: Vec<u8>,
    place: Place,
}

/// Where in a line the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Inside,
    LineFeed,
    LastLineFeed,
}

impl Trailers {
    pub(super) const fn new() -> Self {
        Self {
            lines: Vec::new(),
            place: Place::Start,
        }
    }

    /// Whether this byte was the last.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, Refusal> {
        self.place = match (self.place, byte) {
            (Place::Start, b'\r') => Place::LastLineFeed,
            (Place::Start, b' ' | b'\t') => return Err(Refusal::Folded),
            (Place::Start | Place::Inside, b'\n') => return Err(Refusal::BareLineFeed),
            (Place::Inside, b'\r') => Place::LineFeed,
            (Place::Start | Place::Inside, _) => Place::Inside,
            (Place::LineFeed, b'\n') => Place::Start,
            (Place::LastLineFeed, b'\n') => return self.finish().map(|()| true),
            (Place::LineFeed | Place::LastLineFeed, _) => return Err(Refusal::BareCarriageReturn),
        };
        if self.place != Place::LastLineFeed {
            self.push(byte)?;
        }
        Ok(false)
    }

    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    fn push(&mut self, byte: u8) -> Result<(), Refusal> {
        if self.lines.len() == TRAILER_BYTES_MAX {
            return Err(Refusal::TrailersTooLarge);
        }
        self.lines.push(byte);
        Ok(())
    }

    /// The lines are judged, and written anew from what was understood.
    fn finish(&mut self) -> Result<(), Refusal> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.lines.extend_from_slice(b"\r\n");
        let mut slots = [httparse::EMPTY_HEADER; TRAILERS_MAX];
        let kept = match httparse::parse_headers(&self.lines, &mut slots) {
            Ok(httparse::Status::Complete((_, fields))) => kept(fields),
            Ok(httparse::Status::Partial) => return Err(Refusal::FieldName),
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooManyTrailers),
            Err(error) => return Err(diagnose::field(error, &self.lines)),
        };
        self.lines = kept;
        Ok(())
    }
}

/// A receiver that takes trailers for headers must not be told another length, host or client by them.
fn kept(fields: &[httparse::Header<'_>]) -> Vec<u8> {
    let is_harmless = |field: &&httparse::Header<'_>| {
        matches!(Known::of(field.name), Known::Other | Known::Accept)
    };
    let mut lines = Vec::new();
    for field in fields.iter().filter(is_harmless) {
        super::write::append_field(&mut lines, field.name, field.value);
    }
    lines
}
