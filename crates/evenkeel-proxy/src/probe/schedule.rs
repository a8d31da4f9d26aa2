//! When an endpoint is asked: by chance within bounds, so that probes neither begin together nor fall into step.

use std::time::Duration;

/// However many endpoints there are, each has been asked for the first time within this.
const SPREAD_MAX: Duration = Duration::from_secs(1);
/// What one more endpoint adds to the time over which the first questions are spread: a few are asked at once.
const SPREAD_PER_ENDPOINT: Duration = Duration::from_millis(4);
/// A pause is up to a tenth shorter or longer.
const JITTER: f64 = 0.1;

/// How long an endpoint waits for its first question when `endpoints` begin to be probed at one time.
pub(super) fn first_pause(
    every: Duration,
    endpoints: usize,
    random: &mut fastrand::Rng,
) -> Duration {
    let endpoints = u32::try_from(endpoints).unwrap_or(u32::MAX);
    let spread = SPREAD_PER_ENDPOINT.saturating_mul(endpoints);
    spread.min(SPREAD_MAX).min(every).mul_f64(random.f64())
}

/// The next question after other settings have come: soon, and not all together.
pub(super) fn soon(every: Duration, random: &mut fastrand::Rng) -> Duration {
    first_pause(every, usize::MAX, random)
}

/// From the first question to the second: at least half of `every`, so that the many processes that start at one moment are out of
/// step at once.
pub(super) fn second_pause(every: Duration, random: &mut fastrand::Rng) -> Duration {
    every.mul_f64(0.5 + random.f64() / 2.0)
}

/// From any later question to the next.
pub(super) fn pause(every: Duration, random: &mut fastrand::Rng) -> Duration {
    every.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(2);

    fn drawn(draw: impl FnMut() -> Duration) -> (Duration, Duration) {
        let mut all: Vec<Duration> = std::iter::repeat_with(draw).take(4096).collect();
        all.sort();
        (all[0], all[all.len() - 1])
    }

    /// Checks that all begin at one moment, and stay together. Here 4,096 endpoints begin over a second; two are asked
    /// at once.
    #[test]
    fn fault_33_first_questions_are_no_herd() {
        let mut random = fastrand::Rng::with_seed(33);
        let (first, last) = drawn(|| first_pause(EVERY, 4096, &mut random));
        assert!(first < Duration::from_millis(5));
        assert!(last > Duration::from_millis(950) && last <= Duration::from_secs(1));

        let (_, last) = drawn(|| first_pause(EVERY, 2, &mut random));
        assert!(last <= Duration::from_millis(8));
        let (_, last) = drawn(|| first_pause(Duration::from_millis(50), 4096, &mut random));
        assert!(last <= Duration::from_millis(50));
    }

    /// Pauses differ, and keep to `every` in the mean.
    #[test]
    fn fault_33_pauses_have_jitter() {
        let mut random = fastrand::Rng::with_seed(33);
        let (shortest, longest) = drawn(|| pause(EVERY, &mut random));
        assert!(shortest >= Duration::from_millis(1800) && shortest < Duration::from_millis(1810));
        assert!(longest <= Duration::from_millis(2200) && longest > Duration::from_millis(2190));
        let (shortest, longest) = drawn(|| second_pause(EVERY, &mut random));
        assert!(shortest >= EVERY / 2 && longest <= EVERY);
    }
}
