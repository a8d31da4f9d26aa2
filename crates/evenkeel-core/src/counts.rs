//! Where the in-flight counts are kept: beside each other, in blocks that outlive snapshots.
//!
//! Least connections and limits look at every count for each choice, and one cache line holds sixteen. (Threads that use
//! different endpoints then write to the same line. That is measured, and no worse than the lock that the ordered
//! algorithms share.) Two choices looks at two of them and has no lock: there each count has a line of its own. What the counts
//! mean, and their limits, are in `endpoint.rs`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::Balance;

/// Where the endpoints' in-flight counts are, without a detour over the endpoints themselves.
pub(crate) struct Counts {
    /// One per 64 endpoints after a start, or one for each ([`Seats::suiting`]); some more after reloads that added a few.
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
        let mut numbers = HashMap::new();
        for seat in seats {
            let number = numbers.entry(Arc::as_ptr(&seat.block));
            let block = *number.or_insert_with(|| {
                counts.blocks.push(Arc::clone(&seat.block));
                counts.blocks.len() - 1
            });
            counts.add(seat, block);
        }
        counts
    }

    fn add(&mut self, seat: &Seat, block: usize) {
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
pub(crate) struct Seats {
    block: Arc<CountBlock>,
    taken: usize,
    /// How many of a block are used: all of them, or one, which leaves it a cache line of its own.
    per_block: usize,
}

impl Seats {
    /// For new endpoints of a cluster that is balanced so. Those that are there already keep theirs, whatever a reload says: a seat
    /// in the other way only costs time.
    pub(crate) fn suiting(balance: &Balance) -> Self {
        let per_block = match balance {
            Balance::TwoChoices => 1,
            _ => CountBlock::SEATS,
        };
        Self {
            block: Arc::default(),
            taken: 0,
            per_block,
        }
    }

    pub(crate) fn take(&mut self) -> Seat {
        if self.taken == self.per_block {
            self.block = Arc::default();
            self.taken = 0;
        }
        let seat = Seat {
            block: Arc::clone(&self.block),
            index: self.taken,
        };
        self.taken += 1;
        seat
    }
}
