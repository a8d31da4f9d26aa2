//! The bytes of streams and of bodies: which byte stands where is known, so that lost, doubled and swapped ones are noticed.
//!
//! Comparing every byte would cost the receiver as much as receiving. The ends of every piece that is read are compared; since
//! the period is a prime number, a piece that is missing or comes twice shifts all that follows.

use anyhow::{Result, bail};

/// The stream repeats itself after so many bytes: a prime number, so that no run of pages or buffers is a whole number of them.
const PERIOD: usize = 65_521;

/// The longest piece that is sent at once.
pub(crate) const PIECE_MAX: usize = 256 * 1024;

/// Bytes compared at either end of a piece.
const COMPARED: usize = 64;

/// The stream's bytes, as far as one piece from any place needs them.
pub(crate) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new() -> Self {
        let period: Vec<u8> = (0..PERIOD).map(byte).collect();
        Self {
            bytes: period
                .iter()
                .copied()
                .cycle()
                .take(PERIOD + PIECE_MAX)
                .collect(),
        }
    }

    /// The piece that begins at this place of the stream.
    pub(crate) fn piece(&self, place: u64) -> &[u8] {
        let start = start(place);
        &self.bytes[start..start + PIECE_MAX]
    }

    /// Checks the ends of a piece that was read at this place.
    pub(crate) fn check(&self, place: u64, piece: &[u8]) -> Result<()> {
        let expected = &self.piece(place)[..piece.len()];
        let first = piece.len().min(COMPARED);
        let last = piece.len() - first;
        if piece[..first] != expected[..first] || piece[last..] != expected[last..] {
            bail!("wrong bytes in the stream, near byte {place}");
        }
        Ok(())
    }
}

/// The middle bits of a product: without a pattern that a shift by a few bytes would keep.
fn byte(place: usize) -> u8 {
    let product = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product.to_be_bytes()[2]
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the remainder is below PERIOD"
)]
const fn start(place: u64) -> usize {
    (place % PERIOD as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that loses a run of bytes, whatever its length up to a piece, is noticed at the next piece.
    #[test]
    fn lost_bytes_are_noticed() {
        let pattern = Pattern::new();
        for lost in [1, 2, 64, 4096, 16_384, 65_536, 131_072, 262_144] {
            assert!(
                pattern
                    .check(1000, &pattern.piece(1000 + lost)[..4096])
                    .is_err(),
                "{lost}"
            );
        }
    }

    #[test]
    fn the_stream_itself_is_right_everywhere() {
        let pattern = Pattern::new();
        for place in [0, 1, 65_520, 65_521, 1 << 40] {
            pattern
                .check(place, pattern.piece(place))
                .expect("these are its own bytes");
        }
    }
}
