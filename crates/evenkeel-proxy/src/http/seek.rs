//! From a plan to a connection: an endpoint is chosen, a connection to it taken from the pool or made; if that fails, the next one.
//!
//! The client sees nothing of what happens here. An endpoint that failed is not tried again while another is usable; when none is, the same
//! one gets another chance after a short pause.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_core::{AttemptPolicy, Candidates, Lease, NextAttempt, Outcome, Refusal, Tried};
use evenkeel_reactor::Fault;

use super::answer::Answer;
use super::endpoint::Endpoint;
use super::record::Trail;
use super::session::Session;
use crate::layer7::{Sought, Stream, Word};
use crate::telemetry::reason::Reason;
use crate::tier::Placement;
use crate::upstream::pool::{Claimed, Connection, Freshness, MayOpen};
use crate::upstream::{connect, failure_of};

/// The endpoints an exchange has tried.
#[derive(Default)]
pub(super) struct Tries {
    tried: Tried,
    pub(super) count: u32,
    /// Tries of an endpoint that had been tried before.
    repeats: u32,
    last_failure: Option<Reason>,
    /// A connection that had been kept has broken: the next one is to be new.
    freshness: Freshness,
}

/// Whether a request may go to an endpoint once more when one may have acted on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Allowed,
    Forbidden,
}

/// Why there is no endpoint.
pub(super) enum NoEndpoint {
    /// The client is told.
    Answer(Answer),
    /// It has gone.
    ClientGone,
    /// The stop deadline has passed.
    Stopped,
}

impl NoEndpoint {
    fn unavailable(reason: Reason) -> Self {
        Self::Answer(Answer::new(503, reason))
    }
}

impl Tries {
    /// Of what can be sent twice, or of what cannot.
    pub(super) fn new(is_repeatable: Repeat) -> Self {
        Self {
            freshness: match is_repeatable {
                Repeat::Allowed => Freshness::Any,
                Repeat::Forbidden => Freshness::Proven,
            },
            ..Self::default()
        }
    }

    fn begin(&mut self, endpoint: EndpointId) {
        self.repeats += u32::from(self.tried.contains(endpoint));
        self.tried.push(endpoint);
        self.count += 1;
    }

    /// What the last try came to; another endpoint is asked, if there is one.
    pub(super) fn failed(&mut self, reason: Reason) {
        self.last_failure = Some(reason);
    }

    /// The endpoint is not to blame: it had ended a kept connection when the request was on its way. It may be asked again, on a new one.
    pub(super) fn missed(&mut self) {
        self.tried = Tried::default();
        self.count = self.count.saturating_sub(1);
        self.freshness = Freshness::New;
    }

    fn give_up(&self) -> NoEndpoint {
        match self.last_failure {
            Some(reason) => NoEndpoint::Answer(Answer::new(status_of(reason), reason)),
            None => NoEndpoint::unavailable(Reason::NoEndpoint),
        }
    }
}

/// What a client is told when its last endpoint failed so.
pub(super) const fn status_of(reason: Reason) -> u16 {
    match reason {
        Reason::ConnectTimeout | Reason::FirstByteTimeout | Reason::UpstreamIdleTimeout => 504,
        Reason::NoEndpoint
        | Reason::QueueFull
        | Reason::QueueTimeout
        | Reason::PoolFull
        | Reason::PoolTimeout
        | Reason::LocalResources
        | Reason::EndpointDown => 503,
        _ => 502,
    }
}

impl Session {
    /// A connection to an endpoint.
    pub(super) async fn seek(
        &mut self,
        placement: &Placement,
        tries: &mut Tries,
        trail: &mut Trail,
    ) -> Result<Endpoint, NoEndpoint> {
        while (tries.count as usize) < placement.tier.settings.attempts {
            let lease = self.lease(placement, tries, trail).await?;
            if tries.tried.contains(lease.endpoint()) {
                self.back_off(placement, tries).await?;
            }
            tries.begin(lease.endpoint());
            trail.trying(lease.name(), self.alarm.now());
            match self.connection(placement, &lease, tries.freshness).await? {
                Ok(connection) => {
                    trail.connected(self.alarm.now());
                    let seat = self.standing.enter(lease.endpoint());
                    return Ok(Endpoint::new(connection, lease, seat));
                }
                Err((reason, outcome)) => {
                    tries.failed(reason);
                    lease.finish(outcome, self.alarm.now());
                }
            }
        }
        Err(tries.give_up())
    }

