//! Both messages of an exchange at the same time: the request on its way up, the answer on its way down.
//!
//! An endpoint may answer before it has the whole request, and need not take the rest of it; a client may send its next request
//! before it has the whole answer. What an end means for the connections and for the client is decided in [`exchange`](super::exchange).

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use evenkeel_core::Failure;
use evenkeel_core::units::Time;
use evenkeel_wire::http1::{BodyFraming, Persistence, Refusal};

use super::endpoint::{Endpoint, Fitness};
use super::flow::{Awaits, Break, Flow};
use super::inbox::Stock;
use super::plan::Plan;
use super::response::Said;
use super::seek::Repeat;
use super::session::Session;
use crate::layer7::Word;
use crate::telemetry::reason::Reason;

/// See the module's documentation.
pub(super) struct Relay {
    pub(super) up: Flow,
    pub(super) down: Flow,
    upload: Upload,
    stage: Stage,
    /// The status that the client has been sent.
    pub(super) status: Option<u16>,
    /// When the first byte of an answer came.
    pub(super) first_byte: Option<Time>,
    /// What is left of the endpoint's connection when all is over.
    pub(super) fitness: Fitness,
    /// What becomes of the client's.
    pub(super) persistence: Persistence,
    /// When a byte last moved, and how many had by then.
    moved_at: Time,
    moved: u64,
    /// Interim answers that have been passed on.
    interim: u8,
}

/// How far the request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upload {
    Running,
    Done,
    /// The endpoint takes no more of it.
    Broken,
}

/// How far the answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    Over,
}

/// How a relay ends.
#[derive(Debug)]
pub(super) enum End {
    /// The client has the whole answer.
    Answered,
    /// Both have agreed on another protocol; the answer that says so is on its way.
    Upgraded,
    /// The endpoint broke off, or was silent for too long.
    Endpoint(Failure),
    /// What the endpoint sent cannot be believed.
    BadAnswer(Refusal),
    /// The client has gone, or does not take its answer.
    ClientGone(Reason),
    /// The rest of the request is not served.
    Refused(u16, Reason),
    /// For another reason, which is neither's fault.
    Stopped(Reason),
}

/// Beyond this much of a client's next requests nothing more is read before they are served.
const READ_AHEAD_BYTES: usize = 4 * 1024;

/// The most interim answers (1xx) to one request.
const INTERIM_MAX: u8 = 32;

impl Relay {
    pub(super) fn new(plan: &mut Plan, session: &Session) -> Self {
        let body_max = session.settings.limits.body_bytes.unwrap_or(u64::MAX);
        Self {
            up: Flow::new(std::mem::take(&mut plan.head), plan.framing, body_max),
            down: Flow::new(session.workshop.stock.bytes(), BodyFraming::None, u64::MAX),
            upload: Upload::Running,
            stage: Stage::Head,
            status: None,
            first_byte: None,
            fitness: Fitness::Spent,
            persistence: Persistence::Close,
            moved_at: plan.began,
            moved: 0,
            interim: 0,
        }
    }

    /// Whether the request may go to an endpoint once more.
    pub(super) fn can_repeat(&self, plan: &Plan) -> bool {
        let is_answered = self.first_byte.is_some();
        !is_answered && (self.up.moved == 0 || plan.repeat() == Repeat::Allowed)
    }

    /// Begins again, with another connection.
    pub(super) fn rewind(&mut self) {
        self.up.rewind();
        self.upload = Upload::Running;
        self.moved = 0;
    }

    /// A client that waited to be told to send its body has its answer instead, and may never send it.
    pub(super) fn give_up_awaited_body(&mut self, plan: &Plan) {
        if plan.awaits_continue && self.upload == Upload::Running && !self.up.has_body_begun() {
            self.upload = Upload::Broken;
            self.persistence = Persistence::Close;
        }
    }

    /// Its buffers are another's.
    pub(super) fn give_back(self, stock: &Stock) {
        stock.put_bytes(self.up.into_buffer());
        stock.put_bytes(self.down.into_buffer());
    }

    /// Whether the request is through.
    pub(super) fn is_sent(&self) -> bool {
        self.upload == Upload::Done
    }

    /// Moves both messages to their end, or to that of the exchange.
    pub(super) async fn run(
        &mut self,
        session: &mut Session,
        endpoint: &mut Endpoint,
        plan: &Plan,
    ) -> End {
        self.moved_at = session.alarm.now();
        poll_fn(|cx| self.poll(session, endpoint, plan, cx)).await
    }

