//! One client's connection, from accept to the end: an explicit state machine over two streams and two pumps.
//!
//! ```text
//!   accept ──► Placing ─────────────────────────► a lease ──────────────┬──► Connecting ──► Relaying
//!                │  ▲                                ▲                  │        │            │
//!   first bytes  │  │ placed                         │ granted          │        │ failed     │ closed, reset or silent
//!      needed    ▼  │                                │                  │        ▼            ▼ before an answer
//!             Preread        all endpoints full ► Queued                └─◄── Placing ◄── replay possible
//!                │                                   │     (tried before:        │            │
//!     nothing    │                          timeout  │      BackingOff first)    │ none left  │ otherwise, or done
//!     usable     ▼                                   ▼                           ▼            ▼
//!            Lingering ◄──────────────── a reply of our own, or unread input ──────────────────
//!                └──► closed
//! ```
//!
//! Any wait ends at its deadline, and while there is no connection to an endpoint, a client that has gone ends the session.
//! [`Preread`](preread), placing and trying endpoints ([`seek`]), moving bytes ([`relay`]) and closing ([`ending`]) each have
//! their file. Which endpoint is chosen is `evenkeel-core`'s decision, how bytes are moved the reactor's business.

mod ending;
mod header;
mod hello;
mod preread;
mod record;
mod relay;
mod seek;

use std::io;
use std::time::Duration;

use evenkeel_core::units::Time;
use evenkeel_core::{Lease, Ticket};
use evenkeel_reactor::{Fate, Key, Origin, Pump, Readiness, Stream, Tag};
use evenkeel_wire::proxy_protocol::Header;

use crate::crew::{Arrival, Place};
use crate::listener::Counted;
use crate::telemetry::reason::Reason;
use crate::tier::Placement;
use crate::upstream::Attempt;
use crate::worker::{Work, moment_of};

use ending::Linger;
use record::Trail;
use relay::Relay;
use seek::Tries;

/// The tag of events of the client's socket; those of the n-th try bear n.
const DOWNSTREAM: Tag = 0;

/// One client's connection.
pub(crate) struct Session {
    key: Key,
    /// Who connected.
    peer: Origin,
    /// Whom it connected for, where it is trusted to say so. Rare and large, so not kept within.
    announced: Option<Box<Header>>,
    placement: Placement,
    downstream: Stream,
    /// From the client to the endpoint. It outlives a try, so that another one can be given the same bytes.
    up: Pump,
    /// From the endpoint to the client.
    down: Pump,
    state: State,
    /// When the state was entered.
    since: Time,
    /// When a byte last moved.
    moved_at: Time,
    /// When the timer will fire; never later than the deadline, often earlier.
    armed_at: Time,
    tries: Tries,
    trail: Trail,
    /// Last, so that a session is counted until its sockets are closed.
    listener: Counted,
    _place: Place,
}

/// What a session waits for.
enum State {
    /// Nothing: it is being decided where to go on. Never seen between two turns.
    Placing,
    /// For the client's first bytes.
    Preread(Preread),
    /// For a free slot.
    Queued(#[expect(dead_code, reason = "held: dropping it leaves the queue")] Ticket),
    /// For a while, before it tries an endpoint again that has failed it.
    BackingOff { lease: Lease, pause: Duration },
    /// For a connection to an endpoint.
    Connecting(Attempt),
    /// For bytes, of either side.
    Relaying(Relay),
    /// For the peer to take what was sent and to end its stream. Rare and large, so not kept within.
    Lingering(Box<Linger>),
}

/// Which of the client's first bytes are waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preread {
    /// A PROXY header.
    Header,
    /// The beginning of a TLS handshake.
    Hello,
    /// Its own.
    FirstBytes,
}

impl Session {
    /// A session for an accepted stream, which is watched from now on.
    ///
    /// # Errors
    ///
    /// The kernel cannot watch another socket.
    pub(crate) fn open(key: Key, arrival: Arrival, work: &Work<'_, '_>) -> io::Result<Self> {
        let now = work.now();
        let Arrival {
            stream: downstream,
            origin: peer,
            listener,
            place,
        } = arrival;
        work.turn.watch(&downstream, key, DOWNSTREAM)?;
        let placement = listener.route.place_unread(peer);
        let replay_max = placement.tier.settings.replay;
        let trail = if listener.route.goes_by_server_name() {
            Trail::begin(now).not_yet_placed()
        } else {
            Trail::begin(now)
        };
        Ok(Self {
            key,
            peer,
            announced: None,
            placement,
            downstream,
            up: Pump::new(replay_max, listener.settings.splice),
            down: Pump::new(0, listener.settings.splice),
            state: State::Placing,
            since: now,
            moved_at: now,
            armed_at: Time::NEVER,
            tries: Tries::default(),
            trail,
            listener,
            _place: place,
        })
    }

    /// Begins: straight on to an endpoint, unless the client's first bytes must be seen.
    pub(crate) fn begin(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let stage = if self.awaits_header() {
            Some(Preread::Header)
        } else {
            self.stage_of_first_bytes()
        };
        let fate = match stage {
            Some(stage) => {
                self.enter(State::Preread(stage), work.now());
                Fate::Keep
            }
            None => self.seek(work),
        };
        self.settle(fate, work)
    }

    /// What is read of the client's own bytes before it is placed, if anything is.
    fn stage_of_first_bytes(&self) -> Option<Preread> {
        if self.needs_hello() {
            Some(Preread::Hello)
        } else if self.needs_preread() {
            Some(Preread::FirstBytes)
        } else {
            None
        }
    }

    /// One of the sockets has become ready.
    pub(crate) fn ready(
        &mut self,
        tag: Tag,
        readiness: Readiness,
        work: &mut Work<'_, '_>,
    ) -> Fate {
        match self.stream_of(tag) {
            Some(stream) => stream.note(readiness),
            // An event of a try that is over.
            None => return Fate::Keep,
        }
        self.resume(work)
    }

