//! A reactor thread that runs TCP sessions, and what every worker is told.
//!
//! The loop belongs to the reactor and the sessions' behaviour to [`session`](crate::session); here one is put to the
//! other's use.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_core::{Lease, Waiter};
use evenkeel_reactor::{
    Fate, FileMark, Handler, Key, Lent, Listener, Mail, Mailbox, Moment, Origin, Readiness, Rest,
    Slots, Stream, Tag, Turn,
};

use crate::SessionSink;
use crate::crew::Arrival;
use crate::entrance::{Entrance, Errand};
use crate::listener::{Admission, ListenerState};
use crate::pauses::PauseCause;
use crate::session::Session;
use crate::upstream::SessionIndex;

/// What other threads tell a worker.
pub(crate) enum Instruction {
    /// Accept nothing more, and end with the last session.
    Drain,
    /// Accept nothing more, and end all sessions now.
    Close,
    /// Say that it is read.
    Answer,
    /// There may be a place for a client: try again where listeners rest.
    AcceptAgain,
    /// Take over a socket that another worker has accepted.
    Adopt(Arrival),
    /// Probes have found the endpoint down: end the sessions that use it.
    CloseSessionsOf(EndpointId),
    /// Accept on other listeners, or by other settings.
    Relisten(Box<Relisten>),
    /// Give duplicates of all listening sockets.
    Lend(SyncSender<Lent>),
    /// As `Drain`, but leave the listeners' addresses to whoever has the duplicates.
    HandOver,
    /// Have charge of these files: the process that lent their sockets has left them.
    TakeFiles(Arc<[FileMark]>),
}

/// How a worker's listeners change: all at one moment, as far as its new sessions can see.
pub(crate) struct Relisten {
    /// With the worker's own socket of each.
    pub(crate) opened: Vec<(Arc<ListenerState>, Listener)>,
    /// Under the numbers that they have already.
    pub(crate) changed: Vec<Arc<ListenerState>>,
    /// By their numbers. What waits in their backlogs is accepted first.
    pub(crate) closed: Vec<u32>,
    /// Told when all of it is done.
    pub(crate) done: SyncSender<()>,
}

/// How other threads reach a worker: a session is told of a freed slot that is now its own, the worker is instructed.
pub(crate) type WorkerMailbox = Mailbox<Grant, Instruction>;

/// A freed slot that is a session's now.
pub(crate) struct Grant {
    pub(crate) lease: Lease,
    /// Which of the session's waits it ends.
    pub(crate) wait: u16,
}

/// What the sessions of one worker share.
pub(crate) struct Shared {
    pub(crate) sink: Arc<dyn SessionSink>,
    /// Brings a granted slot to this worker.
    pub(crate) waiter: Arc<dyn Waiter>,
    pub(crate) index: Arc<SessionIndex>,
    pub(crate) random: fastrand::Rng,
}

/// What a session may use while it is at work.
pub(crate) struct Work<'a, 'b> {
    pub(crate) turn: &'a mut Turn<'b>,
    pub(crate) shared: &'a mut Shared,
}

impl Work<'_, '_> {
    /// The time at which this turn of the loop began: the clock is read once per turn.
    pub(crate) const fn now(&self) -> Time {
        time_of(self.turn.now)
    }
}

/// The reactor's moment as the core's time; both count microseconds since the same origin.
pub(crate) const fn time_of(moment: Moment) -> Time {
    Time::from_micros(moment.as_micros())
}

/// The core's time as the reactor's moment.
pub(crate) const fn moment_of(time: Time) -> Moment {
    Moment::from_micros(time.as_micros())
}

/// Brings granted slots to the sessions of one worker, from whichever thread a slot became free on. A token is a session's key,
/// and above it the number of its wait.
pub(crate) struct GrantPost(pub(crate) WorkerMailbox);

impl GrantPost {
    /// How many numbers there are for a session's waits.
    pub(crate) const WAIT_NUMBERS: u16 = 1 << (u64::BITS - Key::BITS);

    /// The token of that wait of a session.
    pub(crate) const fn token(session: Key, wait: u16) -> u64 {
        session.to_u64() | (wait as u64) << Key::BITS
    }
}

impl Waiter for GrantPost {
    fn grant(&self, token: u64, lease: Lease) {
        let wait = (token >> Key::BITS) as u16;
        // What the mailbox refuses is dropped: the slot passes on. The session that was to have it waits in vain until its queue
        // timeout, but for that 65,536 messages must lie unread.
        let _ = self.0.post(Mail::Connection(
            Key::from_u64(token),
            Grant { lease, wait },
        ));
    }
}