    fn poll(
        &mut self,
        session: &mut Session,
        endpoint: &mut Endpoint,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Poll<End> {
        if let Err(end) = self.poll_up(session, endpoint, cx) {
            return Poll::Ready(end);
        }
        match self.poll_down(session, endpoint, plan, cx) {
            Ok(()) => {}
            Err(end) => return Poll::Ready(end),
        }
        if self.stage == Stage::Over && self.upload != Upload::Running {
            return Poll::Ready(End::Answered);
        }
        self.poll_interruption(session, plan, cx)
    }

    /// The request. Once it is through, the client's next one is read ahead, and its going away noticed.
    fn poll_up(
        &mut self,
        session: &mut Session,
        endpoint: &mut Endpoint,
        cx: &mut Context<'_>,
    ) -> Result<(), End> {
        if self.upload != Upload::Running {
            return match session.poll_client_gone(cx) {
                Poll::Ready(reason) => Err(End::ClientGone(reason)),
                Poll::Pending => Ok(()),
            };
        }
        let from = (&mut session.stream, &mut session.inbox);
        let to = &mut endpoint.connection.stream;
        match self.up.poll(from, to, &session.workshop.stock, cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.upload = Upload::Done;
                self.poll_up(session, endpoint, cx)
            }
            // What it has answered may lie there yet.
            Poll::Ready(Err(Break::Sink)) => {
                self.upload = Upload::Broken;
                Ok(())
            }
            Poll::Ready(Err(Break::Truncated)) => Err(End::ClientGone(Reason::ClientClosed)),
            Poll::Ready(Err(Break::Source)) => Err(End::ClientGone(Reason::ClientReset)),
            Poll::Ready(Err(Break::TooLarge)) => Err(End::Refused(413, Reason::BodyTooLarge)),
            Poll::Ready(Err(Break::Malformed(refusal))) => {
                let answer = super::request::answer_to(refusal);
                Err(End::Refused(answer.status, answer.reason))
            }
        }
    }

    /// The answer: its head, or several if they are interim, and its body.
    fn poll_down(
        &mut self,
        session: &mut Session,
        endpoint: &mut Endpoint,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Result<(), End> {
        while self.stage == Stage::Head {
            if self.poll_head(session, endpoint, plan, cx)?.is_pending() {
                return Ok(());
            }
        }
        if self.stage == Stage::Over {
            return self.poll_endpoint_gone(session, endpoint, cx);
        }
        let from = (&mut endpoint.connection.stream, &mut endpoint.inbox);
        match self
            .down
            .poll(from, &mut session.stream, &session.workshop.stock, cx)
        {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.stage = Stage::Over;
                Ok(())
            }
            Poll::Ready(Err(Break::Sink)) => Err(End::ClientGone(Reason::ClientReset)),
            Poll::Ready(Err(Break::Source)) => Err(End::Endpoint(Failure::Reset)),
            Poll::Ready(Err(Break::Truncated | Break::TooLarge)) => {
                Err(End::Endpoint(Failure::Closed))
            }
            Poll::Ready(Err(Break::Malformed(refusal))) => Err(End::BadAnswer(refusal)),
        }
    }

