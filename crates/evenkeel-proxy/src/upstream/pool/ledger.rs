//! Who may have a connection to an endpoint that is allowed only so many, over all workers: places, and a line in the order of arrival.
//!
//! Pure: whoever waits is opaque, and nothing is sent here. A place is a connection, in use or idle, or the right to open
//! one. While anybody waits every place is taken, and whatever becomes free is the first one's: a connection by whichever
//! worker has it, or the place of one that was closed. Nobody overtakes, not even where an idle connection is at hand.

use std::collections::VecDeque;
use std::num::NonZeroU32;

/// The places of one endpoint. `W` is how one who waits is reached.
pub(crate) struct Ledger<W> {
    bounds: Bounds,
    /// Places taken, idle connections included.
    open: u32,
    /// Idle connections of each worker.
    idle: Box<[u32]>,
    line: VecDeque<Waiting<W>>,
    next_ticket: u64,
}

/// How many of what there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) sockets: NonZeroU32,
    pub(crate) waiters: usize,
}

struct Waiting<W> {
    ticket: u64,
    waiter: W,
}

/// What came of asking for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The worker's own idle connection.
    Idle,
    /// A new one may be opened.
    Open,
    /// The one who asked stands in the line, under this number. That worker has an idle connection: it is to be asked for it.
    Wait { ticket: u64, ask: Option<usize> },
    /// The line is full.
    Refused,
}

impl<W> Ledger<W> {
    pub(crate) fn new(bounds: Bounds, workers: usize) -> Self {
        Self {
            bounds,
            open: 0,
            idle: vec![0; workers].into(),
            line: VecDeque::new(),
            next_ticket: 0,
        }
    }

