//! Medians, and how sure they are.

use fastrand::Rng;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 10_000;

/// The same for every run, so that the same measurements give the same report.
const SEED: u64 = 1;

/// The middle 95 % of the resamples.
const LOW: f64 = 0.025;
const HIGH: f64 = 0.975;

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The percentile bootstrap of the median (Efron 1979). None of nothing.
pub(crate) fn estimate(values: &[f64]) -> Option<Estimate> {
    let middle = median(values)?;
    let mut random = Rng::with_seed(SEED);
    let resamples = (0..RESAMPLES).filter_map(|_| median(&resample(values, &mut random)));
    let medians = sorted(resamples.collect());
    Some(Estimate {
        median: middle,
        low: quantile(&medians, LOW),
        high: quantile(&medians, HIGH),
    })
}

/// None of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let values = sorted(values.to_vec());
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return Some(values[middle]);
    }
    Some(f64::midpoint(values[middle - 1], values[middle]))
}

/// As many values, drawn with replacement.
fn resample(values: &[f64], random: &mut Rng) -> Vec<f64> {
    let draw = |_: &f64| values[random.usize(..values.len())];
    values.iter().map(draw).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values, of which there is at least one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a few thousand"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    sorted[(last as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_value_or_between_the_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// Values that agree are sure, values that do not are not; the interval holds the median either way.
    #[test]
    fn an_interval_is_as_wide_as_the_values_are_far_apart() {
        let sure = estimate(&[1.0; 15]).expect("there are values");
        assert_eq!((sure.low, sure.median, sure.high), (1.0, 1.0, 1.0));
        let spread: Vec<f64> = (0..15).map(f64::from).collect();
        let unsure = estimate(&spread).expect("there are values");
        assert_eq!(unsure.median, 7.0);
        assert!(unsure.low < 6.0 && unsure.high > 8.0, "{unsure:?}");
        assert!(unsure.low > 0.0 && unsure.high < 14.0, "{unsure:?}");
    }

    /// For 15 values, the exact 95 % interval of the median reaches from the 4th to the 12th (binomial distribution).
    #[test]
    fn the_interval_is_near_the_exact_one() {
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        let estimate = estimate(&values).expect("there are values");
        assert!((3.0..=5.0).contains(&estimate.low), "{estimate:?}");
        assert!((11.0..=13.0).contains(&estimate.high), "{estimate:?}");
    }
}
