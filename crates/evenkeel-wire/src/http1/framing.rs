//! Where a body ends: what `Content-Length` and `Transfer-Encoding` say, if they can be understood in one way only.

use super::{Fields, Known, Refusal, Version};

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is none.
    None,
    /// It has so many bytes, at least one.
    Length(u64),
    /// It comes in chunks, and perhaps trailers.
    Chunked,
    /// It ends with the connection. Answers only.
    UntilClose,
}

/// What the two headers say of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Length(u64),
    Chunked,
}

impl Said {
    pub(super) fn of(fields: Fields<'_>, version: Version) -> Result<Self, Refusal> {
        match (length(fields)?, is_chunked(fields, version)?) {
            (None, false) => Ok(Self::Nothing),
            (Some(length), false) => Ok(Self::Length(length)),
            (None, true) => Ok(Self::Chunked),
            (Some(_), true) => Err(Refusal::LengthAndChunked),
        }
    }
}

/// Several that are the same byte for byte count as one; a list counts as none.
fn length(fields: Fields<'_>) -> Result<Option<u64>, Refusal> {
    let mut lengths = fields.of(Known::ContentLength);
    let Some(first) = lengths.next() else {
        return Ok(None);
    };
    let length = number(first).ok_or(Refusal::Length)?;
    match lengths.find(|other| *other != first) {
        None => Ok(Some(length)),
        Some(other) if number(other).is_none() => Err(Refusal::Length),
        Some(_) => Err(Refusal::LengthsDiffer),
    }
}

/// Digits and nothing else: no sign, no white space, no list.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn is_chunked(fields: Fields<'_>, version: Version) -> Result<bool, Refusal> {
    let mut codings = fields.of(Known::TransferEncoding);
    let Some(coding) = codings.next() else {
        return Ok(false);
    };
    if version < Version::Http11 {
        return Err(Refusal::TransferEncodingTooOld);
    }
    if !coding.eq_ignore_ascii_case(b"chunked") || codings.next().is_some() {
        return Err(Refusal::TransferEncoding);
    }
    Ok(true)
}