    /// Other bounds from now on. There may be room for those who wait: see [`Ledger::next_opener`].
    pub(crate) const fn rebound(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// A connection is wanted on this worker.
    pub(crate) fn claim(&mut self, worker: usize, waiter: impl FnOnce() -> W) -> Claim {
        if self.line.is_empty() {
            if self.idle[worker] > 0 {
                self.idle[worker] -= 1;
                return Claim::Idle;
            }
            if self.open < self.bounds.sockets.get() {
                self.open += 1;
                return Claim::Open;
            }
        }
        if self.line.len() >= self.bounds.waiters {
            return Claim::Refused;
        }
        self.join(waiter())
    }

    fn join(&mut self, waiter: W) -> Claim {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.line.push_back(Waiting { ticket, waiter });
        let workers = 0..self.idle.len();
        let ask = workers
            .filter(|worker| self.idle[*worker] > 0)
            .max_by_key(|worker| self.idle[*worker]);
        Claim::Wait { ticket, ask }
    }

    /// Somebody waits no more. Whether it still stood in the line; if not, something is on its way to it.
    pub(crate) fn leave(&mut self, ticket: u64) -> bool {
        let place = self
            .line
            .binary_search_by_key(&ticket, |waiting| waiting.ticket);
        place.is_ok_and(|place| self.line.remove(place).is_some())
    }

    /// A connection of this worker is used no more: whoever is returned gets it, otherwise it is idle.
    pub(crate) fn rest(&mut self, worker: usize) -> Option<W> {
        let next = self.pop();
        if next.is_none() {
            self.idle[worker] += 1;
        }
        next
    }

    /// The worker has been asked for an idle connection: whoever is returned gets it.
    pub(crate) fn asked(&mut self, worker: usize) -> Option<W> {
        if self.idle[worker] == 0 {
            return None;
        }
        let next = self.pop()?;
        self.idle[worker] -= 1;
        Some(next)
    }

    /// An idle connection of this worker is about to be closed.
    pub(crate) fn stop_resting(&mut self, worker: usize) {
        self.idle[worker] = self.idle[worker].saturating_sub(1);
    }

    /// A connection that was not idle has been closed: whoever is returned may open one in its place.
    pub(crate) fn closed(&mut self) -> Option<W> {
        self.open = self.open.saturating_sub(1);
        self.next_opener()
    }

    /// The next one who may open a connection, if there is room.
    pub(crate) fn next_opener(&mut self) -> Option<W> {
        if self.open >= self.bounds.sockets.get() {
            return None;
        }
        let next = self.pop()?;
        self.open += 1;
        Some(next)
    }

    fn pop(&mut self) -> Option<W> {
        self.line.pop_front().map(|waiting| waiting.waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: usize = 0;
    const THERE: usize = 1;

    fn ledger(sockets: u32, waiters: usize) -> Ledger<&'static str> {
        let sockets = NonZeroU32::new(sockets).unwrap();
        Ledger::new(Bounds { sockets, waiters }, 2)
    }

    const fn wait(ticket: u64, ask: Option<usize>) -> Claim {
        Claim::Wait { ticket, ask }
    }

    /// As many are opened as are allowed; the next waits, and gets the place of the first that is closed.
    #[test]
    fn the_place_of_a_closed_connection_is_the_first_waiters() {
        let mut ledger = ledger(2, 10);
        assert_eq!(ledger.claim(HERE, || "anna"), Claim::Open);
        assert_eq!(ledger.claim(THERE, || "bert"), Claim::Open);
        assert_eq!(ledger.claim(HERE, || "carl"), wait(0, None));
        assert_eq!(ledger.closed(), Some("carl"));
        assert_eq!(ledger.closed(), None);
        assert_eq!(ledger.claim(HERE, || "dora"), Claim::Open);
    }

    /// A connection that is used no more goes to who has waited longest, on whichever worker; without waiters it is idle.
    #[test]
    fn a_returned_connection_is_the_first_waiters() {
        let mut ledger = ledger(1, 10);
        assert_eq!(ledger.claim(HERE, || "anna"), Claim::Open);
        assert_eq!(ledger.claim(THERE, || "bert"), wait(0, None));
        assert_eq!(ledger.claim(HERE, || "carl"), wait(1, None));
        assert_eq!(ledger.rest(HERE), Some("bert"));
        assert_eq!(ledger.rest(THERE), Some("carl"));
        assert_eq!(ledger.rest(HERE), None);
        assert_eq!(ledger.claim(HERE, || "dora"), Claim::Idle);
    }

    /// Where all connections idle on another worker, that one is asked, and gives one up.
    #[test]
    fn an_idle_connection_of_another_worker_is_asked_for() {
        let mut ledger = ledger(1, 10);
        assert_eq!(ledger.claim(HERE, || "anna"), Claim::Open);
        assert_eq!(ledger.rest(HERE), None);
        assert_eq!(ledger.claim(THERE, || "bert"), wait(0, Some(HERE)));
        // Anna's next exchange does not overtake him.
        assert_eq!(ledger.claim(HERE, || "anna"), wait(1, Some(HERE)));
        assert_eq!(ledger.asked(HERE), Some("bert"));
        assert_eq!(ledger.asked(HERE), None);
    }

    /// Whoever leaves is passed over, and leaves only once.
    #[test]
    fn a_leaver_frees_its_place_in_the_line() {
        let mut ledger = ledger(1, 1);
        assert_eq!(ledger.claim(HERE, || "anna"), Claim::Open);
        assert_eq!(ledger.claim(HERE, || "bert"), wait(0, None));
        assert_eq!(ledger.claim(HERE, || "carl"), Claim::Refused);
        assert!(ledger.leave(0));
        assert!(!ledger.leave(0));
        assert_eq!(ledger.claim(HERE, || "carl"), wait(1, None));
        assert_eq!(ledger.closed(), Some("carl"));
    }

    /// An idle connection that is closed frees its place, and the worker is asked for it no more.
    #[test]
    fn a_closed_idle_connection_is_not_asked_for() {
        let mut ledger = ledger(1, 10);
        assert_eq!(ledger.claim(HERE, || "anna"), Claim::Open);
        assert_eq!(ledger.rest(HERE), None);
        ledger.stop_resting(HERE);
        assert_eq!(ledger.claim(THERE, || "bert"), wait(0, None));
        assert_eq!(ledger.closed(), Some("bert"));
    }

    /// A higher limit lets as many in as it has room for.
    #[test]
    fn a_higher_limit_serves_those_who_wait() {
        let mut ledger = ledger(1, 10);
        for name in ["anna", "bert", "carl", "dora"] {
            ledger.claim(HERE, || name);
        }
        ledger.rebound(Bounds {
            sockets: NonZeroU32::new(3).unwrap(),
            waiters: 10,
        });
        assert_eq!(ledger.next_opener(), Some("bert"));
        assert_eq!(ledger.next_opener(), Some("carl"));
        assert_eq!(ledger.next_opener(), None);
    }
}
