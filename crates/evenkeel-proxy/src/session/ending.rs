//! The ways out: a reply of our own, lingering, closing, and the one record.
//!
//! A socket that is closed with unread input sends a reset, which can destroy an answer that the peer has not read yet. So a
//! session whose last word was an answer lingers: it ends its own stream and reads on, within bounds, until the peer has
//! ended too.

use std::time::Duration;

use evenkeel_core::Outcome;
use evenkeel_core::units::Time;
use evenkeel_reactor::{
    Fate, Flow, Pump, READ_BUFFER_BYTES, READS_PER_TURN_MAX, Received, Splice, Stream, discard,
};
use evenkeel_wire::mysql;

use super::{Session, State};
use crate::settings::FailureReply;
use crate::telemetry::reason::Reason;
use crate::upstream::Attempt;
use crate::worker::Work;

/// How long a peer may be silent after its last answer before it is closed on. With all its input read, that close is an
/// orderly one: whatever of the answer the kernel has not yet sent still arrives.
const LINGER_SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long a peer may go on sending after its last answer.
const LINGER_TIME_MAX: Duration = Duration::from_secs(30);

/// How much of what a peer goes on sending is read and thrown away meanwhile.
pub(super) const LINGER_BYTES_MAX: u64 = 16 << 20;

/// Bytes thrown away in one turn, so that the other sessions get theirs.
pub(super) const DISCARD_PER_TURN: u64 = (READ_BUFFER_BYTES * READS_PER_TURN_MAX) as u64;

/// The last wait of a session: for its peer to take what was sent, and to end.
pub(super) struct Linger {
    pub(super) reason: Reason,
    /// The endpoint, if the wait is for it: the client is then gone. Otherwise the wait is for the client.
    pub(super) attempt: Option<Attempt>,
    reply: Pump,
    discarded: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Replying,
    Draining,
}

enum Wait {
    ForEvents,
    ForTurn,
    Over,
}

/// How the client's socket is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    Orderly,
    Reset,
}

impl Linger {
    fn begin(reason: Reason, attempt: Option<Attempt>, reply: &[u8]) -> Self {
        let mut pump = Pump::new(0, Splice::Off);
        pump.append(reply);
        Self {
            reason,
            attempt,
            reply: pump,
            discarded: 0,
            stage: Stage::Replying,
        }
    }

    /// Sends what is left of the reply, then the end of stream, then reads until the peer ends.
    fn advance(&mut self, stream: &mut Stream, peer: Peer, buffer: &mut [u8]) -> Wait {
        if self.stage == Stage::Replying {
            match self.reply.flush(stream) {
                Flow::Yielding => {}
                Flow::Waiting if stream.fault().is_none() => return Wait::ForEvents,
                _ => return Wait::Over,
            }
            if peer == Peer::Ended {
                return Wait::Over;
            }
            stream.send_end();
            self.stage = Stage::Draining;
        }
        self.drain(stream, buffer)
    }

    fn drain(&mut self, stream: &mut Stream, buffer: &mut [u8]) -> Wait {
        let (count, received) = discard(stream, buffer, DISCARD_PER_TURN);
        self.discarded += count;
        match received {
            Received::End | Received::Broken(_) => Wait::Over,
            _ if self.discarded >= LINGER_BYTES_MAX => Wait::Over,
            _ if stream.is_readable() => Wait::ForTurn,
            _ => Wait::ForEvents,
        }
    }
}

/// Whether the peer's end of stream has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    Open,
    Ended,
}

impl Session {
    /// No endpoint could serve it: the failure reply, where there is one.
    pub(super) fn give_up(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        match &self.listener.settings.failure_reply {
            Some(reply) => {
                let reply = failure_reply(reply, reason);
                self.reply(&reply, reason, work)
            }
            None => self.end(reason, work),
        }
    }

    /// The client has sent nothing usable: the empty reply, where there is one.
    pub(super) fn turn_away(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        match self.listener.settings.empty_reply.clone() {
            Some(reply) => self.reply(&reply, reason, work),
            None => self.end(reason, work),
        }
    }

