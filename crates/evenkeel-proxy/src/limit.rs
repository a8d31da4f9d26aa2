//! A limit on how many there may be at one time, exact over all workers, and who is told when there is a place again.
//!
//! A place is taken before the connection is accepted, so the limit is never passed, not for a moment. A worker that got none
//! leaves word, and each place that becomes free wakes one of those; it tries, and if nobody waits in its backlog it passes the
//! place on. What can be lost in a race is a wake, never a place: resting listeners look again by themselves after a while.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// How one who waits for a place is told.
pub(crate) trait Bell: Clone + PartialEq {
    /// Says that there may be a place; whether it was heard.
    fn ring(&self) -> bool;
}

/// See the module's documentation. There are no more bells than workers.
pub(crate) struct Limit<B> {
    max: AtomicU64,
    taken: AtomicU64,
    /// The length of `bells`, to be read without its lock.
    waiting: AtomicUsize,
    bells: Mutex<VecDeque<B>>,
}

impl<B: Bell> Limit<B> {
    /// Nothing is taken yet.
    pub(crate) const fn new(max: u64) -> Self {
        Self {
            max: AtomicU64::new(max),
            taken: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            bells: Mutex::new(VecDeque::new()),
        }
    }

    /// Another limit from now on. Where more are taken than it allows, none is given out until enough are back.
    pub(crate) fn set_max(&self, max: u64) {
        self.max.store(max, Ordering::SeqCst);
        while self.ring_one() {}
    }

    pub(crate) fn max(&self) -> u64 {
        self.max.load(Ordering::SeqCst)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes a place; where there is none, `bell` is rung once when there may be one.
    ///
    /// The order matters: first one waits, then one looks again. Whoever gives a place back does the reverse, both
    /// sequentially consistent, so that at least one of the two sees the other.
    pub(crate) fn take(&self, bell: &B) -> bool {
        if self.try_take() {
            return true;
        }
        self.wait(bell);
        let taken = self.try_take();
        if taken {
            self.wait_no_more(bell);
        }
        taken
    }

    /// Takes a place whether there is one or not.
    pub(crate) fn take_beyond(&self) {
        self.taken.fetch_add(1, Ordering::SeqCst);
    }

    /// Gives a place back without a word: for one that could not be used for want of something else. To ring for it would have
    /// workers wake each other in a circle.
    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives a place back to whoever waits first.
    pub(crate) fn pass_on(&self) {
        self.give_back();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ring_one();
        }
    }

    fn try_take(&self) -> bool {
        let max = self.max();
        let more = |taken| (taken < max).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, more)
            .is_ok()
    }

    fn wait(&self, bell: &B) {
        let mut bells = self.bells.lock();
        if !bells.contains(bell) {
            bells.push_back(bell.clone());
            self.waiting.store(bells.len(), Ordering::SeqCst);
        }
    }

    fn wait_no_more(&self, bell: &B) {
        let mut bells = self.bells.lock();
        bells.retain(|other| other != bell);
        self.waiting.store(bells.len(), Ordering::SeqCst);
    }

    /// Rings for the first who still hears it; whether there was one.
    fn ring_one(&self) -> bool {
        while let Some(bell) = self.next_bell() {
            if bell.ring() {
                return true;
            }
        }
        false
    }

    /// The lock is not held while it is rung.
    fn next_bell(&self) -> Option<B> {
        let mut bells = self.bells.lock();
        let bell = bells.pop_front();
        self.waiting.store(bells.len(), Ordering::SeqCst);
        bell
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A worker by its name, and who was rung for, in order. `gone` hears nothing.
    #[derive(Clone)]
    struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl PartialEq for Named {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Bell for Named {
        fn ring(&self) -> bool {
            self.1.lock().push(self.0);
            self.0 != "gone"
        }
    }

    struct World {
        limit: Limit<Named>,
        rung: Arc<Mutex<Vec<&'static str>>>,
    }

    impl World {
        fn of(max: u64) -> Self {
            Self {
                limit: Limit::new(max),
                rung: Arc::default(),
            }
        }

        fn take(&self, name: &'static str) -> bool {
            self.limit.take(&Named(name, Arc::clone(&self.rung)))
        }

        fn rung(&self) -> Vec<&'static str> {
            self.rung.lock().clone()
        }
    }

    /// Whoever came in vain first is the first to be told, once for each place.
    #[test]
    fn a_place_that_comes_back_is_told_to_one() {
        let world = World::of(1);
        assert!(world.take("a"));
        assert!(!world.take("b"));
        assert!(!world.take("c"));
        assert!(!world.take("b"));

        world.limit.pass_on();
        assert_eq!(world.rung(), ["b"]);
        assert!(world.take("b"));
        world.limit.pass_on();
        assert_eq!(world.rung(), ["b", "c"]);
    }

    /// Who has ended hears nothing, and keeps nobody else from hearing.
    #[test]
    fn a_worker_that_has_gone_is_passed_over() {
        let world = World::of(1);
        assert!(world.take("a"));
        assert!(!world.take("gone"));
        assert!(!world.take("c"));

        world.limit.pass_on();

        assert_eq!(world.rung(), ["gone", "c"]);
    }

    /// A place that was of no use wakes nobody.
    #[test]
    fn what_is_given_back_is_not_told() {
        let world = World::of(1);
        assert!(world.take("a"));
        assert!(!world.take("b"));

        world.limit.give_back();

        assert_eq!(world.rung(), [""; 0]);
        assert!(world.take("c"));
    }

    /// A reload that raises the limit wakes all who wait; one that lowers it takes nothing away.
    #[test]
    fn a_limit_may_change() {
        let world = World::of(1);
        assert!(world.take("a"));
        assert!(!world.take("b"));
        assert!(!world.take("c"));

        world.limit.set_max(3);
        assert_eq!(world.rung(), ["b", "c"]);
        assert!(world.take("b") && world.take("c"));

        world.limit.set_max(1);
        world.limit.pass_on();
        assert!(!world.take("d"));
        assert_eq!(world.limit.taken(), 2);
    }

    /// However many threads take and give back at once, there are never more than the limit.
    #[test]
    fn the_limit_holds_over_threads() {
        const THREADS: usize = 4;
        let (limit, inside) = (Limit::new(2), AtomicUsize::new(0));
        let rung = Arc::default();
        let bell = Named("thread", rung);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if limit.try_take() {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            limit.give_back();
                        }
                    }
                });
            }
        });
        assert_eq!(limit.taken(), 0);
        assert!(limit.take(&bell));
    }
}
