//! How many sessions there may be at once: as many as the operator allows, and no more than there are descriptors for, so that
//! whoever is accepted gets an endpoint, and the process can be watched and stopped however many clients come.
//!
//! A session takes two descriptors: its client's, and sooner or later its endpoint's. What else this process needs is set
//! aside once, at the start; the rest is for sessions, and clients beyond that wait in the backlog.

use std::num::NonZeroU32;

use crate::control::server::CONNECTIONS_MAX;
use crate::crew::WorkerBell;
use crate::kernel;
use crate::limit::Limit;
use crate::pauses::PauseCause;
use crate::probe::{LATE_MAX, OPEN_MAX};

/// Descriptors set aside for the control socket's connections, as many for those of the admin listener, and as many for what
/// opens a file now and then: logs, a configuration that is loaded again, a look into `/proc`.
const RESERVE: u64 = 3 * CONNECTIONS_MAX as u64;

/// The most descriptors that probes have at one time; with fewer endpoints, one for each.
const PROBES_MAX: usize = OPEN_MAX + LATE_MAX;

/// What a worker of each layer takes: an epoll instance, a mailbox, and the session that it accepts while another one accepts the
/// last; on the application layer also an asynchronous runtime.
const PER_WORKER: u64 = 4 + 8;

const PER_SESSION: u64 = 2;

const PER_PIPE: u64 = 2;

/// The sessions of this process, and the most it has descriptors for.
pub(crate) struct Capacity {
    /// What there are descriptors for.
    sessions_max: u64,
    pipes_max: usize,
    limit: Limit<WorkerBell>,
}

impl Capacity {
    /// What there are descriptors for now, before the workers are started; `probed` endpoints will be asked about themselves. Probes that
    /// come with a reload find nothing set aside.
    pub(crate) fn measure(workers: usize, pipes_wanted: usize, probed: usize) -> Self {
        match kernel::free_descriptors() {
            Some(free) => Self::of(free, workers, pipes_wanted, probed),
            None => Self::new(u64::MAX, pipes_wanted),
        }
    }

    /// Pipes for splicing; they never take more than a quarter of the descriptors.
    pub(crate) const fn pipes_max(&self) -> usize {
        self.pipes_max
    }

    /// The operator's limit from now on; `None` leaves it to the descriptors.
    pub(crate) fn set_max(&self, max: Option<NonZeroU32>) {
        let wanted = max.map_or(u64::MAX, |max| max.get().into());
        self.limit.set_max(wanted.min(self.sessions_max));
    }

    /// The most sessions there may be now.
    pub(crate) fn max(&self) -> u64 {
        self.limit.max()
    }

    /// Sessions that have not ended, of listeners that are there and of those that have gone; and, for the moment of an accept,
    /// what a worker takes for the next one.
    pub(crate) fn sessions(&self) -> u64 {
        self.limit.taken()
    }

    /// Takes a place for a session.
    ///
    /// # Errors
    ///
    /// There is none, for this reason; `bell` will be rung when there may be one.
    pub(crate) fn take(&self, bell: &WorkerBell) -> Result<(), PauseCause> {
        if self.limit.take(bell) {
            Ok(())
        } else if self.limit.max() < self.sessions_max {
            Err(PauseCause::Process)
        } else {
            Err(PauseCause::Descriptors)
        }
    }

    /// Gives a place back that could not be used.
    pub(crate) fn give_back(&self) {
        self.limit.give_back();
    }

    /// Gives a place back to whoever waits for one.
    pub(crate) fn pass_on(&self) {
        self.limit.pass_on();
    }

    fn of(free: u64, workers: usize, pipes_wanted: usize, probed: usize) -> Self {
        let free = free.saturating_sub(PER_WORKER * workers as u64);
        let reserve = RESERVE + probed.min(PROBES_MAX) as u64;
        // Where there is next to nothing, half of it is for sessions all the same.
        let free = free - reserve.min(free / 2);
        let pipes_max = pipes_wanted.min(usize::try_from(free / (4 * PER_PIPE)).unwrap_or(0));
        let sessions_max = (free - PER_PIPE * pipes_max as u64) / PER_SESSION;
        Self::new(sessions_max.max(1), pipes_max)
    }

    const fn new(sessions_max: u64, pipes_max: usize) -> Self {
        Self {
            sessions_max,
            pipes_max,
            limit: Limit::new(sessions_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is shared out, it is never more than there is, and at least one session can be had.
    #[test]
    fn no_descriptor_is_promised_twice() {
        for free in 0..20_000 {
            let capacity = Capacity::of(free, 2, 256, 0);
            let promised =
                PER_SESSION * capacity.sessions_max + PER_PIPE * capacity.pipes_max as u64;
            assert!(capacity.sessions_max >= 1);
            assert!(
                free < 48 || promised + 2 * PER_WORKER <= free,
                "{free} free"
            );
            assert!(
                free < 240 || promised + 2 * PER_WORKER + RESERVE <= free,
                "{free} free"
            );
        }
    }
}
