//! Where the in-flight counts are kept: beside each other, in blocks that outlive snapshots.
//!
//! Least connections and limits look at every count for each choice, and one cache line holds sixteen. (Threads that use
//! different endpoints then write to the same line. That is measured, and no worse than the lock that the ordered
//! algorithms share.) What the counts mean, and their limits, are in `endpoint.rs`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the endpoints' in-flight counts are, without a detour over the endpoints themselves.
pub(crate) struct Counts {
    /// One per 64 endpoints after a start; some more after reloads that added a few.
    blocks: Vec<Arc<CountBlock>>,
    /// Number of the block times its size, plus the index within it; by position.
    seats: Vec<u32>,
    /// The same again: stretches of positions whose counts lie beside each other.
    runs: Vec<Run>,
}

/// One block's counts from `first` on are those of `length` endpoints in a row.
struct Run {
    block: usize,
    first: usize,
    length: usize,
}

impl Counts {
    pub(crate) fn of<'a>(seats: impl Iterator<Item = &'a Seat>) -> Self {
        let mut counts = Self {
            blocks: Vec::new(),
            seats: Vec::new(),
            runs: Vec::new(),
        };
        seats.for_each(|seat| counts.add(seat));
        counts
    }

    fn add(&mut self, seat: &Seat) {
        let mut known = self.blocks.iter();
        let block = known.rposition(|block| Arc::ptr_eq(block, &seat.block));
        let block = block.unwrap_or_else(|| {
            self.blocks.push(Arc::clone(&seat.block));
            self.blocks.len() - 1
        });
        // No more blocks than endpoints, and no more of these than ClusterSpec::ENDPOINTS_MAX.
        let number = block * CountBlock::SEATS + seat.index;
        self.seats.push(u32::try_from(number).unwrap_or(u32::MAX));
        match self.runs.last_mut() {
            Some(run) if run.block == block && run.first + run.length == seat.index => {
                run.length += 1;
            }
            _ => self.runs.push(Run {
                block,
                first: seat.index,
                length: 1,
            }),
        }
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> u32 {
        let seat = self.seats[position] as usize;
        let block = &self.blocks[seat / CountBlock::SEATS];
        block.count(seat).load(Ordering::Relaxed)
    }

    /// Shows every position with its count and its share, which `shares` has by position, until told to stop.
    #[inline]
    pub(crate) fn visit(
        &self,
        shares: &[AtomicU32],
        mut visit: impl FnMut(usize, u32, u32) -> ControlFlow<()>,
    ) {
        let mut begin = 0;
        for run in &self.runs {
            let shares = &shares[begin..begin + run.length];
            let counts = self.blocks[run.block].counts(run.first, run.length);
            for (position, (share, count)) in (begin..).zip(shares.iter().zip(counts)) {
                let share = share.load(Ordering::Relaxed);
                if visit(position, count.load(Ordering::Relaxed), share).is_break() {
                    return;
                }
            }
            begin += run.length;
        }
    }
}

/// Where an endpoint's in-flight count is.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) block: Arc<CountBlock>,
    pub(crate) index: usize,
}

/// The counts of up to [`CountBlock::SEATS`] endpoints; it lives as long as the last of them.
pub(crate) struct CountBlock([AtomicU32; Self::SEATS]);

impl CountBlock {
    pub(crate) const SEATS: usize = 64;

    #[inline]
    pub(crate) fn count(&self, index: usize) -> &AtomicU32 {
        &self.0[index % Self::SEATS]
    }

    pub(crate) fn counts(&self, first: usize, length: usize) -> &[AtomicU32] {
        &self.0[first..first + length]
    }
}

impl Default for CountBlock {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; Self::SEATS])
    }
}

/// Hands out seats, block by block.
#[derive(Default)]
pub(crate) struct Seats {
    block: Arc<CountBlock>,
    taken: usize,
}

impl Seats {
    pub(crate) fn take(&mut self) -> Seat {
        if self.taken == CountBlock::SEATS {
            *self = Self::default();
        }
        let seat = Seat {
            block: Arc::clone(&self.block),
            index: self.taken,
        };
        self.taken += 1;
        seat
    }
}
