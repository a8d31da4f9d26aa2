//! One timer for all the waits of a connection.
//!
//! A deadline that moves later costs nothing: the timer fires at the old moment, and looks again. Only one that is earlier than
//! any before is set anew. All waits of a connection are one task's, so a timer that has been asked once wakes it whatever it
//! waits for then.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use evenkeel_core::units::Time;
use evenkeel_reactor::Clock;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::worker::time_of;

/// See the module's documentation.
pub(crate) struct Alarm {
    clock: Clock,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When it fires; never later than the deadline, often earlier.
    armed_at: Time,
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut;

impl Alarm {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self {
            clock,
            sleep: None,
            armed_at: Time::NEVER,
        }
    }

    pub(crate) fn now(&self) -> Time {
        time_of(self.clock.now())
    }

    /// Ready once the deadline has come.
    pub(crate) fn poll(&mut self, deadline: Time, cx: &mut Context<'_>) -> Poll<TimedOut> {
        if deadline < self.armed_at {
            self.arm(deadline, self.now());
        }
        let Some(sleep) = &mut self.sleep else {
            return Poll::Pending;
        };
        loop {
            ready!(sleep.as_mut().poll(cx));
            let now = time_of(self.clock.now());
            if deadline <= now {
                return Poll::Ready(TimedOut);
            }
            if deadline == Time::NEVER {
                self.sleep = None;
                self.armed_at = Time::NEVER;
                return Poll::Pending;
            }
            self.armed_at = deadline;
            sleep.as_mut().reset(Instant::now() + deadline.since(now));
        }
    }

    fn arm(&mut self, deadline: Time, now: Time) {
        self.armed_at = deadline;
        let moment = Instant::now() + deadline.since(now);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(moment),
            None => self.sleep = Some(Box::pin(sleep_until(moment))),
        }
    }
}
