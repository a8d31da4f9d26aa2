//! A reactor thread that runs TCP sessions: what it is told, and what its sessions share.
//!
//! The loop belongs to the reactor and the sessions' behaviour to [`session`](crate::session); here one is put to the
//! other's use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_core::{Lease, Waiter};
use evenkeel_reactor::{
    Fate, FileMark, Handler, Key, Lent, Listener, Mail, Mailbox, Moment, Origin, Readiness, Rest,
    Slots, Stream, Tag, Turn,
};

use crate::SessionSink;
use crate::crew::{Arrival, Membership, WorkerBell};
use crate::listener::{Admission, Counts, ListenerState};
use crate::pauses::PauseCause;
use crate::pulse::Pulse;
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
pub(crate) type WorkerMailbox = Mailbox<Lease, Instruction>;

/// What the sessions of one worker share.
pub(crate) struct Shared {
    pub(crate) sink: Arc<dyn SessionSink>,
    /// Brings a granted slot to this worker.
    pub(crate) waiter: Arc<dyn Waiter>,
    pub(crate) index: Arc<SessionIndex>,
    pub(crate) random: fastrand::Rng,
    /// Tells that this worker reads its mail.
    pub(crate) pulse: Arc<Pulse>,
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

/// Brings granted slots to the sessions of one worker, from whichever thread a slot became free on.
pub(crate) struct GrantPost(pub(crate) WorkerMailbox);

impl Waiter for GrantPost {
    fn grant(&self, token: u64, lease: Lease) {
        // What the mailbox refuses is dropped: the slot passes on. The session that was to have it waits in vain until its queue
        // timeout, but for that 65,536 messages must lie unread.
        let _ = self.0.post(Mail::Connection(Key::from_u64(token), lease));
    }
}

/// Runs TCP sessions on a reactor worker.
pub(crate) struct SessionHandler {
    /// By the numbers under which the reactor knows the worker's listeners.
    listeners: HashMap<u32, Arc<ListenerState>>,
    shared: Shared,
    membership: Membership,
    bell: WorkerBell,
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

/// How often at most a worker says that a listener rests.
const SAID_EVERY: Duration = Duration::from_secs(10);

impl SessionHandler {
    pub(crate) fn new(
        listeners: &[Arc<ListenerState>],
        shared: Shared,
        membership: Membership,
    ) -> Self {
        let numbered = listeners
            .iter()
            .map(|listener| (listener.number, Arc::clone(listener)));
        Self {
            listeners: numbered.collect(),
            shared,
            bell: membership.bell(),
            membership,
            phase: Phase::Running,
            paused: Vec::new(),
            said_at: None,
        }
    }
}

impl Handler for SessionHandler {
    type Connection = Session;
    type Message = Lease;
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
        let Some(listener) = admission.begin() else {
            return;
        };
        let arrival = Arrival {
            stream,
            origin,
            listener,
            place: self.membership.place(),
        };
        let kept = match self.phase {
            Phase::Running => self.membership.relieve(arrival, time_of(turn.now)),
            Phase::Draining | Phase::Closed => Some(arrival),
        };
        if let Some(arrival) = kept {
            self.open(turn, sessions, arrival);
        }
    }

    fn place(&mut self, listener: u32) -> Result<Admission, PauseCause> {
        match self.listeners.get(&listener) {
            Some(listener) => listener.admit(&self.bell),
            // The reactor has none that is not here; if it had, nobody could be accepted on it.
            None => Err(PauseCause::Listener),
        }
    }

    fn unused(&mut self, admission: Admission) {
        admission.pass_on();
    }

    fn rested(&mut self, turn: &mut Turn<'_>, listener: u32, why: Rest<PauseCause>) {
        let cause = match why {
            Rest::Refused(cause) => cause,
            Rest::OutOfDescriptors => PauseCause::Descriptors,
        };
        let Some(state) = self.listeners.get(&listener) else {
            return;
        };
        let now = time_of(turn.now);
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

    fn went_on(&mut self, turn: &mut Turn<'_>, listener: u32) {
        let place = self
            .paused
            .iter()
            .position(|paused| paused.number == listener);
        if let Some(place) = place {
            let paused = self.paused.swap_remove(place);
            paused.counts.pauses.end(paused.began, time_of(turn.now));
        }
    }

    fn closed(&mut self, listener: u32) {
        self.listeners.remove(&listener);
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

    fn told(&mut self, turn: &mut Turn<'_>, session: &mut Session, granted: Lease) -> Fate {
        session.granted(
            granted,
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
        match instruction {
            Instruction::AcceptAgain => turn.accept_again(),
            Instruction::Answer => self.shared.pulse.answer(),
            Instruction::Adopt(arrival) => self.open(turn, sessions, arrival),
            Instruction::CloseSessionsOf(endpoint) => self.close_of(turn, sessions, endpoint),
            Instruction::Relisten(changes) => self.relisten(turn, *changes),
            Instruction::Lend(to) => turn.lend(to),
            Instruction::TakeFiles(files) => turn.take_files(files),
            Instruction::Drain => self.drain(turn),
            Instruction::HandOver => {
                turn.leave_files();
                self.drain(turn);
            }
            Instruction::Close => {
                turn.finish();
                self.phase = Phase::Closed;
                self.stop_all(turn, sessions);
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

impl SessionHandler {
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

    fn drain(&mut self, turn: &mut Turn<'_>) {
        turn.finish();
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    /// Begins a session.
    fn open(&mut self, turn: &mut Turn<'_>, sessions: &mut Slots<Session>, arrival: Arrival) {
        if self.phase == Phase::Closed {
            // Accepted or handed over when it was too late: as if the backlog had been closed on it.
            arrival.stream.reset_when_closed();
            return;
        }
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
