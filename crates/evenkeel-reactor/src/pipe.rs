//! Pipes for splicing: bytes go from socket to pipe to socket without being copied through this program.
//!
//! Each worker keeps a few empty pipes; how many there may be at all is bounded for the whole process by a [`PipeBudget`],
//! because a pipe that waits for a slow reader holds up to its capacity. Whoever gets no pipe copies: that is counted
//! and never an error. When to splice is the [pump](crate::pump)'s decision.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};

/// The capacity a pipe is asked for, in bytes: the most that a kernel grants without privilege, and the fastest.
pub const PIPE_BYTES_MAX: usize = 1 << 20;

/// A pipe below this moves less at a time than the read buffer: then copying is better.
pub const PIPE_BYTES_MIN: usize = 64 << 10;

/// Empty pipes that a worker keeps. More than one is needed only where several readers block and go on again.
const IDLE_PIPES_MAX: usize = 16;

/// What is asked for, one after the other, before a pipe is taken as it comes.
const CAPACITIES: &[usize] = &[PIPE_BYTES_MAX, 256 << 10];

/// Moving pages instead of copying is only a hint. Not to block on the pipe is needed; sockets do not block anyway.
const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// How many pipes there may be, over all workers.
#[derive(Debug)]
pub struct PipeBudget {
    pipes_max: usize,
    open: AtomicUsize,
}

impl PipeBudget {
    /// At most so many pipes; 0 is none.
    pub fn new(pipes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            pipes_max,
            open: AtomicUsize::new(0),
        })
    }

    /// The most there may be.
    pub const fn pipes_max(&self) -> usize {
        self.pipes_max
    }

    /// Pipes that exist now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Relaxed: the count guards nothing but itself.
    fn reserve(self: &Arc<Self>) -> Option<Permit> {
        let grown = |open| (open < self.pipes_max).then_some(open + 1);
        let reserved = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        reserved.ok().map(|_| Permit(Arc::clone(self)))
    }

    fn is_exhausted(&self) -> bool {
        self.open() >= self.pipes_max
    }
}

/// The right to one pipe.
#[derive(Debug)]
struct Permit(Arc<PipeBudget>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one worker's splicing came to. Sums only; read from any thread.
#[derive(Debug, Default)]
pub struct SpliceCounts {
    bytes: AtomicU64,
    over_budget: AtomicU64,
    refused: AtomicU64,
    smaller: AtomicU64,
}

impl SpliceCounts {
    /// Bytes read into pipes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often bytes were copied because all pipes of the [`PipeBudget`] were in use.
    pub fn over_budget(&self) -> u64 {
        self.over_budget.load(Ordering::Relaxed)
    }

    /// How often bytes were copied because the kernel gave no pipe worth having, or cannot splice this kind of socket.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Pipes the kernel made smaller than [`PIPE_BYTES_MAX`].
    pub fn smaller(&self) -> u64 {
        self.smaller.load(Ordering::Relaxed)
    }
}

/// A pipe, and how much lies in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    reading: OwnedFd,
    writing: OwnedFd,
    capacity: usize,
    held: usize,
    _permit: Permit,
}

impl Pipe {
    /// Bytes in it.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Moves what has arrived at a socket into the pipe, which must be empty: a full one could not be told from a socket
    /// that has nothing.
    pub(crate) fn fill(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        debug_assert!(self.held == 0, "a pipe is filled when it is empty");
        let count = splice(socket, None, &self.writing, None, self.capacity, FLAGS)?;
        self.held = count;
        Ok(count)
    }

    /// Moves what the pipe holds into a socket, as far as there is room. A broken socket would raise SIGPIPE, which every
    /// Rust program ignores from its start.
    pub(crate) fn drain(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        // Exactly what is held: when more is asked for, the kernel waits with the last bytes for what may follow.
        let count = splice(&self.reading, None, socket, None, self.held, FLAGS)?;
        self.held -= count;
        Ok(count)
    }
}

