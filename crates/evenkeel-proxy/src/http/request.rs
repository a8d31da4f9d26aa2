//! Waiting for a request: its head is read whole, believed or refused, and made into a plan.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use evenkeel_core::units::Time;
use evenkeel_wire::http1::{
    FieldSlots, Limits, Message, Parsed, Refusal, RequestHead, is_worth_parsing,
};

use super::answer::Answer;
use super::plan::Plan;
use super::session::{Parting, Session};
use crate::layer7::Word;
use crate::telemetry::reason::Reason;

/// How long the first request may be on its way behind the connection, when the process is ending.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// What came of waiting.
pub(super) enum Awaited {
    Request(Box<Plan>),
    /// No request that could be served.
    Refused(Refused),
    /// There will be none.
    Over(Parting, Reason),
}

/// A request that is answered before anybody is asked.
pub(super) struct Refused {
    pub(super) answer: Answer,
    pub(super) began: Time,
}

/// How far a head has come.
struct Waiting {
    /// When the first byte came; `None` as long as there is none.
    began: Option<Time>,
    /// The first byte has to be there by then.
    first_by: Time,
    /// Bytes that were there when it was last looked at.
    seen: usize,
}

impl Session {
    /// The next request on this connection.
    pub(super) async fn next_request(&mut self, accepted_at: Time) -> Awaited {
        let timeouts = &self.settings.timeouts;
        let first_by = if self.requests == 0 {
            accepted_at.after(timeouts.head)
        } else {
            self.alarm.now().after(timeouts.keep_alive)
        };
        let mut waiting = Waiting {
            began: None,
            first_by,
            seen: 0,
        };
        poll_fn(|cx| self.poll_request(&mut waiting, cx)).await
    }

    fn poll_request(&mut self, waiting: &mut Waiting, cx: &mut Context<'_>) -> Poll<Awaited> {
        loop {
            if let Some(awaited) = self.look(waiting) {
                return Poll::Ready(awaited);
            }
            match self
                .inbox
                .poll_fill(&mut self.stream, &self.workshop.stock, cx)
            {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) if self.inbox.is_empty() => {
                    return Poll::Ready(Awaited::Over(Parting::Close, Reason::Done));
                }
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Awaited::Over(Parting::Close, Reason::ClientClosed));
                }
                Poll::Ready(Err(_)) => {
                    return Poll::Ready(Awaited::Over(Parting::Close, Reason::ClientReset));
                }
                Poll::Pending => {
                    self.inbox.settle(&self.workshop.stock);
                    return self.poll_patience(waiting, cx);
                }
            }
        }
    }

    /// Ready when nothing more is waited for.
    fn poll_patience(&mut self, waiting: &Waiting, cx: &mut Context<'_>) -> Poll<Awaited> {
        let grace = self.grace(waiting);
        // Who has begun a request may end it.
        let borne = match waiting.began {
            None if grace.is_none() => Word::GoOn,
            _ => Word::Finish,
        };
        if let Poll::Ready(word) = self.standing.letterbox().poll_word(borne, cx) {
            return Poll::Ready(match word {
                Word::Stop => Awaited::Over(Parting::Reset, Reason::StopDeadline),
                Word::GoOn | Word::Finish => Awaited::Over(Parting::Close, Reason::Done),
            });
        }
        let head = self.settings.timeouts.head;
        let first_by = grace.unwrap_or(waiting.first_by);
        let deadline = waiting.began.map_or(first_by, |began| began.after(head));
        ready!(self.alarm.poll(deadline, cx));
        Poll::Ready(match waiting.began {
            Some(began) => Awaited::Refused(Refused {
                answer: Answer::new(408, Reason::HeadTimeout),
                began,
            }),
            None => Awaited::Over(Parting::Close, Reason::Done),
        })
    }

    /// Until when a client that has just connected is waited for although the process ends: its first request is on its way. `None` where
    /// that is over, or nothing ends.
    fn grace(&self, waiting: &Waiting) -> Option<Time> {
        let is_new = self.requests == 0 && waiting.began.is_none();
        let is_ending = self.standing.letterbox().word() == Word::Finish;
        let end = self.accepted_at.after(FIRST_REQUEST_GRACE);
        (is_new && is_ending && self.alarm.now() < end).then(|| end.min(waiting.first_by))
    }

    /// Looks at what has come; `None` if it is not enough.
    fn look(&mut self, waiting: &mut Waiting) -> Option<Awaited> {
        let available = self.inbox.bytes().len();
        if available == 0 {
            return None;
        }
        let began = *waiting.began.get_or_insert_with(|| self.alarm.now());
        let limits = limits(self);
        let seen = std::mem::replace(&mut waiting.seen, available);
        if seen > 0 && !is_worth_parsing(self.inbox.bytes(), seen, &limits) {
            return None;
        }
        self.parse(&limits, began)
    }

    /// Whether all of a head has come that nobody has looked at.
    pub(super) fn holds_request(&self) -> bool {
        !self.inbox.is_empty() && is_worth_parsing(self.inbox.bytes(), 0, &limits(self))
    }

    fn parse(&mut self, limits: &Limits, began: Time) -> Option<Awaited> {
        let mut slots = FieldSlots::new();
        match RequestHead::parse(self.inbox.bytes(), limits, &mut slots) {
            Parsed::Incomplete => None,
            Parsed::Refused(refusal) => Some(Awaited::Refused(Refused {
                answer: answer_to(refusal),
                began,
            })),
            Parsed::Complete(head, length) => {
                let plan = Box::new(Plan::of(&head, self, began));
                self.inbox.consume(length);
                self.requests = self.requests.saturating_add(1);
                Some(Awaited::Request(plan))
            }
        }
    }
}

/// How large a head of this session may be.
fn limits(session: &Session) -> Limits {
    let limits = &session.settings.limits;
    Limits {
        head_bytes: limits.head_bytes,
        fields: limits.headers,
        target_bytes: limits.target_bytes,
        ..Limits::default()
    }
}

/// What a client is told whose message is refused.
pub(super) fn answer_to(refusal: Refusal) -> Answer {
    Answer::new(
        refusal.status(Message::Request),
        Reason::of_refusal(refusal),
    )
}
