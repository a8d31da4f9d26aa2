//! What must hold when many threads choose at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use fastrand::Rng;
use parking_lot::Mutex;

use super::world::{World, cluster_spec, endpoint, limited};
use crate::units::{HashKey, Time};
use crate::{Acquired, Balance, ClusterSpec, HashPolicy, Lease, Outcome, Request, Tried, Waiter};

const THREADS: usize = 8;

/// Fault #17: with as many threads as you like, 30 sessions over two equal endpoints are 15 and 15.
#[test]
fn round_robin_is_exact_over_all_threads() {
    for (balance, threads) in [(Balance::RoundRobin, 6), (Balance::LeastConnections, 5)] {
        let endpoints = vec![endpoint("a", 1), endpoint("b", 1)];
        let world = World::new(ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        });
        let held = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (world, held) = (&world, &held);
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(thread);
                    for _ in 0..30 / threads {
                        let request = Request {
                            key: None,
                            tried: &Tried::default(),
                            waiter: None,
                        };
                        let acquired = world.cluster.acquire(&request, Time::ZERO, &mut rng);
                        held.lock().push(acquired);
                    }
                });
            }
        });
        assert_eq!(world.status("a").in_flight, 15, "{balance:?}");
        assert_eq!(world.status("b").in_flight, 15, "{balance:?}");
    }
}

/// The limits are exact: no thread ever sees one more lease than there are slots.
#[test]
fn limits_are_never_passed() {
    let hash = Balance::Hash(HashPolicy::default());
    for balance in [
        Balance::RoundRobin,
        Balance::Random,
        Balance::TwoChoices,
        Balance::LeastConnections,
        hash,
    ] {
        let endpoints = vec![limited("a", 1, 2), limited("b", 3, 1)];
        let world = World::new(ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        });
        let holders: HashMap<&str, (AtomicUsize, usize)> = HashMap::from([
            ("a", (AtomicUsize::new(0), 2)),
            ("b", (AtomicUsize::new(0), 1)),
        ]);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (world, holders) = (&world, &holders);
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(thread as u64);
                    for _ in 0..2_000 {
                        let key = Some(HashKey(rng.u64(..)));
                        let request = Request {
                            key,
                            tried: &Tried::default(),
                            waiter: None,
                        };
                        let acquired = world.cluster.acquire(&request, Time::ZERO, &mut rng);
                        if let Acquired::Lease(lease) = acquired {
                            let (held, max) = &holders[&**lease.name()];
                            assert!(held.fetch_add(1, Ordering::SeqCst) < *max);
                            held.fetch_sub(1, Ordering::SeqCst);
                            lease.finish(Outcome::Completed, Time::ZERO);
                        }
                    }
                });
            }
        });
        assert_eq!(
            (world.status("a").in_flight, world.status("b").in_flight),
            (0, 0),
            "{balance:?}"
        );
    }
}

/// A worker that sleeps until it is granted a slot.
struct Sleeper(Mutex<Sender<Lease>>);

impl Waiter for Sleeper {
    fn grant(&self, _token: u64, lease: Lease) {
        // Nobody listens any more: the slot passes on with the lease that comes back.
        drop(self.0.lock().send(lease));
    }
}

/// No wake-up is lost: every thread sleeps until it is served, and if one wake-up went missing the test would not end.
#[test]
fn every_waiter_is_woken() {
    for balance in [Balance::RoundRobin, Balance::Random] {
        let endpoints = vec![limited("a", 1, 1), limited("b", 1, 1)];
        let world = World::new(ClusterSpec {
            balance,
            ..cluster_spec(endpoints)
        });
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let world = &world;
                scope.spawn(move || serve_many(world, thread as u64, 2_000));
            }
        });
        let status = world.cluster.status(Time::ZERO);
        assert_eq!(status.waiting, 0);
        assert!(
            status
                .endpoints
                .iter()
                .all(|endpoint| endpoint.in_flight == 0)
        );
        assert_eq!(
            status
                .endpoints
                .iter()
                .map(|endpoint| endpoint.leases)
                .sum::<u64>(),
            THREADS as u64 * 2_000
        );
    }
}

fn serve_many(world: &World, seed: u64, sessions: usize) {
    let mut rng = Rng::with_seed(seed);
    let (sender, granted) = channel();
    let waiter: Arc<dyn Waiter> = Arc::new(Sleeper(Mutex::new(sender)));
    for token in 0..sessions {
        let request = Request {
            key: None,
            tried: &Tried::default(),
            waiter: Some((&waiter, token as u64)),
        };
        let (lease, _ticket) = match world.cluster.acquire(&request, Time::ZERO, &mut rng) {
            Acquired::Lease(lease) => (lease, None),
            Acquired::Wait(ticket) => (granted.recv().unwrap(), Some(ticket)),
            Acquired::Refused(refusal) => panic!("{refusal:?}"),
        };
        lease.finish(Outcome::Completed, Time::ZERO);
    }
}

/// Reloads while everybody chooses, fails and recovers, one of which brings a limit: at the end every count is 0.
#[test]
fn reloads_under_load_lose_no_count() {
    let spec = |weight| {
        let a = match weight {
            0..50 => endpoint("a", weight),
            _ => limited("a", weight, 3),
        };
        cluster_spec(vec![a, endpoint("b", 2), endpoint("c", 1)])
    };
    let world = World::new(spec(1));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || {
                let mut rng = Rng::with_seed(thread as u64);
                for round in 0..2_000 {
                    let request = Request {
                        key: None,
                        tried: &Tried::default(),
                        waiter: None,
                    };
                    let now = Time::from_micros(round * 1_000);
                    if let Acquired::Lease(mut lease) =
                        world.cluster.acquire(&request, now, &mut rng)
                    {
                        if rng.bool() {
                            lease.established(now);
                            lease.finish(Outcome::Completed, now);
                        } else {
                            world.fail(lease);
                        }
                    }
                }
            });
        }
        for weight in 1..100 {
            world
                .cluster
                .reconfigure(spec(weight), Time::from_micros(u64::from(weight) * 10_000));
            world
                .cluster
                .tick(Time::from_micros(u64::from(weight) * 10_000));
        }
    });
    let status = world.cluster.status(Time::ZERO);
    assert!(
        status
            .endpoints
            .iter()
            .all(|endpoint| endpoint.in_flight == 0)
    );
}