    /// The right to use an endpoint, after waiting for it where all are full.
    async fn lease(
        &mut self,
        placement: &Placement,
        tries: &Tries,
        trail: &mut Trail,
    ) -> Result<Lease, NoEndpoint> {
        let wait = match self.standing.seek(placement, &tries.tried) {
            Sought::Lease(lease) => return Ok(lease),
            Sought::Wait(wait) => wait,
            Sought::Refused(Refusal::NoEndpoint) => return Err(tries.give_up()),
            Sought::Refused(Refusal::QueueFull | Refusal::Full) => {
                return Err(NoEndpoint::unavailable(Reason::QueueFull));
            }
        };
        let began = self.alarm.now();
        let deadline = began.after(placement.tier.settings.queue_timeout);
        let waited = self.patiently(deadline, wait).await;
        trail.queued += self.alarm.now().since(began);
        waited?.ok_or_else(|| NoEndpoint::unavailable(Reason::QueueTimeout))
    }

    async fn back_off(&mut self, placement: &Placement, tries: &Tries) -> Result<(), NoEndpoint> {
        let candidates = Candidates::TriedOnly {
            repeats: tries.repeats,
        };
        let policy = AttemptPolicy {
            attempts: placement.tier.settings.attempts,
            ..AttemptPolicy::default()
        };
        let next = {
            let mut random = self.standing.shared().random.borrow_mut();
            policy.after_failure(tries.count as usize, candidates, &mut random)
        };
        match next {
            NextAttempt::Now => Ok(()),
            NextAttempt::GiveUp => Err(tries.give_up()),
            NextAttempt::After(pause) => {
                let deadline = self.alarm.now().after(pause);
                self.patiently(deadline, pending::<()>()).await.map(drop)
            }
        }
    }

    /// A connection to the endpoint of a lease; or what its lack means for the client, and for the endpoint.
    async fn connection(
        &mut self,
        placement: &Placement,
        lease: &Lease,
        freshness: Freshness,
    ) -> Result<Result<Connection<Stream>, (Reason, Outcome)>, NoEndpoint> {
        let policy = &placement.tier.settings.pool;
        let pool = &Rc::clone(&self.workshop).pool;
        let mut claimed = pool.claim(lease.endpoint(), policy, freshness, self.alarm.now());
        loop {
            claimed = match claimed {
                Claimed::Kept(connection) => return Ok(Ok(connection)),
                Claimed::Open(place) => return self.connect(placement, lease, place).await,
                Claimed::Refused => return Err(NoEndpoint::unavailable(Reason::PoolFull)),
                Claimed::Wait(wait) => {
                    let deadline = self.alarm.now().after(policy.max_wait);
                    let Some(granted) = self.patiently(deadline, wait).await? else {
                        return Err(NoEndpoint::unavailable(Reason::PoolTimeout));
                    };
                    let Some(Ok(claimed)) = granted
                        .map(|grant| pool.accept(grant, policy, freshness, self.alarm.now()))
                    else {
                        return Ok(Err((Reason::LocalResources, Outcome::Abandoned)));
                    };
                    claimed
                }
            }
        }
    }

    async fn connect(
        &mut self,
        placement: &Placement,
        lease: &Lease,
        place: MayOpen<Stream>,
    ) -> Result<Result<Connection<Stream>, (Reason, Outcome)>, NoEndpoint> {
        let deadline = self
            .alarm
            .now()
            .after(placement.tier.settings.connect_timeout);
        let options = self.standing.listener.options;
        let connecting = connect(lease.address(), options);
        let fault = match self.patiently(deadline, connecting).await? {
            Some(Ok(stream)) => return Ok(Ok(place.opened(stream))),
            Some(Err(fault)) => fault,
            None => Fault::TimedOut,
        };
        if fault == Fault::Local {
            // What nobody uses gives way.
            self.workshop.pool.clear();
        }
        let outcome = failure_of(fault).map_or(Outcome::Abandoned, Outcome::Failed);
        Ok(Err((reason_of(fault), outcome)))
    }

    /// What comes of the future, or nothing by the deadline. While there is no endpoint, a client that has gone ends it.
    async fn patiently<F: Future>(
        &mut self,
        deadline: Time,
        future: F,
    ) -> Result<Option<F::Output>, NoEndpoint> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(Some(output)));
            }
            if self.poll_client_gone(cx).is_ready() {
                return Poll::Ready(Err(NoEndpoint::ClientGone));
            }
            if self
                .standing
                .letterbox()
                .poll_word(Word::Finish, cx)
                .is_ready()
            {
                return Poll::Ready(Err(NoEndpoint::Stopped));
            }
            self.alarm.poll(deadline, cx).map(|_| Ok(None))
        })
        .await
    }
}

/// What a client is told when its last try to connect failed so.
const fn reason_of(fault: Fault) -> Reason {
    match fault {
        Fault::Refused => Reason::ConnectRefused,
        Fault::Unreachable => Reason::ConnectUnreachable,
        Fault::TimedOut => Reason::ConnectTimeout,
        Fault::Local => Reason::LocalResources,
        Fault::Reset => Reason::UpstreamReset,
    }
}
