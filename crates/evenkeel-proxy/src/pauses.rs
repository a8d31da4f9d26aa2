//! How often and for how long a listener has accepted nobody although clients may have waited, over all workers.
//!
//! Written when a pause begins and ends, which no message and hardly any connection sees.

use std::time::Duration;

use evenkeel_core::units::Time;
use parking_lot::Mutex;

/// Why a listener pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PauseCause {
    /// It has as many sessions as its `max_connections` allows.
    Listener,
    /// All listeners together have as many as the process's `max_connections` allows.
    Process,
    /// There are no descriptors for more.
    Descriptors,
}

impl PauseCause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Listener, Self::Process, Self::Descriptors];

    /// The word for it in metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Listener => "listener_limit",
            Self::Process => "process_limit",
            Self::Descriptors => "descriptors",
        }
    }
}

/// What pauses came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseStatus {
    /// How many have begun, in the order of [`PauseCause::ALL`]. Each worker pauses for itself.
    pub begun: [u64; PauseCause::ALL.len()],
    /// How many workers pause now.
    pub workers: u64,
    /// Time paused, of all workers together.
    pub paused: Duration,
}

/// The pauses of one listener.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<Ledger>);

#[derive(Default)]
struct Ledger {
    begun: [u64; PauseCause::ALL.len()],
    open: u64,
    /// The moments at which the open ones began, added up, in microseconds.
    open_since: u64,
    ended_micros: u64,
}

impl Pauses {
    pub(crate) fn begin(&self, cause: PauseCause, now: Time) {
        let mut ledger = self.0.lock();
        ledger.begun[cause as usize] += 1;
        ledger.open += 1;
        ledger.open_since += now.as_micros();
    }

    /// `began` is when that pause did.
    pub(crate) fn end(&self, began: Time, now: Time) {
        let mut ledger = self.0.lock();
        ledger.open -= 1;
        ledger.open_since -= began.as_micros();
        ledger.ended_micros += now.as_micros() - began.as_micros();
    }

    pub(crate) fn status(&self, now: Time) -> PauseStatus {
        let ledger = self.0.lock();
        let open_micros = (ledger.open * now.as_micros()).saturating_sub(ledger.open_since);
        PauseStatus {
            begun: ledger.begun,
            workers: ledger.open,
            paused: Duration::from_micros(ledger.ended_micros + open_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pause counts from its beginning, also while it lasts.
    #[test]
    fn time_paused_grows_while_a_pause_lasts() {
        let second = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let pauses = Pauses::default();
        pauses.begin(PauseCause::Listener, second(1));
        pauses.begin(PauseCause::Descriptors, second(2));
        assert_eq!(pauses.status(second(4)).paused, Duration::from_secs(5));

        pauses.end(second(1), second(4));
        let status = pauses.status(second(6));

        assert_eq!(status.paused, Duration::from_secs(7));
        assert_eq!((status.begun, status.workers), ([1, 0, 1], 1));
    }
}
