//! What the cluster thinks of one endpoint: whether it stands, is ejected or warms up, its effective weight, its failures,
//! its health.
//!
//! Plain data behind the roster's lock. What the operator says about an endpoint (in service or not, weight, backup) is
//! not here but in `overrides.rs` and the configuration; how many use it is in `endpoint.rs`.
//!
//! Two things can be in an endpoint's way beside each other: an ejection, which sessions bring about and time ends, and
//! its health, which probes alone decide. An endpoint that was down and is well again has nothing held against it: its
//! ejection is over, its effective weight is the configured one, and it warms up.

use std::time::Duration;

use crate::cluster::{EjectionPolicy, HealthPolicy, TrialPolicy};
use crate::ejection::Streak;
use crate::fade::Fade;
use crate::fault::{self, Fault};
use crate::health::{Health, HealthChange, ProbeResult};
use crate::kept::{KeptEndpoint, KeptStanding};
use crate::lease::{Failure, LeaseKind};
use crate::units::{Time, Weight};

/// Whether an endpoint stands in the ordinary way, as far as sessions can tell. Its health is beside it (`health.rs`).
///
/// ```text
///  process start ───────────────────────────▶ Up ──────────────┐
///                                             ▲ ▲              │ failures in a row
///                            window is over   │ │ no slow      │ (also while warming up)
///                                             │ │ start        ▼
///  added by a reload, ────────────▶ SlowStart ┘ └────────── Ejected
///  no longer down,                    ▲                        │
///  no longer disabled                 └────────────────────────┘ its time is over
/// ```
///
/// The window of a slow start begins when the endpoint may be used: not before its first passed probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Up,
    /// `ahead` is how far it had come in another process.
    SlowStart {
        since: Time,
        ahead: Duration,
    },
    Ejected {
        until: Time,
    },
}

impl Standing {
    /// For an endpoint that is new, or back.
    fn warming_up(window: Duration, now: Time) -> Self {
        if window.is_zero() {
            Self::Up
        } else {
            Self::SlowStart {
                since: now,
                ahead: Duration::ZERO,
            }
        }
    }

    /// How it is told to another process.
    fn kept(self, now: Time) -> KeptStanding {
        match self {
            Self::Up => KeptStanding::Up,
            Self::SlowStart { since, ahead } => KeptStanding::SlowStart {
                elapsed: now.since(since).saturating_add(ahead),
            },
            Self::Ejected { until } => KeptStanding::Ejected {
                remaining: until.since(now),
            },
        }
    }

    /// The part of its weight that an endpoint in this state is worth.
    fn percent(self, window: Duration, now: Time) -> u32 {
        match self {
            Self::SlowStart { since, ahead } => {
                ramp_percent(now.since(since).saturating_add(ahead), window)
            }
            Self::Up | Self::Ejected { .. } => FULL_PERCENT,
        }
    }
}

/// One endpoint's state, apart from its counts.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    standing: Standing,
    fade: Fade,
    streak: Streak,
    health: Health,
    last_failure: Option<(Failure, Time)>,
}

impl Condition {
    /// As configured, at once: a process that starts has nothing to protect from a flood, since all are equally new.
    pub(crate) fn at_process_start(weight: Weight, health: Health) -> Self {
        Self {
            standing: Standing::Up,
            fade: Fade::full(weight),
            streak: Streak::default(),
            health,
            last_failure: None,
        }
    }

    /// Added by a reload: it warms up.
    pub(crate) fn added(weight: Weight, health: Health, window: Duration, now: Time) -> Self {
        Self {
            standing: Standing::warming_up(window, now),
            ..Self::at_process_start(weight, health)
        }
    }

    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    pub(crate) const fn fade(&self) -> &Fade {
        &self.fade
    }

    pub(crate) const fn last_failure(&self) -> Option<(Failure, Time)> {
        self.last_failure
    }

    pub(crate) const fn is_ejected(&self) -> bool {
        matches!(self.standing, Standing::Ejected { .. })
    }

    pub(crate) const fn health(&self) -> Health {
        self.health
    }

