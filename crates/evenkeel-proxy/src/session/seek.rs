//! Placing a session: acquire, wait, connect, try again.
//!
//! The client sees nothing of what happens here. An endpoint that failed is not tried again while another is usable; when none
//! is, the same one gets another chance after a short pause.

use evenkeel_core::units::EndpointId;
use evenkeel_core::{
    Acquired, AttemptPolicy, Candidates, Failure, Lease, NextAttempt, Outcome, Refusal, Request,
    Tried,
};
use evenkeel_reactor::{Fate, Fault, Pump, Tag};

use super::{Session, State};
use crate::telemetry::reason::Reason;
use crate::upstream::{Attempt, ConnectError, failure_of};
use crate::worker::Work;

/// The endpoints a session has tried.
#[derive(Default)]
pub(super) struct Tries {
    tried: Tried,
    count: Tag,
    /// Tries of an endpoint that had been tried before.
    repeats: u32,
    last_failure: Option<Reason>,
}

impl Tries {
    pub(super) const fn count(&self) -> u32 {
        self.count as u32
    }

    fn begin(&mut self, endpoint: EndpointId) -> Tag {
        self.repeats += u32::from(self.tried.contains(endpoint));
        self.tried.push(endpoint);
        self.count += 1;
        self.count
    }
}

impl Session {
    /// Tries endpoints until one is being connected to, or the session has to wait, or none is left.
    pub(super) fn seek(&mut self, work: &mut Work<'_, '_>) -> Fate {
        while self.has_tries_left() {
            match self.acquire(work) {
                Acquired::Lease(lease) if self.tries.tried.contains(lease.endpoint()) => {
                    return self.back_off(lease, work);
                }
                Acquired::Lease(lease) => {
                    if let Some(attempt) = self.attempt(lease, work) {
                        self.enter(State::Connecting(attempt), work.now());
                        return Fate::Keep;
                    }
                }
                Acquired::Wait(ticket) => {
                    self.enter(State::Queued(ticket), work.now());
                    return Fate::Keep;
                }
                Acquired::Refused(refusal) => return self.give_up(self.reason_of(refusal), work),
            }
        }
        let reason = self.tries.last_failure.unwrap_or(Reason::NoEndpoint);
        self.give_up(reason, work)
    }

    /// Uses a lease: at once, or after a pause where its endpoint has failed this session.
    pub(super) fn take(&mut self, lease: Lease, work: &mut Work<'_, '_>) -> Fate {
        if self.tries.tried.contains(lease.endpoint()) {
            return self.back_off(lease, work);
        }
        self.connect(lease, work)
    }

    pub(super) fn back_off_over(&mut self, work: &mut Work<'_, '_>) -> Fate {
        match self.leave() {
            State::BackingOff { lease, .. } => self.connect(lease, work),
            _ => Fate::Keep,
        }
    }

    /// The endpoint's socket is ready: connected, or failed.
    pub(super) fn connecting(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let State::Connecting(attempt) = &self.state else {
            return Fate::Keep;
        };
        match attempt.stream.fault() {
            Some(fault) => self.connect_failed(fault, work),
            None if attempt.stream.is_writable() && attempt.is_connected_to_itself() => {
                self.connect_failed(Fault::Refused, work)
            }
            None if attempt.stream.is_writable() => self.connected(work),
            None => Fate::Keep,
        }
    }

    pub(super) fn connect_timed_out(&mut self, work: &mut Work<'_, '_>) -> Fate {
        self.connect_failed(Fault::TimedOut, work)
    }

    /// An endpoint has been given up before it answered: tries another one with the same bytes.
    pub(super) fn replace(&mut self, reason: Reason, work: &mut Work<'_, '_>) -> Fate {
        self.tries.last_failure = Some(reason);
        self.up.rewind();
        self.down = Pump::new(0, self.listener.settings.splice);
        self.seek(work)
    }

    pub(super) fn has_tries_left(&self) -> bool {
        (self.tries.count() as usize) < self.placement.tier.settings.attempts
    }