    /// A head of the answer. Ready when there was one.
    fn poll_head(
        &mut self,
        session: &mut Session,
        endpoint: &mut Endpoint,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Result<Poll<()>, End> {
        loop {
            match self.look(session, endpoint, plan)? {
                Said::Nothing => {}
                // What follows it may be there already.
                Said::Interim => {
                    self.count_interim()?;
                    continue;
                }
                Said::Upgrade => return Err(End::Upgraded),
                Said::Answer => {
                    self.stage = Stage::Body;
                    return Ok(Poll::Ready(()));
                }
            }
            if let Poll::Ready(Err(_)) = self.down.poll_flush(&mut session.stream, cx) {
                return Err(End::ClientGone(Reason::ClientReset));
            }
            let stream = &mut endpoint.connection.stream;
            match endpoint
                .inbox
                .poll_fill(stream, &session.workshop.stock, cx)
            {
                Poll::Pending => {
                    endpoint.inbox.settle(&session.workshop.stock);
                    return Ok(Poll::Pending);
                }
                Poll::Ready(Ok(0)) => return Err(End::Endpoint(Failure::Closed)),
                Poll::Ready(Err(_)) => return Err(End::Endpoint(Failure::Reset)),
                Poll::Ready(Ok(_)) => self.note_first_byte(session, endpoint),
            }
        }
    }

    fn note_first_byte(&mut self, session: &Session, endpoint: &mut Endpoint) {
        if self.first_byte.is_none() {
            let now = session.alarm.now();
            self.first_byte = Some(now);
            endpoint.established(now);
        }
    }

    fn count_interim(&mut self) -> Result<(), End> {
        self.interim += 1;
        if self.interim > INTERIM_MAX {
            return Err(End::BadAnswer(Refusal::StatusLine));
        }
        Ok(())
    }

    /// The answer is through and the request is not: an endpoint that ends its stream now wants no more of it.
    fn poll_endpoint_gone(
        &mut self,
        session: &Session,
        endpoint: &mut Endpoint,
        cx: &mut Context<'_>,
    ) -> Result<(), End> {
        if self.upload != Upload::Running {
            return Ok(());
        }
        let stream = &mut endpoint.connection.stream;
        let filled = endpoint
            .inbox
            .poll_fill(stream, &session.workshop.stock, cx);
        endpoint.inbox.settle(&session.workshop.stock);
        if filled.is_ready() || self.fitness == Fitness::Spent {
            self.upload = Upload::Broken;
        }
        Ok(())
    }

    /// Ready when nothing more is waited for: a deadline has come, or a word from outside.
    fn poll_interruption(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Poll<End> {
        let letterbox = session.standing.letterbox();
        if letterbox.poll_word(Word::Finish, cx).is_ready() {
            return Poll::Ready(End::Stopped(Reason::StopDeadline));
        }
        if letterbox.poll_endpoint_down(cx).is_ready() {
            return Poll::Ready(End::Stopped(Reason::EndpointDown));
        }
        let moved = self.up.moved + self.down.moved;
        if moved != self.moved {
            self.moved = moved;
            self.moved_at = session.alarm.now();
        }
        let (deadline, end) = self.deadline(session, plan);
        ready!(session.alarm.poll(deadline, cx));
        Poll::Ready(end)
    }

    /// Until when the next byte is waited for, and what its lack means.
    fn deadline(&self, session: &Session, plan: &Plan) -> (Time, End) {
        let timeouts = &session.settings.timeouts;
        let after = |limit: Option<std::time::Duration>| {
            limit.map_or(Time::NEVER, |limit| self.moved_at.after(limit))
        };
        let next = if self.stage == Stage::Body && self.down.awaits() == Awaits::Sink {
            let end = End::ClientGone(Reason::IdleTimeout);
            (after(timeouts.upstream_idle), end)
        } else if self.upload == Upload::Running && self.up.awaits() == Awaits::Source {
            (
                after(timeouts.body_idle),
                End::Refused(408, Reason::BodyTimeout),
            )
        } else if self.stage == Stage::Head {
            let first_byte = plan.placement.as_ref();
            let first_byte =
                first_byte.and_then(|placement| placement.tier.settings.first_byte_timeout);
            let limit = first_byte.or(timeouts.upstream_idle);
            (after(limit), End::Endpoint(Failure::FirstByteTimeout))
        } else {
            let end = End::Endpoint(Failure::FirstByteTimeout);
            (after(timeouts.upstream_idle), end)
        };
        let whole = timeouts.request;
        let whole = whole.map_or(Time::NEVER, |limit| plan.began.after(limit));
        if whole < next.0 {
            (whole, End::Refused(504, Reason::RequestTimeout))
        } else {
            next
        }
    }
}

impl Session {
    /// Ready when the client has ended its stream or broken it. What it sends meanwhile is its next request, and is kept: one buffer full
    /// at the most. Whoever has sent a whole one before the end of its stream waits for the answer to that, too.
    pub(super) fn poll_client_gone(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        while self.inbox.bytes().len() <= READ_AHEAD_BYTES {
            let filled = self
                .inbox
                .poll_fill(&mut self.stream, &self.workshop.stock, cx);
            self.inbox.settle(&self.workshop.stock);
            match ready!(filled) {
                Ok(0) if self.holds_request() => break,
                Ok(0) => return Poll::Ready(Reason::ClientClosed),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Reason::ClientReset),
            }
        }
        Poll::Pending
    }
}