    /// Whether anything that sessions or probes have found keeps it from being used.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_ejected() && self.health.is_usable()
    }

    /// Whether one more success would change nothing.
    pub(crate) const fn is_settled(&self, weight: Weight) -> bool {
        self.fade.effective() == weight.get() && self.streak.is_clean()
    }

    /// A failure before the first answer byte. While ejected it does not count toward the next ejection: sessions that
    /// were under way would otherwise throw the endpoint out again at its first failure after the return.
    pub(crate) fn failed(
        &mut self,
        failure: Failure,
        kind: LeaseKind,
        policy: &TrialPolicy,
        now: Time,
    ) {
        self.fade.failed(kind, policy, now);
        self.last_failure = Some((failure, now));
        if !self.is_ejected() {
            self.streak.failed();
        }
    }

    /// The first answer byte.
    pub(crate) fn succeeded(&mut self, weight: Weight) {
        self.fade.succeeded(weight);
        self.streak.succeeded();
    }

    /// One that probes have taken out already would only use up the quota.
    pub(crate) fn wants_ejection(&self, policy: &EjectionPolicy) -> bool {
        self.is_usable() && self.streak.is_too_long(policy)
    }

    pub(crate) fn eject(&mut self, policy: &EjectionPolicy, now: Time) {
        let until = now.after(self.streak.eject(policy));
        self.standing = Standing::Ejected { until };
    }

    /// Ends what has had its time.
    pub(crate) fn pass_time(&mut self, window: Duration, now: Time) {
        self.standing = match self.standing {
            Standing::Ejected { until }
                if until <= now && !fault::injected(Fault::EjectedForEver) =>
            {
                Standing::warming_up(window, now)
            }
            Standing::SlowStart { since, ahead }
                if now.since(since).saturating_add(ahead) >= window && self.health.is_usable() =>
            {
                Standing::Up
            }
            unchanged => unchanged,
        };
    }

    /// A probe ended.
    pub(crate) fn probed(
        &mut self,
        result: ProbeResult,
        policy: &HealthPolicy,
        weight: Weight,
        (window, now): (Duration, Time),
    ) -> Option<HealthChange> {
        let before = self.health;
        let change = self.health.probed(result, policy);
        if change == Some(HealthChange::Up) {
            self.admit_after(before, weight, (window, now));
        }
        change
    }

    /// Carries it over to a configuration with other probes, or none.
    pub(crate) fn judge_under(
        &mut self,
        policy: Option<&HealthPolicy>,
        weight: Weight,
        (window, now): (Duration, Time),
    ) {
        let before = self.health;
        self.health = before.under(policy);
        if !before.is_usable() && self.health.is_usable() {
            self.admit_after(before, weight, (window, now));
        }
    }

    /// It may be used from now on. What was owed of a slow start begins now; one that was down returns.
    fn admit_after(&mut self, before: Health, weight: Weight, (window, now): (Duration, Time)) {
        match (before, self.standing) {
            (Health::Down { .. }, _) => self.come_back(weight, (window, now)),
            (_, Standing::SlowStart { .. }) => self.standing = Standing::warming_up(window, now),
            _ => {}
        }
    }

    /// Nothing is held against it any more, and it warms up.
    fn come_back(&mut self, weight: Weight, (window, now): (Duration, Time)) {
        self.fade = Fade::full(weight);
        self.streak = Streak::default();
        self.standing = Standing::warming_up(window, now);
    }

    /// Nobody probes it from now on, so that nothing is known of it any more.
    pub(crate) const fn leave_service(&mut self, policy: Option<&HealthPolicy>) {
        self.health = Health::at_first(policy);
    }

    /// The operator lets an endpoint work again that was not even probed: what was known of it is out of date.
    pub(crate) fn enter_service(
        &mut self,
        policy: Option<&HealthPolicy>,
        weight: Weight,
        (window, now): (Duration, Time),
    ) {
        self.health = Health::at_first(policy);
        self.come_back(weight, (window, now));
    }

    /// What another process held to be true, where it still means something. What its standing means is for the roster to say.
    pub(crate) fn restore(
        &mut self,
        kept: &KeptEndpoint,
        standing: Standing,
        weight: Weight,
        (every, now): (Duration, Time),
    ) {
        if kept.weight == weight {
            self.fade.restore(kept.effective_weight, weight, every, now);
        }
        self.health = self.health.restored(kept.judgement);
        self.standing = standing;
        self.streak = Streak::after_ejections(kept.ejections);
    }

    /// What another process may hold to be true of its standing, with the ejections since its last success.
    pub(crate) fn kept_standing(&self, now: Time) -> (KeptStanding, u32) {
        (self.standing.kept(now), self.streak.ejections())
    }

    pub(crate) fn claim_trial(&mut self, policy: &TrialPolicy, now: Time) {
        self.fade.claim_trial(policy, now);
    }

    pub(crate) fn reweigh(&mut self, old: Weight, new: Weight) {
        if old != new {
            self.fade.reweigh(old, new);
        }
    }

    /// What `weight` is worth now, in [`SHARE_SCALE`]ths; 0 only for weight 0.
    pub(crate) fn share_of(&self, weight: u32, window: Duration, now: Time) -> u32 {
        weight * self.percent(window, now)
    }

    /// The part of its weight that it is worth, as far as its standing goes.
    pub(crate) fn percent(&self, window: Duration, now: Time) -> u32 {
        self.standing.percent(window, now)
    }
}

