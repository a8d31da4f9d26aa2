//! What a worker does about its listeners, the same on either layer: places for sessions, rests, changes, and handing an
//! accepted socket over to another worker.
//!
//! What becomes of a session is its worker's own business: it is given back what concerns sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_reactor::{Listener, Origin, Rest, Stream, Turn};

use crate::crew::{Arrival, Membership, WorkerBell};
use crate::listener::{Admission, Counts, ListenerState};
use crate::pauses::PauseCause;
use crate::pulse::Pulse;
use crate::worker::{Instruction, Relisten};

/// How often at most a worker says that a listener rests.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// See the module's documentation.
pub(crate) struct Entrance {
    /// By the numbers under which the reactor knows the worker's listeners.
    listeners: HashMap<u32, Arc<ListenerState>>,
    membership: Membership,
    bell: WorkerBell,
    /// Tells that this worker reads its mail.
    pulse: Arc<Pulse>,
    phase: Phase,
    /// Listeners that rest.
    paused: Vec<Paused>,
    /// When it was last said that a listener rests.
    said_at: Option<Time>,
}

/// Whether a worker takes new sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// What it has accepted or is handed; nothing goes to others any more.
    Draining,
    /// None.
    Closed,
}

/// A listener that rests, under the counts it had when it began.
struct Paused {
    number: u32,
    counts: Arc<Counts>,
    began: Time,
}

/// What an instruction means to a worker's sessions.
pub(crate) enum Errand {
    /// One more, accepted elsewhere.
    Open(Arrival),
    /// End those that use the endpoint.
    CloseThoseOf(EndpointId),
    /// Let them finish.
    Drain,
    /// End them all.
    Stop,
}

impl Entrance {
    /// Of a worker with these listeners.
    pub(crate) fn new<'a>(
        listeners: impl Iterator<Item = &'a Arc<ListenerState>>,
        membership: Membership,
        pulse: Arc<Pulse>,
    ) -> Self {
        let numbered = listeners.map(|listener| (listener.number, Arc::clone(listener)));
        Self {
            listeners: numbered.collect(),
            bell: membership.bell(),
            membership,
            pulse,
            phase: Phase::Running,
            paused: Vec::new(),
            said_at: None,
        }
    }

    /// A place for one more session of this listener.
    ///
    /// # Errors
    ///
    /// There is none, for this reason; the worker's bell will be rung when there may be one.
    pub(crate) fn place(&self, listener: u32) -> Result<Admission, PauseCause> {
        match self.listeners.get(&listener) {
            Some(listener) => listener.admit(&self.bell),
            // The reactor has none that is not here; if it had, nobody could be accepted on it.
            None => Err(PauseCause::Listener),
        }
    }

    /// What to do with a socket that was accepted: `None` if another worker has taken it over.
    pub(crate) fn accepted(
        &mut self,
        (stream, origin): (Stream, Origin),
        admission: Admission,
        now: Time,
    ) -> Option<Arrival> {
        let arrival = Arrival {
            stream,
            origin,
            listener: admission.begin()?,
            place: self.membership.place(),
        };
        match self.phase {
            Phase::Running => self.membership.relieve(arrival, now),
            Phase::Draining | Phase::Closed => Some(arrival),
        }
    }

    /// The session may begin, unless it was accepted or handed over when it was too late: then it is as if the backlog had been
    /// closed on it.
    pub(crate) fn let_in(&self, arrival: Arrival) -> Option<Arrival> {
        if self.phase == Phase::Closed {
            arrival.stream.reset_when_closed();
            return None;
        }
        Some(arrival)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.phase != Phase::Running
    }

    pub(crate) fn rested(&mut self, listener: u32, why: Rest<PauseCause>, now: Time) {
        let cause = match why {
            Rest::Refused(cause) => cause,
            Rest::OutOfDescriptors => PauseCause::Descriptors,
        };
        let Some(state) = self.listeners.get(&listener) else {
            return;
        };
        state.counts.pauses.begin(cause, now);
        self.paused.push(Paused {
            number: listener,
            counts: Arc::clone(&state.counts),
            began: now,
        });
        if self
            .said_at
            .is_none_or(|said_at| now.since(said_at) >= SAID_EVERY)
        {
            self.said_at = Some(now);
            say_paused(&state.settings.name, cause);
        }
    }

    pub(crate) fn went_on(&mut self, listener: u32, now: Time) {
        let place = self
            .paused
            .iter()
            .position(|paused| paused.number == listener);
        if let Some(place) = place {
            let paused = self.paused.swap_remove(place);
            paused.counts.pauses.end(paused.began, now);
        }
    }

    pub(crate) fn closed(&mut self, listener: u32) {
        self.listeners.remove(&listener);
    }

    /// Does what an instruction says of listeners; what it says of sessions comes back.
    pub(crate) fn instructed(
        &mut self,
        turn: &mut Turn<'_>,
        instruction: Instruction,
    ) -> Option<Errand> {
        match instruction {
            Instruction::AcceptAgain => turn.accept_again(),
            Instruction::Answer => self.pulse.answer(),
            Instruction::Relisten(changes) => self.relisten(turn, *changes),
            Instruction::Lend(to) => turn.lend(to),
            Instruction::TakeFiles(files) => turn.take_files(files),
            Instruction::Adopt(arrival) => return Some(Errand::Open(arrival)),
            Instruction::CloseSessionsOf(endpoint) => return Some(Errand::CloseThoseOf(endpoint)),
            Instruction::Drain => return self.drain(turn),
            Instruction::HandOver => {
                turn.leave_files();
                return self.drain(turn);
            }
            Instruction::Close => {
                turn.finish();
                self.phase = Phase::Closed;
                return Some(Errand::Stop);
            }
        }
        None
    }

    fn drain(&mut self, turn: &mut Turn<'_>) -> Option<Errand> {
        turn.finish();
        if self.phase != Phase::Running {
            return None;
        }
        self.phase = Phase::Draining;
        Some(Errand::Drain)
    }

    fn relisten(&mut self, turn: &mut Turn<'_>, changes: Relisten) {
        for listener in changes.changed {
            turn.adjust(listener.number, listener.options);
            self.listeners.insert(listener.number, listener);
        }
        // One that comes when the process is ending already is closed as its socket is dropped.
        if self.phase == Phase::Running {
            for (listener, socket) in changes.opened {
                self.listen(turn, listener, socket);
            }
        }
        for number in changes.closed {
            turn.stop_listening(number);
        }
        turn.report(changes.done);
    }

    fn listen(&mut self, turn: &mut Turn<'_>, listener: Arc<ListenerState>, socket: Listener) {
        match turn.listen(listener.number, socket) {
            Ok(()) => {
                self.listeners.insert(listener.number, listener);
            }
            Err(error) => {
                tracing::error!(listener = &*listener.settings.name, %error, "a worker cannot watch a new listener, and takes none of its connections");
            }
        }
    }
}

fn say_paused(listener: &str, cause: PauseCause) {
    match cause {
        PauseCause::Listener => tracing::warn!(
            listener,
            "as many sessions as its max_connections allows: further clients wait"
        ),
        PauseCause::Process => tracing::warn!(
            listener,
            "as many sessions as max_connections of [process] allows: further clients wait"
        ),
        PauseCause::Descriptors => tracing::warn!(
            listener,
            "no file descriptors left for more clients: they wait; raise the limit (LimitNOFILE=, ulimit -Hn)"
        ),
    }
}
