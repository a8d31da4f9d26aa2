//! Effective weight: how failures fade an endpoint out, and how it comes back.
//!
//! A preference, never availability: whoever reads it decides what weight 0 means among the others (`roster.rs`).

use std::time::Duration;

use crate::cluster::TrialPolicy;
use crate::fault::{self, Fault};
use crate::lease::LeaseKind;
use crate::units::{Time, Weight};

/// One endpoint's effective weight and, while that is 0, its trials.
#[derive(Clone, Debug)]
pub(crate) struct Fade {
    effective: u32,
    /// Between two trials, at present. Meaningful only at effective weight 0.
    interval: Duration,
    /// When the next trial is due. Meaningful only at effective weight 0.
    next_trial: Time,
}

impl Fade {
    /// At full strength.
    pub(crate) const fn full(weight: Weight) -> Self {
        Self {
            effective: weight.get(),
            interval: Duration::ZERO,
            next_trial: Time::NEVER,
        }
    }

    /// Between 0 and the configured weight.
    pub(crate) const fn effective(&self) -> u32 {
        self.effective
    }

    pub(crate) const fn is_floored(&self) -> bool {
        self.effective == 0
    }

    pub(crate) const fn next_trial(&self) -> Time {
        self.next_trial
    }

    /// One less. At 0, the next trial is due a while after this failure; only failed trials lengthen that while, since
    /// sessions that were under way when the endpoint died say nothing new.
    pub(crate) fn failed(&mut self, kind: LeaseKind, policy: &TrialPolicy, now: Time) {
        let before = self.effective;
        self.effective = before.saturating_sub(1);
        if !self.is_floored() {
            return;
        }
        if before > 0 {
            self.interval = policy.every;
        } else if kind == LeaseKind::Trial {
            self.interval = self.interval.saturating_mul(2);
        }
        self.schedule(policy, now);
    }

    /// One more, up to the configured weight.
    pub(crate) fn succeeded(&mut self, weight: Weight) {
        let max = if fault::injected(Fault::WeightOvershoots) {
            u32::MAX
        } else {
            weight.get()
        };
        self.effective = (self.effective + 1).min(max);
    }

    /// A trial is given out: the next one is due after the interval, however this one ends.
    pub(crate) fn claim_trial(&mut self, policy: &TrialPolicy, now: Time) {
        self.schedule(policy, now);
    }

    /// The configured weight changed: the same part of the new one, at least 1 if it was at least 1.
    pub(crate) fn reweigh(&mut self, old: Weight, new: Weight) {
        if old == Weight::ZERO {
            *self = Self::full(new);
        } else if self.effective > 0 {
            let scaled = u64::from(self.effective) * u64::from(new.get()) / u64::from(old.get());
            let least = u64::from(new.get().min(1));
            self.effective = u32::try_from(scaled.max(least)).unwrap_or(u32::MAX);
        }
    }

    /// As it was in another process. At 0, the next trial is due after `every`.
    pub(crate) fn restore(&mut self, effective: u32, weight: Weight, every: Duration, now: Time) {
        self.effective = effective.min(weight.get());
        if self.is_floored() {
            self.interval = every.max(INTERVAL_MIN);
            self.next_trial = now.after(self.interval);
        }
    }

    fn schedule(&mut self, policy: &TrialPolicy, now: Time) {
        self.interval = self.interval.min(policy.every_max).max(INTERVAL_MIN);
        self.next_trial = now.after(self.interval);
    }
}

/// Less would make trials the ordinary case.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: TrialPolicy = TrialPolicy {
        every: Duration::from_secs(1),
        every_max: Duration::from_secs(4),
    };

    fn weight(weight: u32) -> Weight {
        Weight::new(weight).unwrap()
    }

    fn seconds(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    /// Without a floor, an endpoint that failed a million times would need a million successes to come back.
    #[test]
    fn effective_weight_has_a_floor_and_a_ceiling() {
        let mut fade = Fade::full(weight(2));
        for _ in 0..1000 {
            fade.failed(LeaseKind::Ordinary, &POLICY, Time::ZERO);
        }
        assert_eq!(fade.effective(), 0);
        for _ in 0..1000 {
            fade.succeeded(weight(2));
        }
        assert_eq!(fade.effective(), 2);
    }

    /// 1 s after the failure, then 2 s, 4 s, and 4 s again.
    #[test]
    fn failed_trials_double_the_interval_up_to_its_cap() {
        let mut fade = Fade::full(Weight::ONE);
        fade.failed(LeaseKind::Ordinary, &POLICY, seconds(10));
        assert_eq!(fade.next_trial(), seconds(11));
        for (at, next) in [(11, 13), (13, 17), (17, 21)] {
            fade.failed(LeaseKind::Trial, &POLICY, seconds(at));
            assert_eq!(fade.next_trial(), seconds(next));
        }
    }

    /// Sessions that were under way when the endpoint died put its trial off, but do not lengthen the interval.
    #[test]
    fn late_failures_of_ordinary_leases_do_not_double_the_interval() {
        let mut fade = Fade::full(Weight::ONE);
        for at in 10..20 {
            fade.failed(LeaseKind::Ordinary, &POLICY, seconds(at));
            assert_eq!(fade.next_trial(), seconds(at + 1));
        }
    }

    /// After a success the next fall starts with the short interval again.
    #[test]
    fn a_success_forgets_the_long_interval() {
        let mut fade = Fade::full(Weight::ONE);
        fade.failed(LeaseKind::Ordinary, &POLICY, seconds(0));
        fade.failed(LeaseKind::Trial, &POLICY, seconds(1));
        fade.succeeded(Weight::ONE);
        fade.failed(LeaseKind::Ordinary, &POLICY, seconds(10));
        assert_eq!(fade.next_trial(), seconds(11));
    }

    /// Half of 10 becomes half of 4; one of a million stays at least one; nothing stays nothing.
    #[test]
    fn a_new_configured_weight_keeps_the_proportion() {
        let mut half = Fade::full(weight(10));
        (0..5).for_each(|_| half.failed(LeaseKind::Ordinary, &POLICY, Time::ZERO));
        half.reweigh(weight(10), weight(4));
        assert_eq!(half.effective(), 2);

        let mut tiny = Fade::full(Weight::MAX);
        (0..999_999).for_each(|_| tiny.failed(LeaseKind::Ordinary, &POLICY, Time::ZERO));
        tiny.reweigh(Weight::MAX, weight(3));
        assert_eq!(tiny.effective(), 1);

        let mut floored = Fade::full(Weight::ONE);
        floored.failed(LeaseKind::Ordinary, &POLICY, Time::ZERO);
        floored.reweigh(Weight::ONE, weight(7));
        assert_eq!(floored.effective(), 0);
    }

    /// An endpoint that was at weight 0 by configuration has not failed: it starts at its new weight.
    #[test]
    fn an_endpoint_that_had_weight_zero_starts_at_full_strength() {
        let mut fade = Fade::full(Weight::ZERO);
        fade.reweigh(Weight::ZERO, weight(3));
        assert_eq!(fade.effective(), 3);
    }
}
