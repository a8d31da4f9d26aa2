//! What probes say of one endpoint: the judgement by rise and fall.
//!
//! Pure: how, when and whether one probes is not here, nor what the judgement means for the work (`condition.rs`).

use crate::cluster::HealthPolicy;
use crate::fault::{self, Fault};

/// How one probe went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The endpoint answered as it should.
    Passed,
    /// It did not, or not in time.
    Failed,
}

/// A judgement that has just been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// It may be used from now on.
    Up,
    /// It gets nothing from now on.
    Down,
}

/// What is held to be true of a probed endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No probe has ended yet.
    Unknown,
    /// It may be used.
    Up,
    /// It is not to be used.
    Down,
}

/// What probes have taught about one endpoint.
///
/// ```text
///                 passed                      `fall` failures in a row
///   Unknown ───────────────────▶ Up ◀──────────────────────────────────▶ Down
///      │                             `rise` passes in a row               ▲
///      └──────────────────────────────────────────────────────────────────┘ failed
/// ```
///
/// The first result decides alone, both ways: until then nothing is known, and one fact is more than none. `rise` is the
/// distrust of an endpoint that was down, `fall` the trust in one that was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The cluster has no probes: nothing is held against the endpoint.
    Unprobed,
    Unknown,
    /// The last `failed` probes failed.
    Up {
        failed: u32,
    },
    /// The last `passed` probes passed.
    Down {
        passed: u32,
    },
}

impl Health {
    /// Of an endpoint that nothing is known of.
    pub(crate) const fn at_first(policy: Option<&HealthPolicy>) -> Self {
        match policy {
            Some(_) => Self::Unknown,
            None => Self::Unprobed,
        }
    }

    pub(crate) fn is_usable(self) -> bool {
        match self {
            Self::Unprobed | Self::Up { .. } => true,
            Self::Unknown => fault::injected(Fault::UnknownUsed),
            Self::Down { .. } => fault::injected(Fault::DownUsed),
        }
    }

    /// `None` where nothing probes.
    pub(crate) const fn judgement(self) -> Option<Judgement> {
        match self {
            Self::Unprobed => None,
            Self::Unknown => Some(Judgement::Unknown),
            Self::Up { .. } => Some(Judgement::Up),
            Self::Down { .. } => Some(Judgement::Down),
        }
    }

    /// Takes a result in; says so if that changes the judgement.
    pub(crate) fn probed(
        &mut self,
        result: ProbeResult,
        policy: &HealthPolicy,
    ) -> Option<HealthChange> {
        let before = self.judgement()?;
        *self = match (*self, result) {
            (Self::Unprobed, _) => Self::Unprobed,
            (Self::Unknown | Self::Up { .. }, ProbeResult::Passed) => Self::Up { failed: 0 },
            (Self::Unknown | Self::Down { .. }, ProbeResult::Failed) => Self::Down { passed: 0 },
            (Self::Up { failed }, ProbeResult::Failed) => fallen(failed + 1, policy),
            (Self::Down { passed }, ProbeResult::Passed) => risen(passed + 1, policy),
        };
        self.change_from(before)
    }

    fn change_from(self, before: Judgement) -> Option<HealthChange> {
        match self.judgement()? {
            after if after == before => None,
            Judgement::Up => Some(HealthChange::Up),
            Judgement::Down => Some(HealthChange::Down),
            Judgement::Unknown => None,
        }
    }

    /// Carries it over to a configuration with other probes, or none. Where probes are new, an endpoint that was in use
    /// stays so until one of them says otherwise.
    pub(crate) fn under(self, policy: Option<&HealthPolicy>) -> Self {
        match (self, policy) {
            (_, None) => Self::Unprobed,
            (Self::Unprobed, Some(_)) if fault::injected(Fault::NewProbesTakeOut) => Self::Unknown,
            (Self::Unprobed, Some(_)) => Self::Up { failed: 0 },
            (known, Some(_)) => known,
        }
    }

    /// As another process judged it, if there are probes here that can judge otherwise.
    pub(crate) const fn restored(self, judgement: Option<Judgement>) -> Self {
        match (self, judgement) {
            (Self::Unprobed, _) => Self::Unprobed,
            (_, Some(Judgement::Up)) => Self::Up { failed: 0 },
            (_, Some(Judgement::Down)) => Self::Down { passed: 0 },
            (own, Some(Judgement::Unknown) | None) => own,
        }
    }
}

fn fallen(failed: u32, policy: &HealthPolicy) -> Health {
    if failed >= policy.fall.max(1) {
        Health::Down { passed: 0 }
    } else {
        Health::Up { failed }
    }
}

fn risen(passed: u32, policy: &HealthPolicy) -> Health {
    if passed >= policy.rise.max(1) && !fault::injected(Fault::DownForEver) {
        Health::Up { failed: 0 }
    } else {
        Health::Down { passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: HealthPolicy = HealthPolicy { rise: 2, fall: 3 };

    /// Probes by letter (p passed, f failed) and what is held to be true after each: u up, d down.
    fn judged(probes: &str) -> String {
        let mut health = Health::Unknown;
        let judge = |probe| {
            let result = match probe {
                'p' => ProbeResult::Passed,
                _ => ProbeResult::Failed,
            };
            health.probed(result, &POLICY);
            match health.judgement() {
                Some(Judgement::Up) => 'u',
                Some(Judgement::Down) => 'd',
                Some(Judgement::Unknown) | None => '?',
            }
        };
        probes.chars().map(judge).collect()
    }

    /// Nothing is known before it, so one result is enough, either way.
    #[test]
    fn the_first_result_decides_alone() {
        assert_eq!(judged("p"), "u");
        assert_eq!(judged("f"), "d");
    }

    /// Three in a row; two and a pass are none.
    #[test]
    fn it_falls_after_as_many_failures_in_a_row() {
        assert_eq!(judged("pffpfff"), "uuuuuud");
    }

    /// Two in a row; one and a failure are none.
    #[test]
    fn it_rises_after_as_many_passes_in_a_row() {
        assert_eq!(judged("fpfpp"), "ddddu");
    }

    /// A change is told once.
    #[test]
    fn only_changes_are_told() {
        let mut health = Health::Unknown;
        let mut told = |result| health.probed(result, &POLICY);
        assert_eq!(told(ProbeResult::Passed), Some(HealthChange::Up));
        assert_eq!(told(ProbeResult::Passed), None);
        assert_eq!(told(ProbeResult::Failed), None);
        assert_eq!(told(ProbeResult::Failed), None);
        assert_eq!(told(ProbeResult::Failed), Some(HealthChange::Down));
        assert_eq!(told(ProbeResult::Failed), None);
    }

    /// An endpoint that works is not taken out by the wish to watch it; one that is down stays so under other thresholds.
    #[test]
    fn a_reload_keeps_what_is_known() {
        assert!(Health::Unprobed.under(Some(&POLICY)).is_usable());
        let down = Health::Down { passed: 1 };
        assert_eq!(down.under(Some(&POLICY)), down);
        assert_eq!(down.under(None), Health::Unprobed);
    }
}
