//! Whether a worker still answers: it is asked by its mailbox, and answers when it reads it.
//!
//! Nothing of this is on a session's path: a worker that is at work reads its mail once a turn, one that rests is woken for
//! it. What a worker's silence means is decided by whoever asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::units::Time;

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerPulse {
    /// It has answered the last question.
    Answered,
    /// It has left the last question unread for so long.
    Silent(Duration),
    /// Its thread has ended: after its last session, if nothing more is accepted; otherwise by a fault.
    Ended,
}

/// One worker's open question, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When it was asked, in microseconds; [`NOTHING_ASKED`] once it has answered. Relaxed: it guards nothing but itself.
    asked_at: AtomicU64,
}

/// No question is asked in the process's first microsecond.
const NOTHING_ASKED: u64 = 0;

impl Pulse {
    /// Whether to ask now: there is at most one question at a time, so that a stuck worker's mailbox does not fill with them.
    pub(crate) fn ask(&self, now: Time) -> bool {
        let asked = self.asked_at.compare_exchange(
            NOTHING_ASKED,
            now.as_micros().max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        asked.is_ok()
    }

    /// The worker has read its mail.
    pub(crate) fn answer(&self) {
        self.asked_at.store(NOTHING_ASKED, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, now: Time) -> WorkerPulse {
        match self.asked_at.load(Ordering::Relaxed) {
            NOTHING_ASKED => WorkerPulse::Answered,
            asked_at => WorkerPulse::Silent(now.since(Time::from_micros(asked_at))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The silence counts from the question that is open, not from the last attempt to ask.
    #[test]
    fn a_silence_grows_until_there_is_an_answer() {
        let second = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let pulse = Pulse::default();
        assert_eq!(pulse.read(second(1)), WorkerPulse::Answered);

        assert!(pulse.ask(second(1)));
        assert!(!pulse.ask(second(2)));
        let silence = Duration::from_secs(2);
        assert_eq!(pulse.read(second(3)), WorkerPulse::Silent(silence));

        pulse.answer();
        assert_eq!(pulse.read(second(4)), WorkerPulse::Answered);
    }
}