/// Runs TCP sessions on a reactor worker.
pub(crate) struct SessionHandler {
    entrance: Entrance,
    shared: Shared,
}

impl SessionHandler {
    pub(crate) const fn new(entrance: Entrance, shared: Shared) -> Self {
        Self { entrance, shared }
    }
}

impl Handler for SessionHandler {
    type Connection = Session;
    type Message = Grant;
    type Instruction = Instruction;
    type Place = Admission;
    type Refusal = PauseCause;

    fn accepted(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &mut Slots<Session>,
        _: u32,
        stream: Stream,
        origin: Origin,
        admission: Admission,
    ) {
        let now = time_of(turn.now);
        if let Some(arrival) = self.entrance.accepted((stream, origin), admission, now) {
            self.open(turn, sessions, arrival);
        }
    }

    fn place(&mut self, listener: u32) -> Result<Admission, PauseCause> {
        self.entrance.place(listener)
    }

    fn unused(&mut self, admission: Admission) {
        admission.pass_on();
    }

    fn rested(&mut self, turn: &mut Turn<'_>, listener: u32, why: Rest<PauseCause>) {
        self.entrance.rested(listener, why, time_of(turn.now));
    }

    fn went_on(&mut self, turn: &mut Turn<'_>, listener: u32) {
        self.entrance.went_on(listener, time_of(turn.now));
    }

    fn closed(&mut self, listener: u32) {
        self.entrance.closed(listener);
    }

    fn ready(
        &mut self,
        turn: &mut Turn<'_>,
        session: &mut Session,
        tag: Tag,
        readiness: Readiness,
    ) -> Fate {
        session.ready(
            tag,
            readiness,
            &mut Work {
                turn,
                shared: &mut self.shared,
            },
        )
    }

    fn resumed(&mut self, turn: &mut Turn<'_>, session: &mut Session) -> Fate {
        session.resume(&mut Work {
            turn,
            shared: &mut self.shared,
        })
    }

    fn expired(&mut self, turn: &mut Turn<'_>, session: &mut Session) -> Fate {
        session.expire(&mut Work {
            turn,
            shared: &mut self.shared,
        })
    }

    fn told(&mut self, turn: &mut Turn<'_>, session: &mut Session, granted: Grant) -> Fate {
        session.granted(
            granted.lease,
            &mut Work {
                turn,
                shared: &mut self.shared,
            },
        )
    }

    fn instructed(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &mut Slots<Session>,
        instruction: Instruction,
    ) {
        match self.entrance.instructed(turn, instruction) {
            Some(Errand::Open(arrival)) => self.open(turn, sessions, arrival),
            Some(Errand::CloseThoseOf(endpoint)) => self.close_of(turn, sessions, endpoint),
            Some(Errand::Stop) => self.stop_all(turn, sessions),
            // Nothing says to one end of a stream of bytes that it should finish.
            Some(Errand::Drain) | None => {}
        }
    }
}

impl SessionHandler {
    /// Begins a session.
    fn open(&mut self, turn: &mut Turn<'_>, sessions: &mut Slots<Session>, arrival: Arrival) {
        let Some(arrival) = self.entrance.let_in(arrival) else {
            return;
        };
        let mut work = Work {
            turn,
            shared: &mut self.shared,
        };
        let opened = sessions.insert_with(|key| Session::open(key, arrival, &work));
        let key = match opened {
            Ok(key) => key,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be watched and is closed");
                return;
            }
        };
        let fate = sessions
            .get_mut(key)
            .map(|session| session.begin(&mut work));
        if fate == Some(Fate::Remove) {
            sessions.remove(key);
        }
    }

    fn close_of(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &mut Slots<Session>,
        endpoint: EndpointId,
    ) {
        let keys = self.shared.index.sessions(endpoint);
        let mut work = Work {
            turn,
            shared: &mut self.shared,
        };
        for key in keys {
            let session = sessions.get_mut(key);
            let fate = session.map(|session| session.endpoint_down(&mut work));
            if fate == Some(Fate::Remove) {
                sessions.remove(key);
            }
        }
    }

    fn stop_all(&mut self, turn: &mut Turn<'_>, sessions: &mut Slots<Session>) {
        let mut work = Work {
            turn,
            shared: &mut self.shared,
        };
        for key in sessions.keys() {
            if let Some(mut session) = sessions.remove(key) {
                session.stop(&mut work);
            }
        }
    }
}
