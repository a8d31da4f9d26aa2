//! What alive and ready mean: pure decisions over a few facts.
//!
//! Alive is whether a restart would help: a worker that is stuck or has ended by a fault does not come back by itself. Ready is
//! whether to send clients here. That an endpoint is down makes the process neither dead nor unready: every copy of it
//! would be so at once, and an outage of a part would become one of the whole.

use std::time::Duration;

use evenkeel_proxy::WorkerPulse;

/// How long a worker may leave its mail unread. A turn of its loop takes milliseconds even under full load.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Where in its life the process is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Clients wait in the backlog until it is known who can serve them.
    Starting,
    /// It takes new sessions and will go on doing so.
    Serving,
    /// It is asked to stop; whether it still accepts is not asked.
    Stopping,
}

/// What both are decided by.
#[derive(Clone, Debug)]
pub(crate) struct Vitals {
    pub(crate) stage: Stage,
    pub(crate) workers: Vec<WorkerPulse>,
}

/// Yes or no, in words for whoever reads the answer.
pub(crate) type Verdict = Result<&'static str, String>;

/// Whether a worker is well, as far as its silence tells.
pub(crate) fn is_up(pulse: WorkerPulse) -> bool {
    match pulse {
        WorkerPulse::Answered => true,
        WorkerPulse::Silent(silence) => silence <= SILENCE_MAX,
        WorkerPulse::Ended => false,
    }
}

/// Whether the process works.
///
/// # Errors
///
/// A worker is stuck, or gone before its time; that no control plane answers at all is seen by whoever asks.
pub(crate) fn alive(vitals: &Vitals) -> Verdict {
    for (number, pulse) in vitals.workers.iter().enumerate() {
        match pulse {
            WorkerPulse::Silent(silence) if *silence > SILENCE_MAX => {
                let seconds = silence.as_secs();
                return Err(format!("worker {number} has been stuck for {seconds} s\n"));
            }
            WorkerPulse::Ended if vitals.stage != Stage::Stopping => {
                return Err(format!("worker {number} has ended\n"));
            }
            WorkerPulse::Answered | WorkerPulse::Silent(_) | WorkerPulse::Ended => {}
        }
    }
    Ok("alive\n")
}

/// Whether clients should be sent here.
///
/// # Errors
///
/// The process is starting or stopping, or is not alive.
pub(crate) fn ready(vitals: &Vitals) -> Verdict {
    match vitals.stage {
        Stage::Starting => Err("the first probes have not ended\n".to_owned()),
        Stage::Stopping => Err("the process is stopping\n".to_owned()),
        Stage::Serving => alive(vitals).map(|_| "ready\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals(stage: Stage, worker: WorkerPulse) -> Vitals {
        Vitals {
            stage,
            workers: vec![WorkerPulse::Answered, worker],
        }
    }

    /// A worker that is late by a little is at work; one that is late by much is stuck, and named.
    #[test]
    fn a_stuck_worker_is_told_from_a_busy_one() {
        let silent = |silence| vitals(Stage::Serving, WorkerPulse::Silent(silence));

        assert!(alive(&silent(SILENCE_MAX)).is_ok());
        let why = alive(&silent(SILENCE_MAX + Duration::from_secs(2))).unwrap_err();
        assert_eq!(why, "worker 1 has been stuck for 12 s\n");
        assert!(ready(&silent(SILENCE_MAX * 2)).is_err());
    }

    /// Workers end in a stop; before it, only a fault ends one.
    #[test]
    fn a_worker_that_has_ended_is_missed_only_while_serving() {
        assert!(alive(&vitals(Stage::Serving, WorkerPulse::Ended)).is_err());
        assert!(alive(&vitals(Stage::Stopping, WorkerPulse::Ended)).is_ok());
    }

    /// A process that waits for its first probes is as well as can be, and has nobody to send clients to.
    #[test]
    fn a_starting_process_is_alive_and_not_ready() {
        let vitals = vitals(Stage::Starting, WorkerPulse::Answered);
        assert_eq!(alive(&vitals), Ok("alive\n"));
        assert!(ready(&vitals).is_err());
    }

    /// A process that stops works, but nobody should be sent to it.
    #[test]
    fn a_stopping_process_is_alive_and_not_ready() {
        let vitals = vitals(Stage::Stopping, WorkerPulse::Answered);
        assert_eq!(alive(&vitals), Ok("alive\n"));
        assert_eq!(ready(&vitals), Err("the process is stopping\n".to_owned()));
    }
}
