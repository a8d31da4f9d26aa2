//! CRC-32C (Castagnoli), as RFC 4960, Appendix B, has it.

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Of all these parts in a row.
pub(super) fn crc32c<const N: usize>(parts: [&[u8]; N]) -> u32 {
    let bytes = parts.into_iter().flatten();
    !bytes.fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            // Subtracts the polynomial where the lowest bit says so.
            (sum >> 1) ^ (POLYNOMIAL & (sum & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the algorithm, and a vector of RFC 3720, Appendix B.4; parts make no difference.
    #[test]
    fn known_sums_come_out() {
        assert_eq!(crc32c([b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c([&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c([b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