/// The pipes of one worker.
#[derive(Debug)]
pub struct Pipes {
    budget: Arc<PipeBudget>,
    counts: Arc<SpliceCounts>,
    #[expect(
        clippy::vec_box,
        reason = "a pump holds one as a pointer, and takes it without an allocation"
    )]
    idle: Vec<Box<Pipe>>,
    capacities: &'static [usize],
}

impl Pipes {
    /// No pipes yet; they are made when they are needed.
    pub fn new(budget: Arc<PipeBudget>) -> Self {
        Self::with_capacities(budget, CAPACITIES)
    }

    pub(crate) fn with_capacities(budget: Arc<PipeBudget>, capacities: &'static [usize]) -> Self {
        Self {
            budget,
            counts: Arc::default(),
            idle: Vec::new(),
            capacities,
        }
    }

    /// What has been spliced with these pipes.
    pub fn counts(&self) -> Arc<SpliceCounts> {
        Arc::clone(&self.counts)
    }

    /// An empty pipe, if there is one to be had.
    pub(crate) fn take(&mut self) -> Option<Box<Pipe>> {
        self.idle.pop().or_else(|| self.make())
    }

    /// Puts an empty pipe back. At the budget's bound it is closed instead, so that another worker can have one.
    pub(crate) fn give_back(&mut self, pipe: Box<Pipe>) {
        debug_assert!(pipe.held == 0, "what a pipe holds belongs to one stream");
        if self.idle.len() < IDLE_PIPES_MAX && !self.budget.is_exhausted() {
            self.idle.push(pipe);
        }
    }

    pub(crate) fn count_spliced(&self, bytes: usize) {
        add(&self.counts.bytes, bytes as u64);
    }

    pub(crate) fn count_refused(&self) {
        add(&self.counts.refused, 1);
    }

    fn make(&self) -> Option<Box<Pipe>> {
        let Some(permit) = self.budget.reserve() else {
            add(&self.counts.over_budget, 1);
            return None;
        };
        let Some((reading, writing, capacity)) = open(self.capacities) else {
            self.count_refused();
            return None;
        };
        if capacity < PIPE_BYTES_MAX {
            add(&self.counts.smaller, 1);
        }
        Some(Box::new(Pipe {
            reading,
            writing,
            capacity,
            held: 0,
            _permit: permit,
        }))
    }
}

/// A pipe of the largest capacity the kernel grants; `None` if that is too little, or there is no descriptor for it.
fn open(capacities: &[usize]) -> Option<(OwnedFd, OwnedFd, usize)> {
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
    let granted = capacities
        .iter()
        .find_map(|capacity| fcntl_setpipe_size(&writing, *capacity).ok());
    // Whoever is at the limit of pipe pages gets a pipe of two pages.
    let capacity = granted.or_else(|| fcntl_getpipe_size(&writing).ok())?;
    (capacity >= PIPE_BYTES_MIN).then_some((reading, writing, capacity))
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// How long a kernel that waits for room in a socket is let wait when it is put to the test.
const WAIT: Duration = Duration::from_millis(50);

/// Whether the kernel can splice into a socket, and without waiting for room in it. One that waited, although the socket is not
/// to block, would stop a whole worker; sandboxes may have no splice at all. Such a kernel is found out here, in 150 ms;
/// any other at once.
pub fn can_splice() -> bool {
    // A scheduler may hold this thread back once, and so make a call look slow that was not.
    (0..3).any(|_| full_socket_refuses_at_once().unwrap_or(false))
}

fn full_socket_refuses_at_once() -> Result<bool, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, _peer) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(WAIT))?;
    // Ends when the socket is full; no socket buffer is as large as that.
    for _ in 0..4096 {
        if net::send(&socket, &[0; 1 << 16], SendFlags::NOSIGNAL).is_err() {
            break;
        }
    }
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    rustix::io::write(&writing, b"?")?;
    let begin = Instant::now();
    let spliced = splice(&reading, None, &socket, None, 1, FLAGS);
    Ok(spliced == Err(Errno::AGAIN) && begin.elapsed() < WAIT / 2)
}
