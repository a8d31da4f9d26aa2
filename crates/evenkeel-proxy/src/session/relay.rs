//! Moving bytes between a client and its endpoint, and every way in which that ends.
//!
//! What holds whatever happens: after an end of stream every byte has arrived, once and in order; after a reset what arrived is
//! an exact prefix. So an end of stream is only ever carried over, never made up, and a stream that was not ended is reset.
//!
//! - Either side ends its stream: that end is carried over once all before it is; the other direction goes on.
//! - The client resets: the endpoint is reset at once, whatever is still on its way.
//! - The client is gone, but had ended its stream before: it takes no answer, and its request is still delivered.
//! - The endpoint resets: what had arrived of its answer is delivered, then the client is reset.
//! - The endpoint takes no more of the request, but has ended its answer: the client gets all of the answer and may finish
//!   what it is sending.
//! - The endpoint ends or resets before its first answer byte: another one is tried, if that cannot do a thing twice.

use evenkeel_core::units::Time;
use evenkeel_core::{Failure, Outcome};
use evenkeel_reactor::{Fate, Flow, Gear, KEEPALIVE_IDLE, Pump, Stream, discard};

use super::ending::{Close, DISCARD_PER_TURN, LINGER_BYTES_MAX};
use super::seek::reason_of_failure;
use super::{Session, State, after};
use crate::telemetry::reason::Reason;
use crate::upstream::Attempt;
use crate::worker::Work;

/// A connected endpoint, and how far the relay to it has come.
pub(super) struct Relay {
    pub(super) attempt: Attempt,
    /// When the endpoint was sent its first byte.
    asked_at: Option<Time>,
    client: Client,
    /// Whether the client's end of stream has been carried to the endpoint.
    request_end: Carried,
    /// Whether the endpoint's end of stream has been carried to the client.
    answer_end: Carried,
    /// When the kernel is asked to watch over the endpoint's connection; never again once it is.
    guard_at: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    No,
    Yes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Listening,
    /// It has ended its stream and then gone: whatever comes for it is thrown away. So many bytes since its request last
    /// moved.
    Gone {
        thrown_away: u64,
    },
}

/// Where both directions stand after a run.
struct Flows {
    up: Flow,
    down: Flow,
}

impl Relay {
    pub(super) const fn begin(attempt: Attempt, guard_at: Time) -> Self {
        Self {
            attempt,
            asked_at: None,
            client: Client::Listening,
            request_end: Carried::No,
            answer_end: Carried::No,
            guard_at,
        }
    }

    pub(super) const fn is_asked(&self) -> bool {
        self.asked_at.is_some()
    }

    /// What the endpoint's failure is to the core: before the client has sent something it is none.
    fn outcome_of(&self, failure: Failure) -> Outcome {
        if self.is_asked() {
            Outcome::Failed(failure)
        } else {
            Outcome::Abandoned
        }
    }

    /// What the session's end says of the endpoint.
    pub(super) fn outcome_at_end(&self, reason: Reason) -> Outcome {
        match reason {
            Reason::Done => Outcome::Completed,
            Reason::UpstreamReset => self.outcome_of(Failure::Reset),
            Reason::UpstreamClosed => self.outcome_of(Failure::Closed),
            _ => Outcome::Abandoned,
        }
    }

    fn takes_no_more(&self, up: Flow) -> bool {
        up == Flow::SinkBroken || self.attempt.stream.fault().is_some()
    }
}

impl Session {
    /// Moves what can be moved now, and acts on what that has brought to light.
    pub(super) fn relay(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let before = self.bytes_seen();
        let flows = self.run(work.turn.gear);
        if self.bytes_seen() != before {
            self.note_movement(work.now());
        }
        self.act(&flows, work)
    }

    fn run(&mut self, gear: &mut Gear) -> Flows {
        let may_replace = self.is_answer_missing() && self.may_replace();
        let State::Relaying(relay) = &mut self.state else {
            return Flows {
                up: Flow::Waiting,
                down: Flow::Waiting,
            };
        };
        let endpoint = &mut relay.attempt.stream;
        // An endpoint that has gone before it was sent a byte can be replaced without a replay: look before the first write.
        if relay.asked_at.is_none() && may_replace {
            let down = self.down.run(endpoint, &mut self.downstream, gear);
            if is_over(down) && self.down.received() == 0 {
                return Flows {
                    up: Flow::Waiting,
                    down,
                };
            }
        }
        // The request first: if the endpoint refuses it, the run of the answer finds out how the endpoint ended.
        let before = self.up.moved();
        let up = self.up.run(&mut self.downstream, endpoint, gear);
        let down = match &mut relay.client {
            Client::Listening => self.down.run(endpoint, &mut self.downstream, gear),
            Client::Gone { thrown_away } => {
                if self.up.moved() > before {
                    *thrown_away = 0;
                }
                throw_away(endpoint, &mut gear.buffer, thrown_away)
            }
        };
        Flows { up, down }
    }

