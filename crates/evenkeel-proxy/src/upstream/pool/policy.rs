//! How many connections to an endpoint are kept, for how long, and who waits for one.

use std::num::NonZeroU32;
use std::time::Duration;

use evenkeel_core::units::Time;
use fastrand::Rng;

/// A cluster's rules for connections that carry one exchange after the other.
///
/// Two limits are not to be confused. A lease of the core is the right to have an exchange in flight, so the endpoint's
/// `max_connections` bounds exchanges; `max_sockets` bounds connections, idle ones included. With HTTP/1 an exchange in
/// flight uses exactly one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPolicy {
    /// The most connections to one endpoint, of all workers together, idle ones included; `None` is no limit.
    pub max_sockets: Option<NonZeroU32>,
    /// How long an exchange may wait for a connection when there are `max_sockets`.
    pub max_wait: Duration,
    /// How many exchanges may wait so for one endpoint; at most [`PoolPolicy::WAITERS_MAX`].
    pub max_waiters: usize,
    /// How many idle connections to an endpoint each worker keeps beyond their idle timeout; at most [`PoolPolicy::IDLE_MAX`].
    pub min_idle: usize,
    /// How long a connection may be idle before it is closed.
    pub idle_timeout: Duration,
    /// How old a connection may grow before it is used no more; up to a tenth less, so that those which were opened together do
    /// not end together. `None` is no limit.
    pub max_lifetime: Option<Duration>,
    /// How many exchanges a connection carries; `None` is no limit.
    pub requests_max: Option<NonZeroU32>,
}

impl PoolPolicy {
    /// The most exchanges that may be allowed to wait for one endpoint's connections.
    pub const WAITERS_MAX: usize = 65_536;
    /// The most idle connections to one endpoint on one worker: further ones are closed after use.
    pub const IDLE_MAX: usize = 1024;

    /// When a connection that is opened now is used no more.
    pub(crate) fn last_use(&self, now: Time, random: &mut Rng) -> Time {
        let Some(lifetime) = self.max_lifetime else {
            return Time::NEVER;
        };
        let less = u64::try_from((lifetime / 10).as_micros()).unwrap_or(u64::MAX);
        now.after(lifetime.saturating_sub(Duration::from_micros(random.u64(0..=less))))
    }

    /// Whether a connection that has carried so many exchanges may carry another.
    pub(crate) fn carries_on_after(&self, exchanges: u32) -> bool {
        self.requests_max.is_none_or(|max| exchanges < max.get())
    }
}

impl Default for PoolPolicy {
    fn default() -> Self {
        Self {
            max_sockets: None,
            max_wait: Duration::from_secs(5),
            max_waiters: 1024,
            min_idle: 0,
            idle_timeout: Duration::from_secs(55),
            max_lifetime: None,
            requests_max: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections that were opened at one moment end at different ones, none before nine tenths of the lifetime.
    #[test]
    fn a_lifetime_is_jittered_by_a_tenth() {
        let policy = PoolPolicy {
            max_lifetime: Some(Duration::from_secs(100)),
            ..PoolPolicy::default()
        };
        let mut random = Rng::with_seed(7);
        let ends: Vec<Time> = (0..20)
            .map(|_| policy.last_use(Time::ZERO, &mut random))
            .collect();
        let bounds = Time::from_micros(90_000_000)..=Time::from_micros(100_000_000);
        assert!(ends.iter().all(|end| bounds.contains(end)), "{ends:?}");
        assert!(ends.iter().any(|end| *end != ends[0]));
    }
}
