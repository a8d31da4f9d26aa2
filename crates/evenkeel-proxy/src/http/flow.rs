//! One direction of an exchange: heads and a body on their way from one connection to the other.
//!
//! A body that is sent as it came goes out of the very buffer it was read into; one that is framed otherwise, or in chunks, is coded
//! anew. What has been read is written before more is read, so a slow receiver slows its sender. How messages are framed is
//! `evenkeel-wire`'s part; what an end means for the exchange is decided in [`relay`](super::relay).

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use evenkeel_wire::http1::{
    BodyDecoder, BodyFraming, CHUNK_END, ChunkHead, Refusal, append_last_chunk,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::inbox::{Inbox, Stock};

/// One direction of an exchange.
pub(super) struct Flow {
    body: BodyDecoder,
    coding: Coding,
    /// Heads, and what is coded: written before the plain bytes. Kept until more is coded, so that it can be sent once more.
    out: Vec<u8>,
    sent: usize,
    /// How many bytes at the front of the inbox are the body's, and are next.
    plain: usize,
    /// All of the body has been taken from the inbox.
    is_read: bool,
    /// Bytes written.
    pub(super) moved: u64,
    /// Bytes of the body that have come, and how many may.
    body_taken: u64,
    body_max: u64,
}

/// How a body is framed on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all: the receiver knows its length, or takes the end of the stream for it.
    Plain,
    Chunked,
}

/// Why a flow cannot go on.
#[derive(Debug)]
pub(super) enum Break {
    /// The sender ended its stream before the body's end.
    Truncated,
    /// The sender cannot be read from.
    Source,
    /// The receiver cannot be written to.
    Sink,
    /// What came is no body.
    Malformed(Refusal),
    /// The body is longer than it may be.
    TooLarge,
}

/// What a flow that cannot go on now waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    Source,
    Sink,
}

/// Of a body in chunks so many bytes are coded before they are written.
const CODED_MAX: usize = 128 * 1024;

impl Flow {
    /// Begins with this head; how its body is framed is as it came.
    pub(super) fn new(head: Vec<u8>, framing: BodyFraming, body_max: u64) -> Self {
        let mut flow = Self {
            body: BodyDecoder::None,
            coding: Coding::Plain,
            out: head,
            sent: 0,
            plain: 0,
            is_read: true,
            moved: 0,
            body_taken: 0,
            body_max,
        };
        let coding = match framing {
            BodyFraming::Chunked => Coding::Chunked,
            _ => Coding::Plain,
        };
        flow.expect(framing, coding);
        flow
    }

    /// A body of this framing follows the heads.
    pub(super) fn expect(&mut self, framing: BodyFraming, coding: Coding) {
        self.body = BodyDecoder::new(framing);
        self.coding = coding;
        self.is_read = self.body.is_over();
    }

    /// From here on all bytes are carried as they come.
    pub(super) fn become_stream(&mut self) {
        self.body_max = u64::MAX;
        self.expect(BodyFraming::UntilClose, Coding::Plain);
    }

    /// For a head that goes before everything that comes.
    pub(super) fn head(&mut self) -> &mut Vec<u8> {
        self.drop_sent();
        &mut self.out
    }

    /// All is to be sent once more. Only while nothing of a body has been sent.
    pub(super) fn rewind(&mut self) {
        self.sent = 0;
        self.moved = 0;
    }

    /// Whether any byte of the body has come.
    pub(super) const fn has_body_begun(&self) -> bool {
        self.body_taken > 0
    }