    /// Grows with every byte that is read or written.
    const fn bytes_seen(&self) -> u64 {
        self.up.received() + self.up.moved() + self.down.received() + self.down.moved()
    }

    /// The next moment at which something is to be done although no byte has moved.
    pub(super) fn relay_deadline(&self, relay: &Relay) -> Time {
        let given_up_at = self.quiet_deadline().min(self.first_byte_deadline(relay));
        given_up_at.min(relay.guard_at)
    }

    /// When the connection of an endpoint that is connected now gets its guard.
    pub(super) fn guard_at(&self, now: Time) -> Time {
        let dead_peer = self.listener.options.dead_peer;
        now.after(dead_peer.map_or(KEEPALIVE_IDLE, |limit| limit.min(KEEPALIVE_IDLE)))
    }

    fn quiet_deadline(&self) -> Time {
        let timeouts = &self.listener.settings.timeouts;
        let limit = if self.is_half_closed() {
            timeouts.half_closed
        } else {
            timeouts.idle
        };
        after(self.moved_at, limit)
    }

    fn first_byte_deadline(&self, relay: &Relay) -> Time {
        match relay.asked_at {
            Some(asked_at) if !self.trail.is_answered() => {
                after(asked_at, self.placement.tier.settings.first_byte_timeout)
            }
            _ => Time::NEVER,
        }
    }

    pub(super) fn relay_timed_out(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let State::Relaying(relay) = &mut self.state else {
            return Fate::Keep;
        };
        if relay.guard_at <= work.now() {
            relay.guard_at = Time::NEVER;
            relay.attempt.stream.guard(self.listener.options);
            // Whatever else is due still is, a tick later.
            return Fate::Keep;
        }
        let State::Relaying(relay) = &self.state else {
            return Fate::Keep;
        };
        if self.first_byte_deadline(relay) <= work.now() {
            relay.attempt.stream.reset_when_closed();
            return self.unanswered(Failure::FirstByteTimeout, work);
        }
        let reason = if self.is_half_closed() {
            Reason::HalfClosedTimeout
        } else {
            Reason::IdleTimeout
        };
        self.end(reason, work)
    }

    /// Probes have found the endpoint down, and its sessions are not to wait for it. One that has no answer yet goes on to another
    /// endpoint if it can; one that is still on its way to this endpoint finds out for itself.
    pub(crate) fn endpoint_down(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let fate = match &self.state {
            State::Relaying(_) if self.is_answer_missing() && self.may_replace() => {
                self.leave_endpoint(work)
            }
            State::Relaying(_) => self.end(Reason::EndpointDown, work),
            State::Lingering(linger) if linger.attempt.is_some() => {
                let reason = linger.reason;
                self.end(reason, work)
            }
            _ => Fate::Keep,
        };
        self.settle(fate, work)
    }

    fn leave_endpoint(&mut self, work: &mut Work<'_, '_>) -> Fate {
        if let State::Relaying(relay) = self.leave() {
            self.give_back(relay.attempt, Outcome::Abandoned, work.now());
        }
        self.replace(Reason::EndpointDown, work)
    }

    /// Closes both sides, each in the way that its peer is owed, and gives the lease back.
    pub(super) fn part(&self, relay: Relay, reason: Reason, now: Time) {
        let outcome = relay.outcome_at_end(reason);
        if !is_delivered(&self.down) {
            self.downstream.reset_when_closed();
        }
        self.give_back(relay.attempt, outcome, now);
    }

    /// Ends a try on a connected endpoint. One that has not been sent the client's whole stream is reset: it must not take
    /// a part for all.
    pub(super) fn give_back(&self, attempt: Attempt, outcome: Outcome, now: Time) {
        if is_delivered(&self.up) {
            attempt.finish(outcome, now);
        } else {
            attempt.abort(outcome, now);
        }
    }

    fn is_half_closed(&self) -> bool {
        self.up.has_source_ended() || self.down.has_source_ended()
    }

    pub(super) fn note_movement(&mut self, now: Time) {
        self.moved_at = now;
        let State::Relaying(relay) = &mut self.state else {
            return;
        };
        if self.up.moved() > 0 {
            relay.asked_at.get_or_insert(now);
        }
        if self.down.received() > 0 && !self.trail.is_answered() {
            relay.attempt.established(now);
            self.trail.answered(now);
            // An answered request is never sent again.
            self.up.forget();
        }
    }

    /// The branches of the relay, in order of precedence.
    fn act(&mut self, flows: &Flows, work: &mut Work<'_, '_>) -> Fate {
        if self.downstream.is_reset() {
            return self.end(Reason::ClientReset, work);
        }
        match flows.down {
            Flow::SourceBroken(_) => return self.endpoint_broke(work),
            Flow::Ended => return self.endpoint_ended(flows, work),
            _ if self.is_client_gone() => return self.client_gone(flows, work),
            _ => {}
        }
        self.carry_request_end(flows.up);
        self.yield_if_more(flows, work)
    }

