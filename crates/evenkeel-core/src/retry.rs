//! Attempts: whether a session whose endpoint failed tries again, and when.
//!
//! Pure arithmetic. Whether a request may be repeated at all (nothing was written, or it is safe to) is the protocol's
//! judgement and comes before this one.

use std::time::Duration;

use fastrand::Rng;

/// How often a session tries, and how long it holds back before it asks the same endpoint again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPolicy {
    /// Attempts in all; 1 is no second one. 0 counts as 1.
    pub attempts: usize,
    /// Before the first attempt on an endpoint that has failed this session already; it doubles with each further one.
    pub back_off: Duration,
    /// What the doubling stops at.
    pub back_off_max: Duration,
}

impl Default for AttemptPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            back_off: Duration::from_millis(100),
            back_off_max: Duration::from_secs(1),
        }
    }
}

/// What is left to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// A usable endpoint that this session has not tried.
    Another,
    /// Only those that it has tried, `repeats` attempts of this session having been repetitions already.
    TriedOnly {
        /// Attempts so far on an endpoint that had failed this session before.
        repeats: u32,
    },
    /// None at all.
    Nobody,
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAttempt {
    /// Ask for an endpoint at once.
    Now,
    /// Ask for an endpoint after this long: a connect loop without a pause helps nobody.
    After(Duration),
    /// Tell the client.
    GiveUp,
}

impl AttemptPolicy {
    /// After the `made`-th attempt of a session has failed.
    pub fn after_failure(&self, made: usize, candidates: Candidates, rng: &mut Rng) -> NextAttempt {
        if made >= self.attempts {
            return NextAttempt::GiveUp;
        }
        match candidates {
            Candidates::Another => NextAttempt::Now,
            Candidates::TriedOnly { repeats } => NextAttempt::After(self.pause(repeats, rng)),
            Candidates::Nobody => NextAttempt::GiveUp,
        }
    }

    /// Between half and all of the doubled back-off, so that sessions which failed together don't return together.
    fn pause(&self, repeats: u32, rng: &mut Rng) -> Duration {
        let doubled = self.back_off.saturating_mul(1 << repeats.min(20));
        let most = doubled.min(self.back_off_max);
        let half = most / 2;
        let spread = u64::try_from((most - half).as_micros()).unwrap_or(u64::MAX);
        half + Duration::from_micros(rng.u64(..=spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: AttemptPolicy = AttemptPolicy {
        attempts: 4,
        back_off: Duration::from_millis(100),
        back_off_max: Duration::from_millis(300),
    };

    /// The client is not kept waiting while somebody else may answer.
    #[test]
    fn another_endpoint_is_asked_at_once() {
        let next = POLICY.after_failure(1, Candidates::Another, &mut Rng::with_seed(1));
        assert_eq!(next, NextAttempt::Now);
    }

    /// Fault #12: asking the same endpoint again has a pause, which grows and is bounded.
    #[test]
    fn the_same_endpoint_is_asked_again_after_a_growing_bounded_pause() {
        let mut rng = Rng::with_seed(1);
        for (repeats, most) in [(0, 100), (1, 200), (2, 300), (40, 300)] {
            let next = POLICY.after_failure(1, Candidates::TriedOnly { repeats }, &mut rng);
            let NextAttempt::After(pause) = next else {
                panic!("no pause before repeat {repeats}");
            };
            let bounds = Duration::from_millis(most / 2)..=Duration::from_millis(most);
            assert!(bounds.contains(&pause), "{pause:?}");
        }
    }

    /// Four attempts and no fifth; and none without anybody to ask.
    #[test]
    fn attempts_are_bounded() {
        let mut rng = Rng::with_seed(1);
        let after = |made, candidates, rng: &mut Rng| POLICY.after_failure(made, candidates, rng);
        assert_eq!(after(3, Candidates::Another, &mut rng), NextAttempt::Now);
        assert_eq!(after(4, Candidates::Another, &mut rng), NextAttempt::GiveUp);
        assert_eq!(after(1, Candidates::Nobody, &mut rng), NextAttempt::GiveUp);
    }
}
