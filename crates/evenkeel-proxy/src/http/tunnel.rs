//! What follows a change of protocols (101): two streams of bytes, each carried to the other side as it comes.
//!
//! It lives as long as both sides like, over reloads, until the stop deadline. An end of stream is carried over; the other direction
//! goes on.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use evenkeel_core::units::Time;
use tokio::io::AsyncWrite;

use super::alarm::Alarm;
use super::flow::{Break, Flow};
use super::inbox::{Inbox, Stock};
use crate::layer7::{Letterbox, Stream, Word};
use crate::telemetry::reason::Reason;

/// One side of a tunnel.
pub(super) struct Side<'s> {
    pub(super) stream: &'s mut Stream,
    pub(super) inbox: &'s mut Inbox,
}

/// Both directions.
pub(super) struct Tunnel<'r> {
    up: Half<'r>,
    down: Half<'r>,
    idle: Option<Duration>,
    moved_at: Time,
}

/// One direction.
struct Half<'r> {
    flow: &'r mut Flow,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Moving,
    /// All has been written; the end has not been carried over.
    Ending,
    Over,
}

impl<'r> Half<'r> {
    fn of(flow: &'r mut Flow) -> Self {
        flow.become_stream();
        Self {
            flow,
            stage: Stage::Moving,
        }
    }

    /// Moves what can be moved now.
    fn poll(
        &mut self,
        from: &mut Side<'_>,
        to: &mut Stream,
        stock: &Stock,
        cx: &mut Context<'_>,
    ) -> Result<(), Break> {
        if self.stage == Stage::Moving
            && let Poll::Ready(moved) = self.flow.poll((from.stream, from.inbox), to, stock, cx)
        {
            moved?;
            self.stage = Stage::Ending;
        }
        if self.stage == Stage::Ending && Pin::new(to).poll_shutdown(cx).is_ready() {
            self.stage = Stage::Over;
        }
        Ok(())
    }
}

impl<'r> Tunnel<'r> {
    /// Behind what these have on its way.
    pub(super) fn new(
        up: &'r mut Flow,
        down: &'r mut Flow,
        idle: Option<Duration>,
        now: Time,
    ) -> Self {
        Self {
            up: Half::of(up),
            down: Half::of(down),
            idle,
            moved_at: now,
        }
    }

    /// Bytes that went up and down.
    pub(super) const fn moved(&self) -> (u64, u64) {
        (self.up.flow.moved, self.down.flow.moved)
    }

    /// Carries bytes until both sides have ended, or one breaks.
    pub(super) async fn run(
        &mut self,
        mut client: Side<'_>,
        mut endpoint: Side<'_>,
        stock: &Stock,
        (alarm, letterbox): (&mut Alarm, &Letterbox),
    ) -> Reason {
        poll_fn(|cx| {
            let before = self.moved();
            if let Err(broken) = self.up.poll(&mut client, endpoint.stream, stock, cx) {
                return Poll::Ready(whose(&broken, Reason::ClientReset, Reason::UpstreamReset));
            }
            if let Err(broken) = self.down.poll(&mut endpoint, client.stream, stock, cx) {
                return Poll::Ready(whose(&broken, Reason::UpstreamReset, Reason::ClientReset));
            }
            if self.up.stage == Stage::Over && self.down.stage == Stage::Over {
                return Poll::Ready(Reason::Done);
            }
            if letterbox.poll_word(Word::Finish, cx).is_ready() {
                return Poll::Ready(Reason::StopDeadline);
            }
            if before != self.moved() {
                self.moved_at = alarm.now();
            }
            let Some(idle) = self.idle else {
                return Poll::Pending;
            };
            alarm
                .poll(self.moved_at.after(idle), cx)
                .map(|_| Reason::IdleTimeout)
        })
        .await
    }
}

/// Which side has broken.
const fn whose(broken: &Break, sender: Reason, receiver: Reason) -> Reason {
    match broken {
        Break::Sink => receiver,
        _ => sender,
    }
}