    /// The answer is complete, but the client has not finished sending what nobody takes any more.
    pub(super) fn linger_for_client(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        if let State::Relaying(relay) = self.leave() {
            let outcome = relay.outcome_at_end(reason);
            self.give_back(relay.attempt, outcome, work.now());
        }
        self.enter_linger(Linger::begin(reason, None, &[]), work.now());
        self.linger(work)
    }

    /// The request is complete, but the endpoint has not finished sending what nobody takes any more.
    pub(super) fn linger_for_endpoint(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        let State::Relaying(relay) = self.leave() else {
            return Fate::Keep;
        };
        self.enter_linger(Linger::begin(reason, Some(relay.attempt), &[]), work.now());
        self.linger(work)
    }

    pub(super) fn linger(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let State::Lingering(mut linger) = self.leave() else {
            return Fate::Keep;
        };
        let wait = self.advance(&mut linger, work);
        let reason = linger.reason;
        // Not `enter`: the wait began when it began.
        self.state = State::Lingering(linger);
        match wait {
            Wait::ForEvents => {}
            Wait::ForTurn => work.turn.run_again(self.key),
            Wait::Over => return self.end(reason, work),
        }
        Fate::Keep
    }

    /// A deadline that is moved by every byte that comes, up to a last one.
    pub(super) fn linger_deadline(&self) -> Time {
        self.since
            .after(LINGER_TIME_MAX)
            .min(self.moved_at.after(LINGER_SILENCE_MAX))
    }

    /// The one end of every session.
    pub(super) fn end(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        self.close(reason, Close::Orderly, work)
    }

    /// Gives back what the session holds and hands over its record. The loop then drops it, which closes the client's socket.
    pub(super) fn close(&mut self, reason: Reason, close: Close, work: &mut Work<'_, '_>) -> Fate {
        let now = work.now();
        self.release(reason, now);
        if close == Close::Reset {
            self.downstream.reset_when_closed();
        }
        work.shared.sink.session_ended(self.record(reason, now));
        Fate::Remove
    }

    /// Ends whatever the session was doing.
    fn release(&mut self, reason: Reason, now: Time) {
        match self.leave() {
            State::Relaying(relay) => self.part(relay, reason, now),
            State::Connecting(attempt) => attempt.abort(Outcome::Abandoned, now),
            State::Lingering(linger) => {
                if let Some(attempt) = linger.attempt {
                    attempt.finish(Outcome::Abandoned, now);
                }
            }
            // Dropping a ticket leaves the queue, dropping a lease gives it back.
            State::Queued(_) | State::BackingOff { .. } | State::Preread(_) | State::Placing => {}
        }
    }

    fn enter_linger(&mut self, linger: Linger, now: Time) {
        self.moved_at = now;
        self.enter(State::Lingering(Box::new(linger)), now);
    }

    /// Answers in the endpoint's stead.
    fn reply(&mut self, reply: &[u8], reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        self.enter_linger(Linger::begin(reason, None, reply), work.now());
        self.linger(work)
    }

    fn advance(&mut self, linger: &mut Linger, work: &mut Work<'_, '_>) -> Wait {
        let mut attempt = linger.attempt.take();
        let (stream, peer) = match &mut attempt {
            Some(attempt) => (&mut attempt.stream, Peer::Open),
            None if self.up.has_source_ended() => (&mut self.downstream, Peer::Ended),
            None => (&mut self.downstream, Peer::Open),
        };
        let before = linger.discarded;
        let wait = linger.advance(stream, peer, &mut work.turn.gear.buffer);
        if linger.discarded > before {
            self.moved_at = work.now();
        }
        linger.attempt = attempt;
        wait
    }
}

fn failure_reply(reply: &FailureReply, reason: Reason) -> Vec<u8> {
    match reply {
        FailureReply::Text(text) => text.to_vec(),
        FailureReply::MysqlError => {
            let message = format!("evenkeel: no database could serve this connection ({reason})");
            mysql::error_instead_of_greeting(mysql::UNKNOWN_ERROR, &message)
        }
    }
}
