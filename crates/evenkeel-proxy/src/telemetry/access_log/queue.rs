//! What workers and the writer share: a list of records under a lock, and two counters.
//!
//! The lock is held for an append or for a swap of two lists, never for IO, and nobody allocates under it: both lists have their
//! full size from the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};

use super::{AccessLogCounts, Logged, Stopped};

/// Records that wait for the writer; as many again may be in its hands. About 1.5 MiB each.
pub const QUEUED_RECORDS_MAX: usize = 8192;

/// How long the writer lets records gather after it has written some. To wake it for each would cost a busy worker more than
/// all else about the log; the first one after a pause is written at once.
const GATHERING_TIME: Duration = Duration::from_millis(10);

/// With so many it is woken before that.
const GATHERED_RECORDS_MAX: usize = QUEUED_RECORDS_MAX / 2;

/// Records on their way to the writer, and what the writer has made of them.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// For the writer: there is something to do.
    work: Condvar,
    /// For `stop`: the writer has ended.
    ended: Condvar,
    lines: Arc<Lines>,
}

/// What has become of lines. It outlives a log that another one replaces.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    written: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct State {
    queued: Vec<Entry>,
    /// How many queued records wake the writer.
    wake_at: usize,
    reopen: bool,
    closing: bool,
    ended: bool,
}

impl State {
    /// Whether something other than records is to be done.
    const fn is_called(&self) -> bool {
        self.reopen || self.closing
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ended: Timestamp,
    pub(super) record: Logged,
}

/// What the writer was woken for, besides the records.
pub(super) struct Work {
    pub(super) reopen: bool,
    pub(super) closing: bool,
}

impl Queue {
    pub(super) fn new(lines: Arc<Lines>) -> Self {
        Self {
            state: Mutex::new(State {
                queued: Vec::with_capacity(QUEUED_RECORDS_MAX),
                wake_at: 1,
                reopen: false,
                closing: false,
                ended: false,
            }),
            work: Condvar::new(),
            ended: Condvar::new(),
            lines,
        }
    }

    /// Queues a record, or counts it as dropped.
    pub(super) fn push(&self, ended: Timestamp, record: Logged) {
        let mut state = self.state.lock();
        if state.closing || state.queued.len() >= QUEUED_RECORDS_MAX {
            drop(state);
            self.count_dropped(1);
            return;
        }
        state.queued.push(Entry { ended, record });
        let wakes = state.queued.len() == state.wake_at;
        drop(state);
        // Once is enough: the writer takes all there is, and does not sleep long while there is any.
        if wakes {
            self.work.notify_one();
        }
    }

    /// Lets records gather, then sleeps until there is something to do, and swaps the queued records for the empty list given.
    pub(super) fn take(&self, records: &mut Vec<Entry>) -> Work {
        let mut state = self.state.lock();
        let gathered = Instant::now() + GATHERING_TIME;
        state.wake_at = GATHERED_RECORDS_MAX;
        while state.queued.len() < GATHERED_RECORDS_MAX && !state.is_called() {
            if self.work.wait_until(&mut state, gathered).timed_out() {
                break;
            }
        }
        state.wake_at = 1;
        while state.queued.is_empty() && !state.is_called() {
            self.work.wait(&mut state);
        }
        std::mem::swap(&mut state.queued, records);
        Work {
            reopen: std::mem::take(&mut state.reopen),
            closing: state.closing,
        }
    }

    /// Asks the writer to open its destination anew.
    pub(super) fn reopen(&self) {
        self.state.lock().reopen = true;
        self.work.notify_one();
    }

    /// Takes nothing more, and waits until the writer has ended or the deadline has come.
    pub(super) fn close(&self, deadline: Instant) -> Stopped {
        self.state.lock().closing = true;
        self.work.notify_one();
        let mut state = self.state.lock();
        while !state.ended {
            if self.ended.wait_until(&mut state, deadline).timed_out() && !state.ended {
                return Stopped::TimedOut;
            }
        }
        Stopped::Complete
    }

    pub(super) fn mark_ended(&self) {
        self.state.lock().ended = true;
        self.ended.notify_all();
    }

    pub(super) fn counts(&self) -> AccessLogCounts {
        AccessLogCounts {
            written: self.lines.written.load(Ordering::Relaxed),
            dropped: self.lines.dropped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn count_written(&self, lines: u64) {
        self.lines.written.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, lines: u64) {
        self.lines.dropped.fetch_add(lines, Ordering::Relaxed);
    }
}
