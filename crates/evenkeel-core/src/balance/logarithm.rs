//! A logarithm in whole numbers, the same on every machine.
//!
//! `f64::ln` may differ in the last bit between C libraries, and one bit can move a key to another endpoint; two
//! balancers must never disagree about that. Here the compiler fills a table of log₂ by repeated squaring of integers,
//! and between its entries the line is straight: the same bits everywhere, within 0.1 % of the real value.

/// −log₂(`uniform` / 2⁶⁴) in 2⁻⁴⁸ths: of a uniform number, an exponentially distributed one. Never grows with `uniform`.
#[inline]
pub(super) fn negative_log2(uniform: u64) -> u64 {
    let uniform = uniform | 1; // 0 has no logarithm
    let zeros = uniform.leading_zeros();
    let fraction = (uniform << zeros) << 1;
    let index = (fraction >> (u64::BITS - TABLE_BITS)) as usize;
    let within = (fraction << TABLE_BITS) >> (u64::BITS - WITHIN_BITS);
    let (low, high) = (LOG2[index], LOG2[index + 1]);
    let log_of_fraction = low + (((high - low) * within) >> WITHIN_BITS);
    ((u64::from(zeros) + 1) << FRACTION_BITS) - log_of_fraction
}

/// What [`negative_log2`] is never below, in 2⁻³⁶ths and at a fraction of its cost: −log₂ x ≥ 1 − x for x below 1, and
/// straight lines between the table's entries only make it larger.
#[inline]
pub(super) const fn negative_log2_floor(uniform: u64) -> u64 {
    !uniform >> (u64::BITS - FLOOR_BITS)
}

/// After the point of a floor; a result of [`negative_log2`] has [`FLOOR_SHIFT`] more.
const FLOOR_BITS: u32 = 36;

/// From the scale of [`negative_log2`] to that of its floor.
pub(super) const FLOOR_SHIFT: u32 = FRACTION_BITS - FLOOR_BITS;

const TABLE_BITS: u32 = 10;
const TABLE_SIZE: usize = 1 << TABLE_BITS;

/// Results have this many bits after the point, and 7 before it.
const FRACTION_BITS: u32 = 48;

/// How finely a place between two table entries is told: (high − low) < 2³⁹, times 2²⁴ fits 64 bits.
const WITHIN_BITS: u32 = 24;

/// log₂(1 + i / 1024) in 2⁻⁴⁸ths.
static LOG2: [u64; TABLE_SIZE + 1] = table();

const fn table() -> [u64; TABLE_SIZE + 1] {
    let mut table = [0; TABLE_SIZE + 1];
    let mut index = 0;
    while index < TABLE_SIZE {
        table[index] = log2_of(index as u64);
        index += 1;
    }
    table[TABLE_SIZE] = 1 << FRACTION_BITS;
    table
}

/// Bit by bit: squaring a number doubles its logarithm; if that passes 2, the next bit is 1 and the number is halved.
const fn log2_of(index: u64) -> u64 {
    const ONE: u128 = 1 << 62;
    let mut number = ONE + (index as u128 * ONE) / TABLE_SIZE as u128;
    let mut log = 0;
    let mut bit = 0;
    while bit < FRACTION_BITS {
        number = (number * number) >> 62;
        log <<= 1;
        if number >= 2 * ONE {
            number >>= 1;
            log |= 1;
        }
        bit += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCALE: f64 = (1_u64 << FRACTION_BITS) as f64;

    /// Powers of two are exact: −log₂(1/2) is 1, −log₂(2⁻⁶⁴) is 64.
    #[test]
    fn powers_of_two_are_exact() {
        assert_eq!(negative_log2(1 << 63) >> FRACTION_BITS, 1);
        assert_eq!(negative_log2(1), 64 << FRACTION_BITS);
    }

    proptest! {
        /// Near the floating-point value, relative to it, also close to 1 where the largest weights are decided.
        #[test]
        fn close_to_the_real_logarithm(uniform: u64, shift in 0_u32..30) {
            let uniform = u64::MAX - (uniform >> shift);
            prop_assume!(uniform > 0);
            let real = 64.0 - (uniform as f64).log2();
            let ours = negative_log2(uniform) as f64 / SCALE;
            prop_assert!((ours - real).abs() <= real * 0.002 + 1e-9, "{ours} {real}");
        }

        /// Small and large, and next to 1, where there is little between the two.
        #[test]
        fn the_floor_is_never_above(uniform: u64, shift in 0_u32..64) {
            for uniform in [uniform >> shift, u64::MAX - (uniform >> shift)] {
                let floor = negative_log2_floor(uniform) << FLOOR_SHIFT;
                prop_assert!(floor <= negative_log2(uniform));
            }
        }

        /// A larger number never has a larger result: equal weights can be compared without the logarithm.
        #[test]
        fn never_grows(a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(negative_log2(low) >= negative_log2(high));
            prop_assert!(negative_log2(low) >= negative_log2(low.saturating_add(1)));
        }
    }
}
