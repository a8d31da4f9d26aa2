//! The time of a worker, and one coarse timer for each connection.
//!
//! The clock is read once per turn of the loop. Timers sit in a hashed wheel: arming, moving and disarming cost a few
//! stores, and memory is one entry per connection, whatever the deadlines. A timer is meant to be armed lazily: a
//! deadline that only ever moves later (idle time) needs no operation, because its owner looks again when the timer fires.
//! What a timer means is its owner's business.

use std::time::{Duration, Instant};

use crate::slots::Key;

/// The wheel's resolution: a timer fires up to one tick late, never early.
pub const TICK: Duration = Duration::from_micros(TICK_MICROS);

const TICK_MICROS: u64 = 8000;

/// Buckets of the wheel: one revolution is about 66 s. A later deadline is looked at once per revolution.
const BUCKETS: usize = 8192;
const WORD_BITS: usize = u64::BITS as usize;
/// No entry: the end of a bucket's list.
const NONE: u32 = u32::MAX;

/// A moment, in microseconds since the origin of the process's [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The moment `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment `later` after this one; the last one there is on overflow.
    pub fn after(self, later: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(later.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

/// Tells moments since one origin. Copies tell the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is this moment.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The time.
    pub fn now(&self) -> Moment {
        Moment(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy)]
struct Entry {
    key: Option<Key>,
    tick: u64,
    next: u32,
    previous: u32,
}

const IDLE: Entry = Entry {
    key: None,
    tick: 0,
    next: NONE,
    previous: NONE,
};

/// One timer per connection, found by the connection's place.
pub(crate) struct Wheel {
    entries: Vec<Entry>,
    heads: Box<[u32]>,
    /// A bit per bucket that is not empty.
    occupied: [u64; BUCKETS / WORD_BITS],
    /// The first tick not yet looked at.
    next_tick: u64,
}

impl Wheel {
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            entries: Vec::new(),
            heads: vec![NONE; BUCKETS].into_boxed_slice(),
            occupied: [0; BUCKETS / WORD_BITS],
            next_tick: tick_before(now),
        }
    }

    /// Sets the connection's timer, wherever it stood before.
    pub(crate) fn arm(&mut self, key: Key, at: Moment) {
        let index = key.index();
        if index >= self.entries.len() {
            self.entries.resize(index + 1, IDLE);
        }
        self.disarm(index);
        let tick = tick_after(at).max(self.next_tick);
        self.link(index, key, tick);
    }

    /// Clears the timer of the connection in that place.
    pub(crate) fn disarm(&mut self, index: usize) {
        let Some(&Entry {
            key: Some(_),
            tick,
            next,
            previous,
        }) = self.entries.get(index)
        else {
            return;
        };
        let bucket = bucket_of(tick);
        match previous {
            NONE => self.heads[bucket] = next,
            previous => self.entries[previous as usize].next = next,
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if self.heads[bucket] == NONE {
            self.occupied[bucket / WORD_BITS] &= !(1 << (bucket % WORD_BITS));
        }
        self.entries[index] = IDLE;
    }

    /// Disarms every timer whose moment has come and puts its key into `due`.
    pub(crate) fn expire(&mut self, now: Moment, due: &mut Vec<Key>) {
        let last = tick_before(now);
        // After a long pause one revolution has looked at every bucket.
        let first = self
            .next_tick
            .max((last + 1).saturating_sub(BUCKETS as u64));
        for tick in first..=last {
            self.expire_bucket(bucket_of(tick), last, due);
        }
        self.next_tick = self.next_tick.max(last + 1);
    }

    /// How long the worker may sleep: until the next bucket that is not empty; `None` if no timer is armed.
    pub(crate) fn patience(&self, now: Moment) -> Option<Duration> {
        let ticks = self.ticks_to_next_occupied()?;
        let at = (self.next_tick + ticks).saturating_mul(TICK_MICROS);
        Some(Duration::from_micros(at.saturating_sub(now.0)))
    }

    fn link(&mut self, index: usize, key: Key, tick: u64) {
        let bucket = bucket_of(tick);
        let next = self.heads[bucket];
        #[expect(clippy::cast_possible_truncation, reason = "a place has 30 bits")]
        let place = index as u32;
        if next != NONE {
            self.entries[next as usize].previous = place;
        }
        self.entries[index] = Entry {
            key: Some(key),
            tick,
            next,
            previous: NONE,
        };
        self.heads[bucket] = place;
        self.occupied[bucket / WORD_BITS] |= 1 << (bucket % WORD_BITS);
    }

    fn expire_bucket(&mut self, bucket: usize, last: u64, due: &mut Vec<Key>) {
        let mut index = self.heads[bucket];
        while index != NONE {
            let Entry {
                key, tick, next, ..
            } = self.entries[index as usize];
            if tick <= last {
                self.disarm(index as usize);
                due.extend(key);
            }
            index = next;
        }
    }

    fn ticks_to_next_occupied(&self) -> Option<u64> {
        let start = bucket_of(self.next_tick);
        let words = self.occupied.len();
        let first = self.occupied[start / WORD_BITS] >> (start % WORD_BITS);
        if first != 0 {
            return Some(u64::from(first.trailing_zeros()));
        }
        // The word of the start comes once more at the end, for its bits before the start.
        (1..=words).find_map(|step| {
            let word = (start / WORD_BITS + step) % words;
            let bits = self.occupied[word];
            let bucket = word * WORD_BITS + bits.trailing_zeros() as usize;
            (bits != 0).then(|| ((bucket + BUCKETS - start) % BUCKETS) as u64)
        })
    }
}

const fn tick_before(moment: Moment) -> u64 {
    moment.0 / TICK_MICROS
}

const fn tick_after(moment: Moment) -> u64 {
    moment.0.div_ceil(TICK_MICROS)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the remainder is below BUCKETS"
)]
const fn bucket_of(tick: u64) -> usize {
    (tick % BUCKETS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u64) -> Key {
        Key::from_u64(index << Key::GENERATION_BITS)
    }

    fn fired(wheel: &mut Wheel, at: Duration) -> Vec<Key> {
        let mut due = Vec::new();
        wheel.expire(Moment(0).after(at), &mut due);
        due
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A timer fires at its moment and not before, whether or not that is within one revolution of the wheel.
    #[test]
    fn a_timer_fires_once_and_never_early() {
        for delay in [0, 1, 60, 3600] {
            let mut wheel = Wheel::new(Moment(0));
            wheel.arm(key(3), Moment(0).after(seconds(delay)));

            if delay > 0 {
                assert_eq!(fired(&mut wheel, seconds(delay) - TICK), []);
            }
            assert_eq!(fired(&mut wheel, seconds(delay)), [key(3)]);
            assert_eq!(fired(&mut wheel, seconds(delay) + seconds(100)), []);
        }
    }

    /// Arming again moves the timer, and a place that was freed has none.
    #[test]
    fn a_timer_can_be_moved_and_disarmed() {
        let mut wheel = Wheel::new(Moment(0));
        wheel.arm(key(0), Moment(0).after(seconds(9)));
        wheel.arm(key(1), Moment(0).after(seconds(9)));
        wheel.arm(key(0), Moment(0).after(seconds(2)));
        wheel.disarm(1);

        assert_eq!(fired(&mut wheel, seconds(3)), [key(0)]);
        assert_eq!(fired(&mut wheel, seconds(10)), []);
        assert_eq!(wheel.patience(Moment(0)), None);
    }

    /// The worker may sleep until the next timer, and not a moment longer than a tick.
    #[test]
    fn patience_ends_with_the_next_timer() {
        let mut wheel = Wheel::new(Moment(0));
        for delay in [seconds(40), seconds(5), seconds(20)] {
            wheel.arm(key(delay.as_secs()), Moment(0).after(delay));
        }
        assert_eq!(wheel.patience(Moment(0)), Some(seconds(5)));
        assert_eq!(fired(&mut wheel, seconds(5)), [key(5)]);
        assert_eq!(
            wheel.patience(Moment(0).after(seconds(5))),
            Some(seconds(15))
        );
    }

    /// Against a plain list: whatever is armed, moved and disarmed, exactly what is due fires.
    #[test]
    fn the_wheel_agrees_with_a_plain_list() {
        let seed = 7;
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut wheel = Wheel::new(Moment(0));
        let mut model = vec![None; 64];
        let mut now = Moment(0);
        for _ in 0..20_000 {
            let index = random.usize(0..model.len());
            match random.u8(0..10) {
                0 => {
                    wheel.disarm(index);
                    model[index] = None;
                }
                1..=5 => {
                    let at = now.after(Duration::from_millis(random.u64(0..200_000)));
                    wheel.arm(key(index as u64), at);
                    model[index] = Some(at);
                }
                _ => {
                    now = now.after(Duration::from_millis(random.u64(0..3000)));
                    let mut due = Vec::new();
                    wheel.expire(now, &mut due);
                    for key in due {
                        let at = model[key.index()]
                            .take()
                            .expect("only an armed timer fires");
                        assert!(at <= now);
                    }
                    let late = model.iter().flatten().find(|at| at.after(TICK) < now);
                    assert_eq!(late, None);
                }
            }
        }
    }
}
