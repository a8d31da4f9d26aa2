//! Closing a connection on which the client still sends.
//!
//! Closing with unread input resets the connection, and a reset can destroy an answer that the client has not read yet. So
//! the stream is ended, and what still comes is read and thrown away until the client ends its own, for a while.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use evenkeel_core::units::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::alarm::Alarm;
use crate::layer7::{Letterbox, Stream, Word};

/// How long the client may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long all of it may take.
const TOTAL_MAX: Duration = Duration::from_secs(30);

/// How many bytes are thrown away.
const BYTES_MAX: usize = 16 << 20;

/// Read at once.
const ROOM_BYTES: usize = 4096;

/// Ends the stream, and waits for the client's end.
pub(super) async fn linger(stream: &mut Stream, alarm: &mut Alarm, letterbox: &Letterbox) {
    let ended = poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await;
    if ended.is_err() {
        return;
    }
    let mut rest = Rest::begin(alarm.now());
    poll_fn(|cx| {
        if letterbox.poll_word(Word::Finish, cx).is_ready() {
            return Poll::Ready(());
        }
        rest.poll(stream, alarm, cx)
    })
    .await;
}

/// What a client may still send.
struct Rest {
    bytes: usize,
    ends_at: Time,
    silent_until: Time,
}

impl Rest {
    fn begin(now: Time) -> Self {
        Self {
            bytes: BYTES_MAX,
            ends_at: now.after(TOTAL_MAX),
            silent_until: now.after(SILENCE_MAX),
        }
    }

    fn poll(&mut self, stream: &mut Stream, alarm: &mut Alarm, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut room = [0; ROOM_BYTES];
            let mut room = ReadBuf::new(&mut room);
            match Pin::new(&mut *stream).poll_read(cx, &mut room) {
                Poll::Pending => {
                    ready!(alarm.poll(self.ends_at.min(self.silent_until), cx));
                    return Poll::Ready(());
                }
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    self.bytes = self.bytes.saturating_sub(room.filled().len());
                    self.silent_until = alarm.now().after(SILENCE_MAX);
                }
                Poll::Ready(_) => return Poll::Ready(()),
            }
            if self.bytes == 0 {
                return Poll::Ready(());
            }
        }
    }
}
