//! Waiting for the lock of a common order without getting in its owner's way.
//!
//! A turn takes some 50 ns as long as the lock, the credits and the counts stay in one processor's cache, and several times as
//! long when they are fetched from another's. Threads that ask for the lock again and again fetch them at every turn. So one
//! that finds it taken looks away for a while, in which the owner takes many turns, and then asks once more (exponential
//! backoff: T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", 1990).
//!
//! What the lock protects is as exact as before. What is given up is who comes first among threads that ask at the same moment.
//! Nobody looks away for ever: after [`ROUNDS`] a thread stands in the lock's own queue.

use std::hint;

use parking_lot::{Mutex, MutexGuard};

/// How often a thread looks away.
const ROUNDS: u32 = 8;

/// Pauses in the first look away, and in the longest. On the processor of `docs/decisions/0002-balancing.md` a pause takes
/// 24 ns, so that these are 5 and 18 µs; others take from 5 to 70 ns for it.
const PAUSES_MIN: u32 = 192;
const PAUSES_MAX: u32 = 768;

/// Locks the common order.
#[inline]
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Some(guard) => guard,
        None => lock_later(mutex),
    }
}

#[cold]
fn lock_later<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let mut pauses = PAUSES_MIN;
    for _ in 0..ROUNDS {
        for _ in 0..pauses {
            hint::spin_loop();
        }
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
        pauses = (pauses * 2).min(PAUSES_MAX);
    }
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// However many threads ask at once, each has all of its turns, and none is counted twice.
    #[test]
    fn each_of_eight_threads_has_its_turns() {
        const THREADS: u64 = 8;
        const TURNS: u64 = 2_000;
        let (turns, start) = (Mutex::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    (0..TURNS).for_each(|_| *lock(&turns) += 1);
                });
            }
        });
        assert_eq!(turns.into_inner(), THREADS * TURNS);
    }

    /// A thread that has looked away often enough waits where the owner wakes it.
    #[test]
    fn a_lock_that_is_held_for_long_is_waited_for() {
        let (mutex, start) = (Mutex::new("owner"), Barrier::new(2));
        let guard = mutex.lock();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                start.wait();
                *lock(&mutex)
            });
            start.wait();
            // Far longer than all looks away together.
            (0..1_000_000).for_each(|_| hint::spin_loop());
            drop(guard);
            assert_eq!(waiting.join().unwrap(), "owner");
        });
    }
}
