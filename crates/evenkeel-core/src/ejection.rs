//! When failures in a row take an endpoint out: the arithmetic of [`EjectionPolicy`], without any state of a cluster.

use std::time::Duration;

use crate::cluster::EjectionPolicy;

/// How an endpoint has done lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streak {
    /// Failures since the last success or ejection.
    failures: u32,
    /// Ejections since the last success.
    ejections: u32,
}

impl Streak {
    /// As another process left it: so many ejections since the last success.
    pub(crate) const fn after_ejections(ejections: u32) -> Self {
        Self {
            failures: 0,
            ejections,
        }
    }

    /// Ejections since the last success.
    pub(crate) const fn ejections(&self) -> u32 {
        self.ejections
    }

    pub(crate) const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// A success forgives everything, the length of the next ejection included.
    pub(crate) const fn succeeded(&mut self) {
        self.failures = 0;
        self.ejections = 0;
    }

    pub(crate) fn is_too_long(&self, policy: &EjectionPolicy) -> bool {
        self.failures >= policy.failures.max(1)
    }

    pub(crate) const fn is_clean(&self) -> bool {
        self.failures == 0 && self.ejections == 0
    }

    /// Counts an ejection and says how long it lasts. Failures are counted from 0 again, so that the endpoint can be
    /// ejected again after it has returned.
    pub(crate) fn eject(&mut self, policy: &EjectionPolicy) -> Duration {
        let doublings = self.ejections.min(31);
        self.ejections = self.ejections.saturating_add(1);
        self.failures = 0;
        policy.base.saturating_mul(1 << doublings).min(policy.max)
    }
}

impl EjectionPolicy {
    /// How many of `endpoints` may be out at one time: rounded down, so that the share is never passed.
    ///
    /// At 50 % that is one of two, one of three, two of four.
    pub(crate) fn quota(&self, endpoints: usize) -> usize {
        let share = usize::try_from(self.share_max_percent.min(100)).unwrap_or(100);
        endpoints * share / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: EjectionPolicy = EjectionPolicy {
        failures: 3,
        base: Duration::from_secs(10),
        max: Duration::from_secs(60),
        share_max_percent: 50,
    };

    /// Fault #29: 10 s, 20 s, 40 s, then the cap for ever; after a success 10 s again.
    #[test]
    fn ejections_grow_up_to_the_cap_and_a_success_resets_them() {
        let mut streak = Streak::default();
        let spans: Vec<u64> = (0..40).map(|_| streak.eject(&POLICY).as_secs()).collect();
        assert_eq!(&spans[..5], [10, 20, 40, 60, 60]);
        assert_eq!(spans[39], 60);
        streak.succeeded();
        assert_eq!(streak.eject(&POLICY).as_secs(), 10);
    }

    /// Fault #29: a success between failures starts the count again, so intermixed results never trip.
    #[test]
    fn only_failures_in_a_row_count() {
        let mut streak = Streak::default();
        for _ in 0..10 {
            streak.failed();
            streak.failed();
            streak.succeeded();
        }
        assert!(!streak.is_too_long(&POLICY));
        (0..3).for_each(|_| streak.failed());
        assert!(streak.is_too_long(&POLICY));
    }

    /// At least one of two, never more than the share.
    #[test]
    fn the_quota_rounds_down() {
        let quotas: Vec<usize> = (0..=5).map(|endpoints| POLICY.quota(endpoints)).collect();
        assert_eq!(quotas, [0, 0, 1, 1, 2, 2]);
    }
}
