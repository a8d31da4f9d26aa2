//! Waiting for a state that can be seen, with a deadline that only a fault reaches.

use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that a slow machine fails no test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// How often a state is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until `look` finds something; panics with `what` at the deadline.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Looks again and again until it is so.
pub(crate) fn until_so(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}
