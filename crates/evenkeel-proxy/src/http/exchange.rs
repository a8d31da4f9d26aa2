//! One request and its answer: who is asked, how often, and what the client is told in the end.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use evenkeel_core::{Failure, Outcome};
use evenkeel_wire::http1::{Asked, BodyFraming, Form, Persistence};
use tokio::io::AsyncWrite;

use super::answer::{Answer, Shape};
use super::endpoint::{Endpoint, Fitness};
use super::plan::Plan;
use super::record::{Account, Trail};
use super::relay::{End, Relay};
use super::request::Refused;
use super::seek::{NoEndpoint, Tries, status_of};
use super::session::{Next, Parting, Session};
use super::tunnel::{Side, Tunnel};
use crate::telemetry::reason::Reason;
use crate::tier::Placement;

/// How long a client may take for an answer of our own.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// What becomes of an exchange after a try.
enum Verdict {
    /// Another endpoint is asked, or the same one on another connection.
    Again,
    Over(Closing),
}

/// What the client is still told, and what becomes of its connection.
enum Closing {
    /// It has the whole answer.
    Answered(Next),
    /// It is told this.
    Answer(Answer),
    /// It has gone, or has a part of an answer.
    Cut(Parting, Reason),
}

impl Session {
    /// Answers a request.
    pub(super) async fn exchange(&mut self, mut plan: Plan) -> Next {
        let mut trail = Trail::begin(plan.began);
        let mut tries = Tries::new(plan.repeat());
        let mut relay = Relay::new(&mut plan, self);
        let closing = match (self.too_large(&plan), plan.placement.clone()) {
            (Some(answer), _) => Closing::Answer(answer),
            (None, None) => Closing::Answer(Answer::new(404, Reason::NoRoute)),
            (None, Some(placement)) => {
                self.serve(&plan, &placement, &mut relay, (&mut tries, &mut trail))
                    .await
            }
        };
        let (next, reason) = self.close_exchange(&plan, &mut relay, closing).await;
        let account = Account {
            reason,
            status: relay.status,
            attempts: tries.count,
            bytes_up: relay.up.moved,
            bytes_down: relay.down.moved,
            first_byte: relay.first_byte,
        };
        relay.give_back(&self.workshop.stock);
        let Plan {
            placement, line, ..
        } = plan;
        self.record_exchange(trail, placement.as_ref(), Some(line), account);
        next
    }

    /// A body that says beforehand that it is longer than it may be.
    fn too_large(&self, plan: &Plan) -> Option<Answer> {
        let most = self.settings.limits.body_bytes?;
        matches!(plan.framing, BodyFraming::Length(length) if length > most)
            .then(|| Answer::new(413, Reason::BodyTooLarge))
    }

    /// Asks endpoints until one has answered, or none is left.
    async fn serve(
        &mut self,
        plan: &Plan,
        placement: &Placement,
        relay: &mut Relay,
        (tries, trail): (&mut Tries, &mut Trail),
    ) -> Closing {
        loop {
            let mut endpoint = match self.seek(placement, tries, trail).await {
                Ok(endpoint) => endpoint,
                Err(NoEndpoint::Answer(answer)) => return Closing::Answer(answer),
                Err(NoEndpoint::ClientGone) => {
                    return Closing::Cut(Parting::Close, Reason::ClientClosed);
                }
                Err(NoEndpoint::Stopped) => {
                    return Closing::Cut(Parting::Reset, Reason::StopDeadline);
                }
            };
            let end = relay.run(self, &mut endpoint, plan).await;
            let verdict = match end {
                End::Upgraded => {
                    let reason = self.tunnel(relay, &mut endpoint).await;
                    self.release(endpoint, Outcome::Completed, Fitness::Spent);
                    Verdict::Over(Closing::Cut(parting_of_tunnel(reason), reason))
                }
                end => self.judge(end, relay, endpoint, (plan, tries)),
            };
            match verdict {
                Verdict::Again => relay.rewind(),
                Verdict::Over(closing) => return closing,
            }
        }
    }

    /// Ends a try, and says what that means.
    fn judge(
        &self,
        end: End,
        relay: &Relay,
        endpoint: Endpoint,
        (plan, tries): (&Plan, &mut Tries),
    ) -> Verdict {
        match end {
            End::Answered | End::Upgraded => {
                let fitness = if relay.is_sent() {
                    relay.fitness
                } else {
                    Fitness::Spent
                };
                self.release(endpoint, Outcome::Completed, fitness);
                Verdict::Over(Closing::Answered(self.after_answer(relay)))
            }
            End::Endpoint(failure) => self.endpoint_failed(failure, relay, endpoint, (plan, tries)),
            End::Stopped(Reason::EndpointDown) if relay.can_repeat(plan) => {
                self.release(endpoint, Outcome::Abandoned, Fitness::Spent);
                tries.failed(Reason::EndpointDown);
                Verdict::Again
            }
            End::Stopped(reason) => {
                self.release(endpoint, Outcome::Abandoned, Fitness::Spent);
                Verdict::Over(match reason {
                    Reason::StopDeadline => Closing::Cut(Parting::Reset, reason),
                    reason => refusal(relay, Answer::new(status_of(reason), reason)),
                })
            }
            End::BadAnswer(refused) => {
                self.release(endpoint, Outcome::Completed, Fitness::Spent);
                let answer = Answer::new(502, Reason::of_refusal(refused));
                Verdict::Over(refusal(relay, answer))
            }
            End::Refused(status, reason) => {
                self.release(endpoint, Outcome::Abandoned, Fitness::Spent);
                Verdict::Over(refusal(relay, Answer::new(status, reason)))
            }
            End::ClientGone(reason) => {
                self.release(endpoint, Outcome::Abandoned, Fitness::Spent);
                Verdict::Over(Closing::Cut(Parting::Reset, reason))
            }
        }
    }

