//! Durations, counted in buckets that are 1/128 of their value wide: cheap enough for a hundred thousand exchanges a second.

const PRECISION_BITS: u32 = 7;
const BUCKETS_PER_DOUBLING: usize = 1 << PRECISION_BITS;
const BUCKETS: usize = (u64::BITS - PRECISION_BITS + 1) as usize * BUCKETS_PER_DOUBLING;

/// Counts of values, from which quantiles are read to about 1 %.
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }

    pub(crate) fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The smallest value that at least this many of a thousand do not exceed; 0 if nothing was recorded.
    pub(crate) fn per_mille(&self, share: u64) -> u64 {
        let wanted = (self.total * share).div_ceil(1000);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, smallest)
    }
}

/// Values below 128 have a bucket each; above, every doubling is cut into 128 buckets.
const fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - (value | 1).leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    shift as usize * BUCKETS_PER_DOUBLING + low_bits(value >> shift)
}

/// The bits that are left by the shift are at most eight.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most eight bits are left"
)]
const fn low_bits(shifted: u64) -> usize {
    shifted as usize
}

/// The smallest value of a bucket: the inverse of [`bucket`].
const fn smallest(bucket: usize) -> u64 {
    let doubling = bucket / BUCKETS_PER_DOUBLING;
    if doubling < 2 {
        return bucket as u64;
    }
    let shift = doubling - 1;
    ((bucket - shift * BUCKETS_PER_DOUBLING) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bucket begins where the one before it ends, up to the largest value.
    #[test]
    fn buckets_are_in_order_and_none_is_missing() {
        let mut before = None;
        for index in 0..bucket(u64::MAX) {
            let value = smallest(index);
            assert_eq!(bucket(value), index);
            assert!(before.is_none_or(|before| before < value));
            before = Some(value);
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    /// Of the values 1 to 1,000,000, the median and the 99th percentile are found to 1 %.
    #[test]
    fn quantiles_are_near_the_exact_ones() {
        let mut histogram = Histogram::new();
        (1..=1_000_000).for_each(|value| histogram.record(value));
        for (share, exact) in [(500, 500_000), (990, 990_000)] {
            let found = histogram.per_mille(share);
            assert!(found <= exact && found >= exact - exact / 100, "{found}");
        }
    }
}