    /// The buffer, for another one.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.out
    }

    /// Bytes that are to be written.
    const fn waiting(&self) -> usize {
        self.out.len() - self.sent + self.plain
    }

    /// What a flow that is pending waits for.
    pub(super) const fn awaits(&self) -> Awaits {
        if self.waiting() > 0 {
            Awaits::Sink
        } else {
            Awaits::Source
        }
    }

    /// Moves what can be moved now. Ready when the body is through.
    pub(super) fn poll<R, W>(
        &mut self,
        (from, inbox): (&mut R, &mut Inbox),
        to: &mut W,
        stock: &Stock,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Break>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            self.decode(inbox)?;
            if self.waiting() > 0 {
                ready!(self.poll_write(inbox, to, cx))?;
                continue;
            }
            if self.is_read {
                return Poll::Ready(Ok(()));
            }
            match inbox.poll_fill(from, stock, cx) {
                Poll::Pending => {
                    inbox.settle(stock);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => self.end_of_stream()?,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Break::Source)),
            }
        }
    }

    /// Writes the heads there are. Ready when they are through.
    pub(super) fn poll_flush(
        &mut self,
        to: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Break>> {
        let mut nothing = Inbox::default();
        while self.waiting() > 0 {
            ready!(self.poll_write(&mut nothing, to, cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes once: what is coded, and what follows plainly, in one call.
    fn poll_write(
        &mut self,
        inbox: &mut Inbox,
        to: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Break>> {
        let coded = &self.out[self.sent..];
        let plain = &inbox.bytes()[..self.plain];
        let to = Pin::new(to);
        let written = match (coded, plain) {
            ([], plain) => to.poll_write(cx, plain),
            (coded, []) => to.poll_write(cx, coded),
            _ => to.poll_write_vectored(cx, &[IoSlice::new(coded), IoSlice::new(plain)]),
        };
        match ready!(written) {
            Ok(0) | Err(_) => Poll::Ready(Err(Break::Sink)),
            Ok(count) => {
                self.wrote(count, inbox);
                Poll::Ready(Ok(()))
            }
        }
    }

    fn wrote(&mut self, count: usize, inbox: &mut Inbox) {
        self.moved += count as u64;
        let coded = count.min(self.out.len() - self.sent);
        self.sent += coded;
        let plain = count - coded;
        self.plain -= plain;
        inbox.consume(plain);
    }

    /// Takes what the inbox has of the body, unless there is enough to write already.
    fn decode(&mut self, inbox: &mut Inbox) -> Result<(), Break> {
        while self.plain == 0 && !self.is_read && !inbox.is_empty() {
            if self.out.len() - self.sent >= CODED_MAX {
                return Ok(());
            }
            let part = self.body.next(inbox.bytes()).map_err(Break::Malformed)?;
            self.count(part.data)?;
            inbox.consume(part.skip);
            match self.coding {
                Coding::Plain => self.plain = part.data,
                Coding::Chunked => self.code(inbox, part.data),
            }
            if part.is_end {
                self.end();
            }
        }
        Ok(())
    }

    /// Appends so many bytes of the inbox as a chunk.
    fn code(&mut self, inbox: &mut Inbox, count: usize) {
        if count == 0 {
            return;
        }
        self.drop_sent();
        self.out.extend_from_slice(ChunkHead::new(count).as_bytes());
        self.out.extend_from_slice(&inbox.bytes()[..count]);
        self.out.extend_from_slice(CHUNK_END);
        inbox.consume(count);
    }

    /// What has been written is not needed any more: a body has begun, which is sent but once.
    fn drop_sent(&mut self) {
        if self.sent > 0 && self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    fn count(&mut self, data: usize) -> Result<(), Break> {
        self.body_taken = self.body_taken.saturating_add(data as u64);
        if self.body_taken > self.body_max {
            return Err(Break::TooLarge);
        }
        Ok(())
    }

    /// The body has been read to its end.
    fn end(&mut self) {
        self.is_read = true;
        if self.coding == Coding::Chunked {
            self.drop_sent();
            append_last_chunk(&mut self.out, self.body.trailers());
        }
    }

    fn end_of_stream(&mut self) -> Result<(), Break> {
        self.body.end_of_stream().map_err(|_| Break::Truncated)?;
        self.end();
        Ok(())
    }
}