    /// Goes on as far as it can now.
    pub(crate) fn resume(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let fate = match self.state {
            State::Preread(Preread::Header) => self.read_header(work),
            State::Preread(Preread::Hello) => self.read_hello(work),
            State::Preread(Preread::FirstBytes) => self.preread(work),
            State::Relaying(_) => self.relay(work),
            State::Lingering(_) => self.linger(work),
            State::Placing | State::Queued(_) | State::BackingOff { .. } | State::Connecting(_)
                if self.is_client_gone() =>
            {
                self.note_time_queued(work.now());
                self.end(Reason::ClientClosed, work)
            }
            State::Connecting(_) => self.connecting(work),
            State::Placing | State::Queued(_) | State::BackingOff { .. } => Fate::Keep,
        };
        self.settle(fate, work)
    }

    /// The timer has fired: the deadline has come, or has moved since it was set.
    pub(crate) fn expire(&mut self, work: &mut Work<'_, '_>) -> Fate {
        self.armed_at = Time::NEVER;
        let fate = if work.now() < self.deadline() {
            Fate::Keep
        } else {
            self.time_out(work)
        };
        self.settle(fate, work)
    }

    /// A freed slot is this session's, if it still waits for one; otherwise dropping the lease passes the slot on.
    pub(crate) fn granted(&mut self, lease: Lease, work: &mut Work<'_, '_>) -> Fate {
        if !matches!(self.state, State::Queued(_)) {
            return Fate::Keep;
        }
        self.note_time_queued(work.now());
        self.enter(State::Placing, work.now());
        let fate = self.take(lease, work);
        self.settle(fate, work)
    }

    /// The stop deadline has passed.
    pub(crate) fn stop(&mut self, work: &mut Work<'_, '_>) {
        let reason = match &self.state {
            State::Lingering(linger) => linger.reason,
            _ => Reason::StopDeadline,
        };
        self.note_time_queued(work.now());
        // The caller removes it, whatever its fate.
        let _ = self.end(reason, work);
    }

    /// The wait is over, whatever ended it; no other state counts as one.
    fn note_time_queued(&mut self, now: Time) {
        if matches!(self.state, State::Queued(_)) {
            self.trail.queued += now.since(self.since);
        }
    }

    fn enter(&mut self, state: State, now: Time) {
        self.state = state;
        self.since = now;
    }

    /// Leaves the state for [`State::Placing`].
    fn leave(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Placing)
    }

    /// Arms the timer if the deadline is now earlier than when it would fire. A deadline that moved later costs nothing:
    /// [`Session::expire`] looks again.
    fn settle(&mut self, fate: Fate, work: &mut Work<'_, '_>) -> Fate {
        if fate == Fate::Keep {
            let deadline = self.deadline();
            if deadline < self.armed_at {
                self.armed_at = deadline;
                work.turn.arm(self.key, moment_of(deadline));
            }
        }
        fate
    }

    fn deadline(&self) -> Time {
        let settings = &self.placement.tier.settings;
        match &self.state {
            State::Placing => Time::NEVER,
            State::Preread(_) => self.since.after(self.listener.settings.timeouts.preread),
            State::Queued(_) => self.since.after(settings.queue_timeout),
            State::BackingOff { pause, .. } => self.since.after(*pause),
            State::Connecting(_) => self.since.after(settings.connect_timeout),
            State::Relaying(relay) => self.relay_deadline(relay),
            State::Lingering(_) => self.linger_deadline(),
        }
    }

    fn time_out(&mut self, work: &mut Work<'_, '_>) -> Fate {
        match &self.state {
            State::Placing => Fate::Keep,
            State::Preread(Preread::Header) => self.header_missing(work),
            State::Preread(Preread::Hello) => self.hello_missing(work),
            State::Preread(Preread::FirstBytes) => self.turn_away(Reason::PrereadTimeout, work),
            State::Queued(_) => {
                self.note_time_queued(work.now());
                self.give_up(Reason::QueueTimeout, work)
            }
            State::BackingOff { .. } => self.back_off_over(work),
            State::Connecting(_) => self.connect_timed_out(work),
            State::Relaying(_) => self.relay_timed_out(work),
            State::Lingering(linger) => {
                let reason = linger.reason;
                self.end(reason, work)
            }
        }
    }

    /// The stream that events with this tag are about.
    fn stream_of(&mut self, tag: Tag) -> Option<&mut Stream> {
        if tag == DOWNSTREAM {
            return Some(&mut self.downstream);
        }
        let attempt = match &mut self.state {
            State::Connecting(attempt) => Some(attempt),
            State::Relaying(relay) => Some(&mut relay.attempt),
            State::Lingering(linger) => linger.attempt.as_mut(),
            State::Placing | State::Preread(_) | State::Queued(_) | State::BackingOff { .. } => {
                None
            }
        };
        attempt
            .filter(|attempt| attempt.tag == tag)
            .map(|attempt| &mut attempt.stream)
    }

    /// Whether the client is known to be gone. An end of stream is not: a client may send its request, end its stream and wait
    /// for the answer. Only a reset or a kernel timeout says so.
    fn is_client_gone(&self) -> bool {
        self.downstream.fault().is_some()
    }
}

/// `None` is no limit.
fn after(moment: Time, limit: Option<Duration>) -> Time {
    limit.map_or(Time::NEVER, |limit| moment.after(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An idle session is this value and two sockets: what 9,000 of them take is known beforehand.
    #[test]
    fn a_session_is_small() {
        println!("{} bytes", size_of::<Session>());
        assert!(size_of::<Session>() <= 768);
    }
}
