//! One direction of a relay: from one stream to another, through the worker's read buffer or, in bulk, through a pipe.
//!
//! A pump keeps only what could not be written yet, at most one read buffer or one pipe full; until that is gone it does not
//! read on, so that a slow reader slows its writer down. It may also keep what *was* written, to send it again to another
//! stream, up to a limit. Carrying ends of stream and errors over is its owner's decision; the pump reports them, and its
//! owner cannot tell how the bytes went. This is the seam where another way of moving them (io_uring) would take over.
//!
//! **When a pump splices.** After [`FULL_READS_TO_SPLICE`] reads in a row that filled the buffer, bytes go through a pipe; after
//! [`SMALL_FILLS_TO_COPY`] small ones in a row they are copied again. A pipe is filled only when it is empty, so a pump changes over
//! with nothing on its way, and the one answer "nothing now" of a pipe's two ends is never ambiguous. It is borrowed
//! for a run and stays with the pump only while it holds something.

use crate::pipe::{Pipe, Pipes};
use crate::socket::{Fault, Received, Sent, Stream};
use crate::worker::READ_BUFFER_BYTES;

/// Reads in one run, so that a fast connection cannot starve the others: with 64 KiB each, half a MiB.
pub const READS_PER_TURN_MAX: usize = 8;

/// Bytes after which a run ends, however few reads brought them: splicing 1 MiB takes no longer than copying half of it.
pub const BYTES_PER_TURN_MAX: u64 = 1 << 20;

/// Reads in a row that fill the buffer before a direction is spliced.
pub const FULL_READS_TO_SPLICE: i16 = 3;

/// Small fills of a pipe in a row before a direction is copied again.
pub const SMALL_FILLS_TO_COPY: u8 = 3;

/// A fill below this is small: copying so little costs no more than the two further calls of splicing.
const SMALL_FILL_BYTES: usize = 16 << 10;

/// Full reads that a direction is copied for before it asks again, when there was no pipe for it: 16 MiB.
const FULL_READS_AFTER_REFUSAL: i16 = 256;

/// What a worker lends to its pumps, one after the other.
#[derive(Debug)]
pub struct Gear {
    /// The read buffer; nothing in it outlives a call.
    pub buffer: Box<[u8]>,
    /// Pipes for what moves in bulk.
    pub pipes: Pipes,
}

/// Whether a direction may be spliced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splice {
    /// As soon as it moves in bulk.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// How the next bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Copied, for good.
    Copied,
    /// Copied, until so many reads in a row are full; below 0 after a refusal.
    CopiedUntil { full_reads: i16 },
    /// Spliced, until too many fills in a row are small.
    Spliced { small_fills: u8 },
}

impl From<Splice> for Way {
    fn from(splice: Splice) -> Self {
        match splice {
            Splice::Auto => Self::CopiedUntil { full_reads: 0 },
            Splice::Off => Self::Copied,
        }
    }
}

impl Way {
    /// After a read of `count` bytes.
    fn after_read(self, count: usize) -> Self {
        let Self::CopiedUntil { full_reads } = self else {
            return self;
        };
        if count < READ_BUFFER_BYTES {
            return Self::CopiedUntil {
                full_reads: full_reads.min(0),
            };
        }
        match full_reads + 1 {
            FULL_READS_TO_SPLICE => Self::Spliced { small_fills: 0 },
            full_reads => Self::CopiedUntil { full_reads },
        }
    }

    /// After a pipe was filled with `count` bytes.
    const fn after_fill(self, count: usize) -> Self {
        match self {
            Self::Spliced { small_fills } if count < SMALL_FILL_BYTES => {
                if small_fills + 1 == SMALL_FILLS_TO_COPY {
                    Self::CopiedUntil { full_reads: 0 }
                } else {
                    Self::Spliced {
                        small_fills: small_fills + 1,
                    }
                }
            }
            Self::Spliced { .. } => Self::Spliced { small_fills: 0 },
            copied => copied,
        }
    }

    const fn after_refusal() -> Self {
        Self::CopiedUntil {
            full_reads: -FULL_READS_AFTER_REFUSAL,
        }
    }
}

/// Where a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing more can be moved until one of the streams is ready again.
    Waiting,
    /// There is more to move, but it is the others' turn: run again soon.
    Yielding,
    /// The source has ended its stream, and all of it has been written.
    Ended,
    /// The source is broken, and all that had arrived of it has been written.
    SourceBroken(Fault),
    /// The sink takes nothing more.
    SinkBroken,
}

/// The end of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Open,
    Ended,
    Broken(Fault),
}

/// One direction of a relay.
#[derive(Debug)]
pub struct Pump {
    /// `bytes[..sent]` has been written; with a replay it is kept for that. The rest is to be written.
    bytes: Vec<u8>,
    sent: usize,
    /// The most bytes kept for a replay; 0 when there is to be none.
    replay_max: usize,
    received: u64,
    moved: u64,
    source: Source,
    way: Way,
    /// Outside a run only while it holds something; then nothing is in `bytes`.
    pipe: Option<Box<Pipe>>,
}