    fn endpoint_failed(
        &self,
        failure: Failure,
        relay: &Relay,
        endpoint: Endpoint,
        (plan, tries): (&Plan, &mut Tries),
    ) -> Verdict {
        // It had closed a connection that nobody used, when the request was on its way: no fault of anybody.
        let is_missed = endpoint.is_kept() && matches!(failure, Failure::Closed | Failure::Reset);
        let outcome = if is_missed {
            Outcome::Abandoned
        } else {
            Outcome::Failed(failure)
        };
        self.release(endpoint, outcome, Fitness::Spent);
        let reason = reason_of(failure, relay);
        if !relay.can_repeat(plan) {
            return Verdict::Over(refusal(relay, Answer::new(status_of(reason), reason)));
        }
        if is_missed {
            tries.missed();
        } else {
            tries.failed(reason);
        }
        Verdict::Again
    }

    fn release(&self, endpoint: Endpoint, outcome: Outcome, fitness: Fitness) {
        endpoint.end(outcome, fitness, &self.workshop, self.alarm.now());
    }

    /// What becomes of the client's connection when it has its answer.
    fn after_answer(&self, relay: &Relay) -> Next {
        match relay.persistence {
            Persistence::KeepAlive if relay.is_sent() => Next::Request,
            _ if relay.is_sent() && self.inbox.is_empty() => {
                Next::End(Parting::Close, Reason::Done)
            }
            _ => Next::End(Parting::Linger, Reason::Done),
        }
    }

    /// The last that the client is sent, and the reason for the record.
    async fn close_exchange(
        &mut self,
        plan: &Plan,
        relay: &mut Relay,
        closing: Closing,
    ) -> (Next, Reason) {
        match closing {
            Closing::Answered(next) => (next, Reason::Done),
            Closing::Cut(parting, reason) => (Next::End(parting, reason), reason),
            Closing::Answer(answer) => {
                relay.status = Some(answer.status);
                let shape = plan.shape(self);
                (self.answer(answer, shape).await, answer.reason)
            }
        }
    }

    /// Answers what could not be understood.
    pub(super) async fn refuse(&mut self, refused: Refused) -> Next {
        let Refused { answer, began } = refused;
        let shape = Shape {
            form: Form::Text,
            asked: Asked::Other,
            reason: self.settings.reason_header,
            persistence: Persistence::Close,
        };
        let next = self.answer(answer, shape).await;
        let account = Account::of_answer(answer.status, answer.reason);
        self.record_exchange(Trail::begin(began), None, None, account);
        next
    }

    /// Sends an answer of our own.
    async fn answer(&mut self, answer: Answer, shape: Shape) -> Next {
        let mut out = self.workshop.stock.bytes();
        answer.write(shape, &mut out);
        let is_sent = self.write_all(&out).await;
        self.workshop.stock.put_bytes(out);
        match (is_sent, shape.persistence) {
            (Ok(()), Persistence::KeepAlive) => Next::Request,
            (Ok(()), Persistence::Close) => Next::End(Parting::Linger, answer.reason),
            (Err(Unsent), _) => Next::End(Parting::Reset, answer.reason),
        }
    }

    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Unsent> {
        let deadline = self.alarm.now().after(ANSWER_PATIENCE);
        let (stream, alarm) = (&mut self.stream, &mut self.alarm);
        let mut sent = 0;
        poll_fn(|cx| {
            while sent < bytes.len() {
                match Pin::new(&mut *stream).poll_write(cx, &bytes[sent..]) {
                    Poll::Ready(Ok(count)) if count > 0 => sent += count,
                    Poll::Ready(_) => return Poll::Ready(Err(Unsent)),
                    Poll::Pending => return alarm.poll(deadline, cx).map(|_| Err(Unsent)),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Both sides speak another protocol now: bytes are carried until they end.
    async fn tunnel(&mut self, relay: &mut Relay, endpoint: &mut Endpoint) -> Reason {
        let idle = self.settings.timeouts.tunnel_idle;
        let now = self.alarm.now();
        let mut tunnel = Tunnel::new(&mut relay.up, &mut relay.down, idle, now);
        let client = Side {
            stream: &mut self.stream,
            inbox: &mut self.inbox,
        };
        let endpoint = Side {
            stream: &mut endpoint.connection.stream,
            inbox: &mut endpoint.inbox,
        };
        let outside = (&mut self.alarm, self.standing.letterbox());
        tunnel
            .run(client, endpoint, &self.workshop.stock, outside)
            .await
    }
}

/// The client did not take it.
struct Unsent;

/// What the client is told if it has been told nothing; else what it has is cut off.
fn refusal(relay: &Relay, answer: Answer) -> Closing {
    match relay.status {
        None => Closing::Answer(answer),
        Some(_) => Closing::Cut(Parting::Reset, answer.reason),
    }
}

const fn parting_of_tunnel(reason: Reason) -> Parting {
    match reason {
        Reason::Done => Parting::Close,
        _ => Parting::Reset,
    }
}

const fn reason_of(failure: Failure, relay: &Relay) -> Reason {
    match failure {
        Failure::FirstByteTimeout if relay.first_byte.is_some() => Reason::UpstreamIdleTimeout,
        Failure::FirstByteTimeout => Reason::FirstByteTimeout,
        Failure::Closed => Reason::UpstreamClosed,
        _ => Reason::UpstreamReset,
    }
}
