//! The idle connections to one endpoint on one worker: which is used next, and which has been idle for too long.
//!
//! Pure: connections are opaque, and time is given. The one used last is used next, so that those which are not needed
//! grow old and go.

use evenkeel_core::units::Time;

use super::policy::PoolPolicy;

/// See the module's documentation.
pub(crate) struct Shelf<S> {
    /// By the time since which they are idle, the oldest first.
    idle: Vec<Idle<S>>,
}

struct Idle<S> {
    connection: S,
    since: Time,
    last_use: Time,
}

impl<S> Default for Shelf<S> {
    fn default() -> Self {
        Self { idle: Vec::new() }
    }
}

impl<S> Shelf<S> {
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.idle.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }

    /// Keeps a connection that is to be used no more from `last_use` on.
    ///
    /// # Errors
    ///
    /// There are so many that it is to be closed.
    pub(crate) fn put(&mut self, connection: S, last_use: Time, now: Time) -> Result<(), S> {
        if self.idle.len() >= PoolPolicy::IDLE_MAX || last_use <= now {
            return Err(connection);
        }
        self.idle.push(Idle {
            connection,
            since: now,
            last_use,
        });
        Ok(())
    }

    /// The one that was used last, whatever its age.
    pub(crate) fn take(&mut self) -> Option<S> {
        self.idle.pop().map(|idle| idle.connection)
    }

    /// The one that has been idle for longest: what another worker is given.
    pub(crate) fn take_oldest(&mut self) -> Option<S> {
        (!self.idle.is_empty()).then(|| self.idle.remove(0).connection)
    }

    /// Takes out whatever is too old, or idle for too long while there are more than `min_idle`, or stale.
    pub(crate) fn expire(
        &mut self,
        policy: &PoolPolicy,
        now: Time,
        mut is_stale: impl FnMut(&mut S) -> bool,
    ) -> Vec<S> {
        let mut spare = self.idle.len().saturating_sub(policy.min_idle);
        let expired = self.idle.extract_if(.., |idle| {
            let is_old = spare > 0 && idle.since.after(policy.idle_timeout) <= now;
            let goes = is_old || idle.last_use <= now || is_stale(&mut idle.connection);
            spare = spare.saturating_sub(usize::from(goes));
            goes
        });
        expired.map(|idle| idle.connection).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn seconds(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn shelf(connections: &[(&'static str, u64)]) -> Shelf<&'static str> {
        let mut shelf = Shelf::default();
        for (connection, since) in connections {
            shelf
                .put(*connection, Time::NEVER, seconds(*since))
                .unwrap();
        }
        shelf
    }

    fn idle_for(idle: u64) -> PoolPolicy {
        PoolPolicy {
            idle_timeout: Duration::from_secs(idle),
            ..PoolPolicy::default()
        }
    }

    /// What was used last is used next; another worker is given what was not needed for longest.
    #[test]
    fn the_warmest_is_used_and_the_coldest_given_away() {
        let mut shelf = shelf(&[("old", 0), ("middle", 1), ("new", 2)]);
        assert_eq!(shelf.take(), Some("new"));
        assert_eq!(shelf.take_oldest(), Some("old"));
        assert_eq!(shelf.len(), 1);
    }

    /// The idle timeout takes the oldest, and leaves as many as are to be kept.
    #[test]
    fn the_idle_timeout_leaves_min_idle() {
        let mut shelf = shelf(&[("a", 0), ("b", 1), ("c", 2)]);
        let policy = PoolPolicy {
            min_idle: 1,
            ..idle_for(10)
        };
        assert_eq!(shelf.expire(&policy, seconds(11), |_| false), ["a", "b"]);
        assert!(shelf.expire(&policy, seconds(100), |_| false).is_empty());
    }

    /// Neither `min_idle` nor youth keeps what its peer has closed, or what is beyond its lifetime.
    #[test]
    fn a_stale_or_old_one_goes_in_any_case() {
        let mut shelf = shelf(&[("closed", 0)]);
        shelf.put("aged", seconds(5), seconds(1)).unwrap();
        let policy = PoolPolicy {
            min_idle: 2,
            ..idle_for(10)
        };
        let gone = shelf.expire(&policy, seconds(5), |connection| *connection == "closed");
        assert_eq!(gone, ["closed", "aged"]);
    }

    /// A shelf is never longer than its bound, and takes nothing that could not be used again.
    #[test]
    fn a_shelf_has_a_bound() {
        let mut shelf = Shelf::default();
        for number in 0..PoolPolicy::IDLE_MAX {
            shelf.put(number, Time::NEVER, Time::ZERO).unwrap();
        }
        assert_eq!(shelf.put(0, Time::NEVER, Time::ZERO), Err(0));
        assert_eq!(Shelf::default().put(1, seconds(1), seconds(1)), Err(1));
    }
}
