//! Which worker takes a new session.
//!
//! The kernel spreads connections over the workers' listening sockets by a hash, which is fair to many and unfair to few: of 16
//! long connections one worker easily gets 11. So a worker that has clearly more sessions than the least loaded one hands
//! an accepted socket over to it. How a session is run is not known here.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::units::Time;
use evenkeel_reactor::{Mail, Origin, Stream};

use crate::limit::Bell;
use crate::listener::Counted;
use crate::settings::Layer;
use crate::worker::{Instruction, WorkerMailbox};

/// A worker hands over when it has more than the least loaded one's sessions and this part of them: exact for few, and
/// practically never where connections come and go.
const TOLERATED_PART: usize = 8;

/// Unread mail of a worker beyond which nobody hands a session over to it: it is behind already.
const UNREAD_MAX: usize = 1024;

/// All workers of a process: first those of the transport layer, then as many of the application layer.
pub(crate) struct Crew {
    members: Box<[Member]>,
}

/// Aligned so that workers that count do not disturb each other: processors fetch cache lines in pairs.
#[repr(align(128))]
struct Member {
    sessions: AtomicUsize,
    mailbox: WorkerMailbox,
}

/// An accepted socket that is not a session yet, perhaps on its way to another worker. It counts as one already, and on the
/// worker that it goes to, so that not all go there at once.
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) origin: Origin,
    pub(crate) listener: Counted,
    pub(crate) place: Place,
}

/// A session's place on a worker, counted until it is dropped.
pub(crate) struct Place {
    crew: Arc<Crew>,
    worker: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crew.members[self.worker]
            .sessions
            .fetch_sub(1, Ordering::Relaxed);
    }
}

impl Crew {
    /// So many workers of each layer, with nothing to do yet.
    pub(crate) fn of(workers: usize) -> io::Result<Arc<Self>> {
        let member = |_| {
            Ok(Member {
                sessions: AtomicUsize::new(0),
                mailbox: WorkerMailbox::new()?,
            })
        };
        let members = (0..2 * workers).map(member).collect::<io::Result<_>>()?;
        Ok(Arc::new(Self { members }))
    }

    /// The workers of a layer.
    pub(crate) const fn of_layer(&self, layer: Layer) -> Range<usize> {
        let half = self.members.len() / 2;
        match layer {
            Layer::Transport => 0..half,
            Layer::Application => half..self.members.len(),
        }
    }

    /// The layer of a worker.
    pub(crate) const fn layer_of(&self, worker: usize) -> Layer {
        if worker < self.members.len() / 2 {
            Layer::Transport
        } else {
            Layer::Application
        }
    }

    /// How to reach a worker.
    pub(crate) fn mailbox(&self, worker: usize) -> &WorkerMailbox {
        &self.members[worker].mailbox
    }

    /// A worker's sessions, with those on their way to it. Relaxed: whoever decides by it may be wrong by a few.
    pub(crate) fn sessions(&self, worker: usize) -> usize {
        self.members[worker].sessions.load(Ordering::Relaxed)
    }

    fn place_on(self: &Arc<Self>, worker: usize) -> Place {
        self.members[worker]
            .sessions
            .fetch_add(1, Ordering::Relaxed);
        Place {
            crew: Arc::clone(self),
            worker,
        }
    }

    fn least_loaded(&self, peers: Range<usize>) -> usize {
        let first = peers.start;
        peers
            .min_by_key(|worker| self.sessions(*worker))
            .unwrap_or(first)
    }
}

/// How a worker whose listeners rest is told that there may be a place.
#[derive(Clone)]
pub(crate) struct WorkerBell {
    worker: usize,
    mailbox: WorkerMailbox,
}

impl PartialEq for WorkerBell {
    fn eq(&self, other: &Self) -> bool {
        self.worker == other.worker
    }
}

impl Bell for WorkerBell {
    fn ring(&self) -> bool {
        let mail = Mail::Worker(Instruction::AcceptAgain);
        self.mailbox.post(mail).is_ok()
    }
}

/// A worker among the others.
pub(crate) struct Membership {
    crew: Arc<Crew>,
    worker: usize,
    /// Itself and the others of its layer: nobody else can serve what it accepts.
    peers: Range<usize>,
    /// The least loaded of them when it was last looked for.
    least: usize,
    looked_at: Option<Time>,
}

impl Membership {
    pub(crate) fn new(crew: Arc<Crew>, worker: usize) -> Self {
        Self {
            peers: crew.of_layer(crew.layer_of(worker)),
            crew,
            worker,
            least: worker,
            looked_at: None,
        }
    }

    /// This worker's bell.
    pub(crate) fn bell(&self) -> WorkerBell {
        WorkerBell {
            worker: self.worker,
            mailbox: self.crew.mailbox(self.worker).clone(),
        }
    }

    /// A place on this worker.
    pub(crate) fn place(&self) -> Place {
        self.crew.place_on(self.worker)
    }

    /// Hands an accepted socket over, if another worker has clearly less to do and takes it; otherwise it comes back.
    pub(crate) fn relieve(&mut self, mut arrival: Arrival, now: Time) -> Option<Arrival> {
        let Some(worker) = self.relief(now) else {
            return Some(arrival);
        };
        arrival.place = self.crew.place_on(worker);
        // Whoever is looked for next may be another.
        self.looked_at = None;
        let mail = Mail::Worker(Instruction::Adopt(arrival));
        match self.crew.mailbox(worker).post_within(mail, UNREAD_MAX) {
            Err(Mail::Worker(Instruction::Adopt(mut arrival))) => {
                arrival.place = self.place();
                Some(arrival)
            }
            _ => None,
        }
    }

    /// Who should take the next session instead. All workers are looked at once a turn, not for each connection: their counts
    /// lie in their processors' caches.
    fn relief(&mut self, now: Time) -> Option<usize> {
        if self.peers.len() == 1 {
            return None;
        }
        if self.looked_at != Some(now) {
            self.looked_at = Some(now);
            self.least = self.crew.least_loaded(self.peers.clone());
        }
        let (own, least) = (
            self.crew.sessions(self.worker),
            self.crew.sessions(self.least),
        );
        // The socket in question is among this worker's own.
        is_clearly_more(own.saturating_sub(1), least).then_some(self.least)
    }
}

const fn is_clearly_more(own: usize, least: usize) -> bool {
    own > least + least / TOLERATED_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few sessions are spread exactly; of many, an eighth more is borne.
    #[test]
    fn a_worker_bears_an_eighth_more() {
        for (own, least, hands_over) in [
            (0, 0, false),
            (1, 0, true),
            (8, 7, true),
            (8, 8, false),
            (9, 8, false),
            (900, 800, false),
            (901, 800, true),
        ] {
            assert_eq!(is_clearly_more(own, least), hands_over, "{own} {least}");
        }
    }

    /// A place counts while it is held, and only on its own worker.
    #[test]
    fn a_place_counts_until_it_is_dropped() {
        let crew = Crew::of(2).unwrap();
        let place = crew.place_on(1);
        assert_eq!((crew.sessions(0), crew.sessions(1)), (0, 1));
        assert_eq!(crew.least_loaded(0..2), 0);
        drop(place);
        assert_eq!(crew.sessions(1), 0);
    }
}