    /// Holds back before the endpoint of this lease, which has failed this session, is tried again.
    fn back_off(&mut self, lease: Lease, work: &mut Work<'_, '_>) -> Fate {
        let candidates = Candidates::TriedOnly {
            repeats: self.tries.repeats,
        };
        let policy = AttemptPolicy {
            attempts: self.placement.tier.settings.attempts,
            ..AttemptPolicy::default()
        };
        match policy.after_failure(self.tries.count.into(), candidates, &mut work.shared.random) {
            NextAttempt::Now => self.connect(lease, work),
            NextAttempt::After(pause) => {
                self.enter(State::BackingOff { lease, pause }, work.now());
                Fate::Keep
            }
            NextAttempt::GiveUp => {
                self.give_up(self.tries.last_failure.unwrap_or(Reason::NoEndpoint), work)
            }
        }
    }

    fn acquire(&self, work: &mut Work<'_, '_>) -> Acquired {
        let now = work.now();
        let request = Request {
            key: self.placement.key,
            tried: &self.tries.tried,
            waiter: Some((&work.shared.waiter, self.key.to_u64())),
        };
        self.placement
            .tier
            .cluster
            .acquire(&request, now, &mut work.shared.random)
    }

    fn connect(&mut self, lease: Lease, work: &mut Work<'_, '_>) -> Fate {
        match self.attempt(lease, work) {
            Some(attempt) => {
                self.enter(State::Connecting(attempt), work.now());
                Fate::Keep
            }
            None => self.seek(work),
        }
    }

    /// Begins a try; `None` if it failed at once.
    fn attempt(&mut self, lease: Lease, work: &mut Work<'_, '_>) -> Option<Attempt> {
        let now = work.now();
        let tag = self.tries.begin(lease.endpoint());
        self.trail.trying(lease.name(), now);
        let options = self.listener.options;
        match Attempt::begin(
            lease,
            options,
            work.turn,
            (self.key, tag),
            &work.shared.index,
            now,
        ) {
            Ok(attempt) => Some(attempt),
            Err(ConnectError(fault)) => {
                self.tries.last_failure = Some(reason_of(fault));
                None
            }
        }
    }

    fn connected(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let State::Connecting(attempt) = self.leave() else {
            return Fate::Keep;
        };
        let now = work.now();
        self.trail.connected(now);
        self.moved_at = now;
        self.introduce(attempt, work)
    }

    pub(super) fn connect_failed(&mut self, fault: Fault, work: &mut Work<'_, '_>) -> Fate {
        let attempt = match self.leave() {
            State::Connecting(attempt) => attempt,
            State::Relaying(relay) => relay.attempt,
            _ => return Fate::Keep,
        };
        let outcome = failure_of(fault).map_or(Outcome::Abandoned, Outcome::Failed);
        attempt.abort(outcome, work.now());
        self.replace(reason_of(fault), work)
    }

    fn reason_of(&self, refusal: Refusal) -> Reason {
        match refusal {
            Refusal::NoEndpoint => self.tries.last_failure.unwrap_or(Reason::NoEndpoint),
            Refusal::QueueFull | Refusal::Full => Reason::QueueFull,
        }
    }
}

/// What a session is told when its last try to connect failed so.
const fn reason_of(fault: Fault) -> Reason {
    match fault {
        Fault::Refused => Reason::ConnectRefused,
        Fault::Unreachable => Reason::ConnectUnreachable,
        Fault::TimedOut => Reason::ConnectTimeout,
        Fault::Local => Reason::LocalResources,
        Fault::Reset => Reason::UpstreamReset,
    }
}

/// What a session is told when its last endpoint failed so, after it was connected.
pub(super) const fn reason_of_failure(failure: Failure) -> Reason {
    match failure {
        Failure::Refused => Reason::ConnectRefused,
        Failure::Unreachable => Reason::ConnectUnreachable,
        Failure::ConnectTimeout => Reason::ConnectTimeout,
        Failure::Reset => Reason::UpstreamReset,
        Failure::Closed => Reason::UpstreamClosed,
        Failure::FirstByteTimeout => Reason::FirstByteTimeout,
    }
}
