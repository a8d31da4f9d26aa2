//! One direction of a relay: from one stream to another through the worker's read buffer.
//!
//! A pump keeps only what could not be written yet, at most one read buffer full; until it has some room again it does not
//! read on, so that a slow reader slows its writer down. It may also keep what *was* written, to send it again to another
//! stream, up to a limit. Carrying ends of stream and errors over is its owner's decision; the pump reports them. This is
//! the seam where another way of moving bytes (splice, io_uring) takes over.

use crate::socket::{Fault, Received, Sent, Stream};

/// Reads in one run, so that a fast connection cannot starve the others: with 64 KiB each, half a MiB.
pub const READS_PER_TURN_MAX: usize = 8;

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
}

impl Pump {
    /// A pump that keeps up to `replay_max` bytes for a replay; 0 keeps none.
    pub const fn new(replay_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            sent: 0,
            replay_max,
            received: 0,
            moved: 0,
            source: Source::Open,
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

    /// What has been read but not written yet.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Moves what can be moved now.
    pub fn run(&mut self, from: &mut Stream, to: &mut Stream, buffer: &mut [u8]) -> Flow {
        for _ in 0..READS_PER_TURN_MAX {
            match self.flush(to) {
                Flow::Yielding => {}
                stop => return stop,
            }
            match self.source {
                Source::Ended => return Flow::Ended,
                Source::Broken(fault) => return Flow::SourceBroken(fault),
                Source::Open if !from.is_readable() || !to.is_writable() => return Flow::Waiting,
                Source::Open => {}
            }
            match self.read(from, buffer) {
                Received::Bytes(count) => {
                    if self.write(to, &buffer[..count]) == Sent::Broken {
                        return Flow::SinkBroken;
                    }
                }
                Received::Nothing => return Flow::Waiting,
                Received::End | Received::Broken(_) => {}
            }
        }
        self.rest(from, to)
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
        debug_assert!(self.can_replay(), "bytes that were written are gone");
        self.sent = 0;
        self.moved = 0;
    }

    /// Keeps nothing for a replay any more.
    pub fn forget(&mut self) {
        self.replay_max = 0;
        self.forget_sent();
    }

    fn read(&mut self, from: &mut Stream, buffer: &mut [u8]) -> Received {
        let received = from.receive(buffer);
        match received {
            Received::Bytes(count) => self.received += count as u64,
            Received::End => self.source = Source::Ended,
            Received::Broken(fault) => self.source = Source::Broken(fault),
            Received::Nothing => {}
        }
        received
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
