//! Who has the work at this moment: the primaries or the backups.
//!
//! Pure: what is known of the two tiers goes in, who works comes out. What an endpoint's state means for its tier is in
//! `roster.rs`.

use crate::cluster::{EndpointSpec, Failback, WhenNone};
use crate::fault::{self, Fault};

/// Which endpoints of a cluster are on duty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// The ordinary ones.
    #[default]
    Primaries,
    /// Those that stand in for them.
    Backups,
}

/// Which endpoints share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// The usable ones of those on duty. (A full one is usable: sessions wait for it, as in HAProxy.)
    Usable(Duty),
    /// None is usable, and `when_none` says to use all that the operator has not taken out: of those on duty only.
    AllOf(Duty),
    /// The same of both.
    Everyone,
    /// None is usable.
    Nobody,
}

/// What is known of the primaries, or of the backups, as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// One at least is usable.
    pub(crate) usable: bool,
    /// One at least is in service and has not been probed yet, or its name has not been resolved.
    pub(crate) unknown: bool,
    /// One at least is in service.
    pub(crate) in_service: bool,
}

/// What the configuration says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DutyPolicy {
    pub(crate) failback: Failback,
    pub(crate) when_none: WhenNone,
}

impl Duty {
    /// What an endpoint is configured for.
    pub(crate) const fn of(endpoint: &EndpointSpec) -> Self {
        if endpoint.backup {
            Self::Backups
        } else {
            Self::Primaries
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Primaries => Self::Backups,
            Self::Backups => Self::Primaries,
        }
    }

    /// Who works, given who was on duty before: `outlook` tells of either tier.
    ///
    /// With automatic failback that is whoever is usable, primaries first. With manual failback the duty changes only when
    /// all of those who have it are known to be out. While one of them awaits its first probe, or its name the first answer,
    /// nobody works: otherwise whoever is found or probed first after a start would keep the work.
    pub(crate) fn decide(self, policy: DutyPolicy, outlook: impl Fn(Self) -> Outlook) -> Tier {
        match policy.failback {
            Failback::Auto => decide_anew(policy.when_none, outlook),
            Failback::Manual if fault::injected(Fault::FailsBackByItself) => {
                decide_anew(policy.when_none, outlook)
            }
            Failback::Manual => self.keep_or_pass_on(policy.when_none, outlook),
        }
    }

    fn keep_or_pass_on(self, when_none: WhenNone, outlook: impl Fn(Self) -> Outlook) -> Tier {
        let (own, other) = (outlook(self), outlook(self.other()));
        if own.usable {
            Tier::Usable(self)
        } else if other.usable && !own.unknown && !fault::injected(Fault::DutyNeverPassesOn) {
            Tier::Usable(self.other())
        } else if when_none == WhenNone::Fail || other.usable {
            Tier::Nobody
        } else if own.in_service || own.unknown {
            Tier::AllOf(self)
        } else {
            Tier::AllOf(self.other())
        }
    }
}

fn decide_anew(when_none: WhenNone, outlook: impl Fn(Duty) -> Outlook) -> Tier {
    let mut both = [Duty::Primaries, Duty::Backups].into_iter();
    match (both.find(|&duty| outlook(duty).usable), when_none) {
        (Some(duty), _) => Tier::Usable(duty),
        (None, WhenNone::UseAll) => Tier::Everyone,
        (None, WhenNone::Fail) => Tier::Nobody,
    }
}

impl Tier {
    /// Who has the duty after this decision; `None` leaves it as it was.
    pub(crate) const fn duty(self) -> Option<Duty> {
        match self {
            Self::Usable(duty) | Self::AllOf(duty) => Some(duty),
            Self::Everyone | Self::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USABLE: Outlook = Outlook {
        usable: true,
        unknown: false,
        in_service: true,
    };
    const UNKNOWN: Outlook = Outlook {
        usable: false,
        unknown: true,
        in_service: true,
    };
    const DOWN: Outlook = Outlook {
        usable: false,
        unknown: false,
        in_service: true,
    };
    const ABSENT: Outlook = Outlook {
        usable: false,
        unknown: false,
        in_service: false,
    };
    const MANUAL: DutyPolicy = DutyPolicy {
        failback: Failback::Manual,
        when_none: WhenNone::Fail,
    };
    const MANUAL_ALL: DutyPolicy = DutyPolicy {
        when_none: WhenNone::UseAll,
        ..MANUAL
    };

    fn decide(duty: Duty, policy: DutyPolicy, primaries: Outlook, backups: Outlook) -> Tier {
        duty.decide(policy, |duty| match duty {
            Duty::Primaries => primaries,
            Duty::Backups => backups,
        })
    }

    /// The backups have taken over, and the primaries are back: they stay idle, unless failback is automatic.
    #[test]
    fn only_manual_failback_keeps_the_backups_at_work() {
        let auto = DutyPolicy {
            failback: Failback::Auto,
            ..MANUAL
        };
        let after = |policy| decide(Duty::Backups, policy, USABLE, USABLE);
        assert_eq!(after(MANUAL), Tier::Usable(Duty::Backups));
        assert_eq!(after(auto), Tier::Usable(Duty::Primaries));
    }

    /// Whoever has the duty loses it when all of them are out, to whoever is usable.
    #[test]
    fn the_duty_passes_on_when_its_holders_are_out() {
        let after = |duty, primaries, backups| decide(duty, MANUAL, primaries, backups);
        assert_eq!(
            after(Duty::Primaries, DOWN, USABLE),
            Tier::Usable(Duty::Backups)
        );
        assert_eq!(
            after(Duty::Backups, USABLE, DOWN),
            Tier::Usable(Duty::Primaries)
        );
        assert_eq!(after(Duty::Backups, DOWN, DOWN), Tier::Nobody);
    }

    /// At a start, a backup whose first probe was quicker does not take the work for good.
    #[test]
    fn the_duty_waits_for_the_first_probe() {
        let after = |primaries| decide(Duty::Primaries, MANUAL, primaries, USABLE);
        assert_eq!(after(UNKNOWN), Tier::Nobody);
        assert_eq!(after(DOWN), Tier::Usable(Duty::Backups));
        let all = decide(Duty::Primaries, MANUAL_ALL, UNKNOWN, USABLE);
        assert_eq!(all, Tier::Nobody);
    }

    /// Primaries whose name is not resolved yet have not lost the duty, whatever `when_none` says and the backups are.
    #[test]
    fn the_duty_waits_for_names() {
        let awaited = Outlook {
            in_service: false,
            ..UNKNOWN
        };
        for policy in [MANUAL, MANUAL_ALL] {
            for backups in [USABLE, UNKNOWN, DOWN] {
                let tier = decide(Duty::Primaries, policy, awaited, backups);
                assert_ne!(tier.duty(), Some(Duty::Backups), "{backups:?}");
            }
        }
    }

    /// Even in need, manual failback never has both tiers at work.
    #[test]
    fn using_all_uses_those_on_duty() {
        let after = |duty, primaries, backups| decide(duty, MANUAL_ALL, primaries, backups);
        assert_eq!(after(Duty::Backups, DOWN, DOWN), Tier::AllOf(Duty::Backups));
        assert_eq!(
            after(Duty::Backups, DOWN, ABSENT),
            Tier::AllOf(Duty::Primaries)
        );
    }
}
