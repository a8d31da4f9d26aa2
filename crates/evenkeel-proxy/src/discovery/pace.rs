//! When a name is asked for again: as its records allow within the configured bounds, and after failures ever later.

use std::time::Duration;

use crate::settings::DnsSettings;

/// What a pause after failures stops at, unless `refresh_max` is less: a name server that is back is noticed by then.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(30);
/// More doublings than that reach every maximum.
const DOUBLINGS_MAX: u32 = 16;

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// All of it is good for this long.
    Good { ttl: Duration },
    /// Some of it was not answered, or not usefully.
    Failed,
}

/// The pace of one name.
#[derive(Debug, Default)]
pub(super) struct Pace {
    failures: u32,
}

impl Pace {
    /// How long to wait before the next round. `share`, from 0 to 1, is random: up to a tenth is added by it, so that names
    /// that came up together part.
    pub(super) fn pause_after(&mut self, round: Round, dns: &DnsSettings, share: f64) -> Duration {
        let pause = match round {
            Round::Good { ttl } => {
                self.failures = 0;
                ttl
            }
            Round::Failed => {
                let pause = dns.refresh_min.saturating_mul(1 << self.failures);
                self.failures = DOUBLINGS_MAX.min(self.failures + 1);
                pause.min(FAILED_PAUSE_MAX)
            }
        };
        let pause = pause.max(dns.refresh_min).min(dns.refresh_max);
        pause + pause.mul_f64(share.clamp(0.0, 1.0) / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn dns() -> DnsSettings {
        DnsSettings {
            refresh_min: SECOND,
            refresh_max: 60 * SECOND,
            ..DnsSettings::default()
        }
    }

    /// A record's time to live counts, within the bounds.
    #[test]
    fn a_good_answer_lasts_as_long_as_it_says() {
        for (ttl, pause) in [(0, 1), (1, 1), (17, 17), (86_400, 60)] {
            let ttl = ttl * SECOND;
            let waited = Pace::default().pause_after(Round::Good { ttl }, &dns(), 0.0);
            assert_eq!(waited, pause * SECOND);
        }
    }

    /// Failures in a row double the pause up to half a minute; one success begins anew.
    #[test]
    fn failures_slow_down() {
        let (mut pace, dns) = (Pace::default(), dns());
        let mut fail = || pace.pause_after(Round::Failed, &dns, 0.0).as_secs();
        let pauses: Vec<u64> = (0..7).map(|_| fail()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        for _ in 0..100 {
            fail();
        }
        pace.pause_after(Round::Good { ttl: SECOND }, &dns, 0.0);
        assert_eq!(pace.pause_after(Round::Failed, &dns, 0.0), SECOND);
    }

    /// Chance adds at most a tenth.
    #[test]
    fn names_part_by_chance() {
        let ttl = 10 * SECOND;
        let waited = Pace::default().pause_after(Round::Good { ttl }, &dns(), 1.0);
        assert_eq!(waited, 11 * SECOND);
    }
}