impl Pump {
    /// A pump that keeps up to `replay_max` bytes for a replay; 0 keeps none. While it keeps any it does not splice.
    pub fn new(replay_max: usize, splice: Splice) -> Self {
        Self {
            bytes: Vec::new(),
            sent: 0,
            replay_max,
            received: 0,
            moved: 0,
            source: Source::Open,
            way: splice.into(),
            pipe: None,
        }
    }

    /// Bytes read from the source.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes written to the present sink.
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether the source has ended its stream, orderly.
    pub const fn has_source_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    /// What has been copied but not written yet.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Whether all that was read has been written, however it went.
    pub fn is_drained(&self) -> bool {
        self.unsent().is_empty() && self.pipe.is_none()
    }

    /// Moves what can be moved now.
    pub fn run(&mut self, from: &mut Stream, to: &mut Stream, gear: &mut Gear) -> Flow {
        let flow = self.run_share(from, to, gear);
        if let Some(pipe) = self.pipe.take_if(|pipe| pipe.held() == 0) {
            gear.pipes.give_back(pipe);
        }
        flow
    }

    /// Reads without writing, until `bytes_max` bytes are kept.
    pub fn gather(&mut self, from: &mut Stream, buffer: &mut [u8], bytes_max: usize) -> Flow {
        while from.is_readable() && self.source == Source::Open {
            let room = bytes_max.saturating_sub(self.bytes.len()).min(buffer.len());
            if room == 0 {
                return Flow::Yielding;
            }
            if let Received::Bytes(count) = self.read(from, &mut buffer[..room]) {
                self.bytes.extend_from_slice(&buffer[..count]);
            }
        }
        match self.source {
            Source::Open => Flow::Waiting,
            Source::Ended => Flow::Ended,
            Source::Broken(fault) => Flow::SourceBroken(fault),
        }
    }