/// A share is a weight times a percentage: weight 1 can warm up without fractions, and the largest weight
/// (1,000,000) still fits a `u32`.
pub(crate) const SHARE_SCALE: u32 = FULL_PERCENT;

const FULL_PERCENT: u32 = 100;

/// What a warming endpoint starts with. As with Envoy's minimum: less than this and it would hardly be measured at all.
const RAMP_START_PERCENT: u32 = 10;

/// In a straight line from [`RAMP_START_PERCENT`] to [`FULL_PERCENT`].
fn ramp_percent(elapsed: Duration, window: Duration) -> u32 {
    if elapsed >= window {
        return FULL_PERCENT;
    }
    let climb = u128::from(FULL_PERCENT - RAMP_START_PERCENT);
    let climbed = climb * elapsed.as_micros() / window.as_micros().max(1);
    RAMP_START_PERCENT + u32::try_from(climbed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(90);

    fn seconds(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    /// 10 % at once, one percent a second over 90 s, then all of it.
    #[test]
    fn slow_start_is_a_straight_line() {
        let added = Condition::added(Weight::ONE, Health::Unprobed, WINDOW, seconds(0));
        let shares: Vec<u32> = [0, 1, 45, 89, 90, 500]
            .map(|at| added.share_of(1, WINDOW, seconds(at)))
            .to_vec();
        assert_eq!(shares, [10, 11, 55, 99, 100, 100]);
    }

    /// The largest weight at full strength does not overflow.
    #[test]
    fn the_largest_share_fits() {
        let condition = Condition::at_process_start(Weight::MAX, Health::Unprobed);
        assert_eq!(
            condition.share_of(Weight::MAX.get(), WINDOW, seconds(0)),
            100_000_000
        );
    }

    /// Ejected at 0 s for 10 s: out at 9 s, warming at 10 s, up at 100 s.
    #[test]
    fn an_ejected_endpoint_returns_by_way_of_slow_start() {
        let mut condition = Condition::at_process_start(Weight::ONE, Health::Unprobed);
        condition.eject(&EjectionPolicy::default(), seconds(0));
        condition.pass_time(WINDOW, seconds(9));
        assert_eq!(
            condition.standing(),
            Standing::Ejected { until: seconds(10) }
        );
        condition.pass_time(WINDOW, seconds(10));
        assert_eq!(
            condition.standing(),
            Standing::SlowStart {
                since: seconds(10),
                ahead: Duration::ZERO
            }
        );
        condition.pass_time(WINDOW, seconds(100));
        assert_eq!(condition.standing(), Standing::Up);
    }

    /// Four late failures while out, and one after the return, are one failure toward the next ejection.
    #[test]
    fn failures_while_ejected_do_not_count_toward_the_next_ejection() {
        let policy = EjectionPolicy {
            failures: 2,
            ..EjectionPolicy::default()
        };
        let mut condition = Condition::at_process_start(Weight::ONE, Health::Unprobed);
        condition.eject(&policy, seconds(0));
        for _ in 0..4 {
            condition.failed(
                Failure::Reset,
                LeaseKind::Ordinary,
                &TrialPolicy::default(),
                seconds(1),
            );
        }
        condition.pass_time(Duration::ZERO, seconds(10));
        condition.failed(
            Failure::Reset,
            LeaseKind::Ordinary,
            &TrialPolicy::default(),
            seconds(11),
        );
        assert!(!condition.wants_ejection(&policy));
    }
}