    /// The endpoint has reset the connection, and all that had arrived of its answer is delivered.
    fn endpoint_broke(&mut self, work: &mut Work<'_, '_>) -> Fate {
        if self.trail.is_answered() {
            return self.end(Reason::UpstreamReset, work);
        }
        self.unanswered(Failure::Reset, work)
    }

    /// The endpoint has ended its answer, and all of it is delivered.
    fn endpoint_ended(&mut self, flows: &Flows, work: &mut Work<'_, '_>) -> Fate {
        if self.is_answer_missing()
            && (self.may_replace() || self.listener.settings.failure_reply.is_some())
        {
            return self.unanswered(Failure::Closed, work);
        }
        let State::Relaying(relay) = &mut self.state else {
            return Fate::Keep;
        };
        if flows.up == Flow::Ended {
            return self.end(self.reason_of_end(), work);
        }
        if relay.takes_no_more(flows.up) {
            return self.linger_for_client(self.reason_of_end(), work);
        }
        if relay.answer_end == Carried::No {
            relay.answer_end = Carried::Yes;
            self.downstream.send_end();
        }
        self.yield_if_more(flows, work)
    }

    /// The client takes no answer any more, but what it had sent is complete and is still delivered.
    fn client_gone(&mut self, flows: &Flows, work: &mut Work<'_, '_>) -> Fate {
        let State::Relaying(relay) = &mut self.state else {
            return Fate::Keep;
        };
        let thrown_away = match relay.client {
            Client::Listening => 0,
            Client::Gone { thrown_away } => thrown_away,
        };
        relay.client = Client::Gone { thrown_away };
        match flows.up {
            Flow::Ended => self.linger_for_endpoint(Reason::ClientReset, work),
            Flow::SinkBroken => self.end(Reason::ClientReset, work),
            // The endpoint sends on and on, and reads nothing.
            _ if thrown_away >= LINGER_BYTES_MAX => self.end(Reason::ClientReset, work),
            _ => self.yield_if_more(flows, work),
        }
    }

    /// The endpoint is lost before its first answer byte.
    fn unanswered(&mut self, failure: Failure, work: &mut Work<'_, '_>) -> Fate {
        let may_replace = self.may_replace();
        let State::Relaying(relay) = self.leave() else {
            return Fate::Keep;
        };
        let outcome = relay.outcome_of(failure);
        let reason = reason_of_failure(failure);
        self.give_back(relay.attempt, outcome, work.now());
        if may_replace {
            return self.replace(reason, work);
        }
        if failure == Failure::Reset && self.listener.settings.failure_reply.is_none() {
            return self.close(reason, Close::Reset, work);
        }
        self.give_up(reason, work)
    }

    /// Whether another endpoint can be given the same bytes without a thing being done twice.
    fn may_replace(&self) -> bool {
        self.has_tries_left() && self.up.can_replay() && !self.is_client_gone()
    }

    /// Whether there is no answer where one was owed. A client that ends its stream without a word is owed none.
    fn is_answer_missing(&self) -> bool {
        let said_nothing = self.up.has_source_ended() && self.up.received() == 0;
        !self.trail.is_answered() && !said_nothing
    }

    fn reason_of_end(&self) -> Reason {
        if self.is_answer_missing() {
            Reason::UpstreamClosed
        } else {
            Reason::Done
        }
    }

    fn carry_request_end(&mut self, up: Flow) {
        let State::Relaying(relay) = &mut self.state else {
            return;
        };
        if up == Flow::Ended && relay.request_end == Carried::No {
            relay.request_end = Carried::Yes;
            relay.attempt.stream.send_end();
        }
    }

    fn yield_if_more(&self, flows: &Flows, work: &mut Work<'_, '_>) -> Fate {
        if flows.up == Flow::Yielding || flows.down == Flow::Yielding {
            work.turn.run_again(self.key);
        }
        Fate::Keep
    }
}

/// Whether everything, with the end of stream, has been handed to the kernel of the other side.
fn is_delivered(pump: &Pump) -> bool {
    pump.has_source_ended() && pump.is_drained()
}

/// Whether nothing more will come of the source.
const fn is_over(flow: Flow) -> bool {
    matches!(flow, Flow::Ended | Flow::SourceBroken(_))
}

/// Reads what the endpoint sends to a client that has gone, so that it can go on reading the request.
fn throw_away(endpoint: &mut Stream, buffer: &mut [u8], thrown_away: &mut u64) -> Flow {
    let (count, _) = discard(endpoint, buffer, DISCARD_PER_TURN);
    *thrown_away += count;
    if endpoint.is_readable() {
        Flow::Yielding
    } else {
        Flow::Waiting
    }
}