    /// Writes what is kept; [`Flow::Yielding`] when nothing is left to write.
    pub fn flush(&mut self, to: &mut Stream) -> Flow {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.held() > 0) {
            return self.flush_pipe(to);
        }
        if self.unsent().is_empty() {
            return Flow::Yielding;
        }
        if !to.is_writable() {
            return Flow::Waiting;
        }
        let Sent::Bytes(count) = to.send(&self.bytes[self.sent..]) else {
            return Flow::SinkBroken;
        };
        self.sent += count;
        self.moved += count as u64;
        self.forget_sent();
        if self.unsent().is_empty() {
            Flow::Yielding
        } else {
            Flow::Waiting
        }
    }

    /// Keeps up to so many bytes for a replay from now on; 0 keeps none. Nothing may have been written.
    pub fn keep_for_replay(&mut self, replay_max: usize) {
        debug_assert!(self.moved == 0, "what is written may be forgotten already");
        self.replay_max = replay_max;
    }

    /// Forgets the first bytes that were gathered, as if they had never come. None may have been written.
    pub fn leave_out(&mut self, count: usize) {
        debug_assert!(self.moved == 0, "what is written cannot be left out");
        let count = count.min(self.bytes.len());
        self.bytes.drain(..count);
        self.received -= count as u64;
    }

    /// Writes bytes of our own and, in the same call, what is kept behind them. Returns how much was written of both together; only
    /// what is kept counts as moved.
    pub fn flush_behind(&mut self, header: &[u8], to: &mut Stream) -> Sent {
        let sent = to.send(&[header, self.unsent()].concat());
        if let Sent::Bytes(count) = sent {
            let moved = count.saturating_sub(header.len());
            self.sent += moved;
            self.moved += moved as u64;
            self.forget_sent();
        }
        sent
    }

    /// Puts bytes of our own behind what is to be written.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether everything read so far could be sent once more: all of it is kept, or none was written.
    pub const fn can_replay(&self) -> bool {
        self.moved == 0 || self.replay_max > 0
    }

    /// Starts over with a new sink, from the first byte.
    pub fn rewind(&mut self) {
        debug_assert!(
            self.can_replay() && self.pipe.is_none(),
            "bytes that were written, or spliced, are gone"
        );
        self.sent = 0;
        self.moved = 0;
    }

    /// Keeps nothing for a replay any more.
    pub fn forget(&mut self) {
        self.replay_max = 0;
        self.forget_sent();
    }

    fn run_share(&mut self, from: &mut Stream, to: &mut Stream, gear: &mut Gear) -> Flow {
        let most = self.received + BYTES_PER_TURN_MAX;
        for _ in 0..READS_PER_TURN_MAX {
            match self.flush(to) {
                Flow::Yielding => {}
                stop => return stop,
            }
            match self.source {
                Source::Ended => return Flow::Ended,
                Source::Broken(fault) => return Flow::SourceBroken(fault),
                Source::Open if !from.is_readable() || !to.is_writable() => return Flow::Waiting,
                Source::Open if self.received >= most => return Flow::Yielding,
                Source::Open => {}
            }
            match self.advance(from, to, gear) {
                Flow::Yielding => {}
                stop => return stop,
            }
        }
        self.rest(from, to)
    }

    /// Reads once, with nothing left to write. [`Flow::Yielding`] when that brought something: bytes, or the source's end.
    fn advance(&mut self, from: &mut Stream, to: &mut Stream, gear: &mut Gear) -> Flow {
        if let Some(received) = self.fill(from, &mut gear.pipes) {
            return if received == Received::Nothing {
                Flow::Waiting
            } else {
                Flow::Yielding
            };
        }
        let buffer = &mut gear.buffer[..];
        match self.read(from, buffer) {
            Received::Bytes(count) => {
                self.way = self.way.after_read(count);
                match self.write(to, &buffer[..count]) {
                    Sent::Bytes(_) => Flow::Yielding,
                    Sent::Broken => Flow::SinkBroken,
                }
            }
            Received::Nothing => Flow::Waiting,
            Received::End | Received::Broken(_) => Flow::Yielding,
        }
    }

    /// Reads into a pipe; `None` if bytes are to be copied now.
    fn fill(&mut self, from: &mut Stream, pipes: &mut Pipes) -> Option<Received> {
        if !matches!(self.way, Way::Spliced { .. }) || self.replay_max > 0 {
            return None;
        }
        let Some(mut pipe) = self.pipe.take().or_else(|| pipes.take()) else {
            self.way = Way::after_refusal();
            return None;
        };
        let Ok(received) = from.receive_into(&mut pipe) else {
            pipes.count_refused();
            pipes.give_back(pipe);
            self.way = Way::Copied;
            return None;
        };
        if let Received::Bytes(count) = received {
            pipes.count_spliced(count);
            self.way = self.way.after_fill(count);
        }
        self.note(received);
        self.pipe = Some(pipe);
        Some(received)
    }

    /// Writes what the pipe holds.
    fn flush_pipe(&mut self, to: &mut Stream) -> Flow {
        let Some(pipe) = &mut self.pipe else {
            return Flow::Yielding;
        };
        // Each round moves something, or ends it.
        while pipe.held() > 0 {
            if !to.is_writable() {
                return Flow::Waiting;
            }
            match to.send_from(pipe) {
                Sent::Bytes(count) => self.moved += count as u64,
                Sent::Broken => return Flow::SinkBroken,
            }
        }
        Flow::Yielding
    }

    fn read(&mut self, from: &mut Stream, buffer: &mut [u8]) -> Received {
        let received = from.receive(buffer);
        self.note(received);
        received
    }

    fn note(&mut self, received: Received) {
        match received {
            Received::Bytes(count) => self.received += count as u64,
            Received::End => self.source = Source::Ended,
            Received::Broken(fault) => self.source = Source::Broken(fault),
            Received::Nothing => {}
        }
    }

    fn write(&mut self, to: &mut Stream, bytes: &[u8]) -> Sent {
        // A replay ends when more has come than may be kept; what was kept has been written.
        if self.bytes.len() + bytes.len() > self.replay_max {
            self.forget();
        }
        let sent = to.send(bytes);
        let written = match sent {
            Sent::Bytes(count) => count,
            Sent::Broken => 0,
        };
        self.moved += written as u64;
        if self.replay_max > 0 {
            self.bytes.extend_from_slice(bytes);
            self.sent += written;
        } else {
            self.bytes.extend_from_slice(&bytes[written..]);
        }
        sent
    }

    /// Gives memory back once everything is written; nothing is moved about for less.
    fn forget_sent(&mut self) {
        if self.replay_max == 0 && self.unsent().is_empty() {
            self.bytes = Vec::new();
            self.sent = 0;
        }
    }

    fn rest(&mut self, from: &Stream, to: &mut Stream) -> Flow {
        match (self.flush(to), self.source) {
            (Flow::Yielding, Source::Ended) => Flow::Ended,
            (Flow::Yielding, Source::Broken(fault)) => Flow::SourceBroken(fault),
            (Flow::Yielding, Source::Open) if !from.is_readable() || !to.is_writable() => {
                Flow::Waiting
            }
            (stop, _) => stop,
        }
    }
}

/// Reads and throws away, at most `bytes_max` bytes. Returns how many, and what stopped it.
pub fn discard(from: &mut Stream, buffer: &mut [u8], bytes_max: u64) -> (u64, Received) {
    let mut count = 0;
    while from.is_readable() && count < bytes_max {
        match from.receive(buffer) {
            Received::Bytes(bytes) => count += bytes as u64,
            stop => return (count, stop),
        }
    }
    (count, Received::Nothing)
}
