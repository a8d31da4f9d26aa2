//! Packets: a length, a sequence number, a payload. And what payloads are made of.
//!
//! Source: MySQL Internals, "MySQL Packets" and "Integer types". A payload beyond [`PAYLOAD_BYTES_MAX`] is refused, so the
//! protocol's continuation of payloads of 16 MiB does not occur.

use std::fmt;

/// The most bytes of one payload that are read; what a check asks for is answered in a few dozen.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// The peer does not speak the protocol, or not within the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A payload is larger than [`PAYLOAD_BYTES_MAX`].
    PayloadTooLong(usize),
    /// A packet has not the number that is its turn.
    OutOfSequence,
    /// A payload ends in the middle of what it should hold, or holds what it never should.
    Payload(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PayloadTooLong(bytes) => write!(f, "a packet of {bytes} bytes"),
            Self::OutOfSequence => f.write_str("a packet out of sequence"),
            Self::Payload(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Malformed {}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'b> {
    pub(super) sequence: u8,
    pub(super) payload: &'b [u8],
}

/// The first packet of `bytes`, and what follows it; `None` while it is not complete.
pub(super) fn split_packet(bytes: &[u8]) -> Result<Option<(Packet<'_>, &[u8])>, Malformed> {
    let Some((&[low, middle, high, sequence], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
    if length > PAYLOAD_BYTES_MAX {
        return Err(Malformed::PayloadTooLong(length));
    }
    Ok(rest
        .split_at_checked(length)
        .map(|(payload, rest)| (Packet { sequence, payload }, rest)))
}

/// Appends a packet. What is sent is far shorter than the longest payload: a name, a password's hash, a query.
pub(super) fn append_packet(into: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    debug_assert!(payload.len() < 1 << 24, "a longer payload is never made");
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a payload that is sent has far fewer than 2^24 bytes"
    )]
    let [low, middle, high, _] = (payload.len() as u32).to_le_bytes();
    into.extend_from_slice(&[low, middle, high, sequence]);
    into.extend_from_slice(payload);
}

/// Takes a payload apart from its beginning; `None` when it has not what is asked for.
pub(super) struct Fields<'p>(pub(super) &'p [u8]);

impl<'p> Fields<'p> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn two_bytes(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    pub(super) fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(chunk)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'p [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Up to a NUL, which is taken too; or, where there is none, all that is left.
    pub(super) fn until_nul(&mut self) -> &'p [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }

    /// A number with its own length in front.
    pub(super) fn number(&mut self) -> Option<u64> {
        match self.byte()? {
            small @ 0..=0xfa => Some(u64::from(small)),
            0xfc => self.two_bytes().map(u64::from),
            0xfd => {
                let [low, middle, high] = self.chunk()?;
                Some(u64::from(u32::from_le_bytes([low, middle, high, 0])))
            }
            0xfe => self.chunk().map(u64::from_le_bytes),
            _ => None,
        }
    }

    /// Bytes with their number in front; the inner `None` is SQL's NULL.
    pub(super) fn value(&mut self) -> Option<Option<&'p [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.byte();
            return Some(None);
        }
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet is there as soon as its last byte is, and not before; what follows it is left alone.
    #[test]
    fn a_packet_is_complete_with_its_last_byte() {
        let mut bytes = Vec::new();
        append_packet(&mut bytes, 7, b"hello");
        for end in 0..bytes.len() {
            assert_eq!(split_packet(&bytes[..end]), Ok(None));
        }
        bytes.push(1);

        let packet = Packet {
            sequence: 7,
            payload: b"hello",
        };
        assert_eq!(split_packet(&bytes), Ok(Some((packet, &[1][..]))));
    }

    /// A peer that announces more than is ever needed is refused before it sends it.
    #[test]
    fn a_long_payload_is_refused_by_its_header() {
        let announced = PAYLOAD_BYTES_MAX + 1;
        let [low, middle, high, _] = u32::try_from(announced).unwrap().to_le_bytes();
        assert_eq!(
            split_packet(&[low, middle, high, 0]),
            Err(Malformed::PayloadTooLong(announced))
        );
    }

    /// Every length of number, and what is none.
    #[test]
    fn numbers_carry_their_length() {
        let number = |bytes: &[u8]| Fields(bytes).number();
        assert_eq!(number(&[0xfa]), Some(0xfa));
        assert_eq!(number(&[0xfc, 1, 2]), Some(0x201));
        assert_eq!(number(&[0xfd, 1, 2, 3]), Some(0x3_0201));
        assert_eq!(number(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0]), Some(1));
        assert_eq!(number(&[0xfc, 1]), None);
        assert_eq!(number(&[0xfb]), None);
        assert_eq!(number(&[]), None);
    }
}
