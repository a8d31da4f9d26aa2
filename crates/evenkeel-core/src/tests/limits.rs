//! `max_connections` and the wait queue.

use std::sync::Arc;

use parking_lot::Mutex;

use super::world::{Queue, World, at, cluster_spec, disabled, ejecting, endpoint, limited};
use crate::{
    Acquired, Balance, ClusterSpec, HashPolicy, Lease, Refusal, Request, Ticket, Tried, Waiter,
};

/// Two slots, two leases, and then none.
#[test]
fn a_full_endpoint_is_full() {
    let mut world = World::of(vec![limited("a", 1, 2)]);
    let _held = (world.lease(), world.lease());
    assert_eq!(world.refusal(), Refusal::Full);
    assert_eq!(world.status("a").in_flight, 2);
}

/// Skipping does not spoil the order of the others.
#[test]
fn round_robin_skips_a_full_endpoint() {
    let mut world = World::of(vec![limited("a", 1, 1), endpoint("b", 1), endpoint("c", 1)]);
    let _held = world.lease_on("a");
    assert_eq!(world.visited(4).matches('a').count(), 0);
}

/// A key whose owner is full goes to the substitute, and back.
#[test]
fn a_hash_pick_skips_a_full_endpoint() {
    let spec = ClusterSpec {
        balance: Balance::Hash(HashPolicy::default()),
        ..cluster_spec(vec![limited("a", 1, 1), limited("b", 1, 1)])
    };
    let mut world = World::new(spec);
    let owner = world.lease_for(42);
    let name = owner.name().to_string();
    assert_ne!(&**world.lease_for(42).name(), name);
    drop(owner);
    assert_eq!(&**world.lease_for(42).name(), name);
}

/// A freed slot is granted at once, first come, first served.
#[test]
fn waiters_are_served_in_order() {
    let mut world = World::of(vec![limited("a", 1, 1)]);
    let held = world.lease();
    let queue = Queue::new();
    let _tickets: Vec<_> = (1..=3).map(|token| world.wait(&queue, token)).collect();
    assert_eq!(world.cluster.status(world.now).waiting, 3);
    drop(held);
    let (token, lease) = queue.take().pop().unwrap();
    assert_eq!(token, 1);
    drop(lease);
    assert_eq!(queue.take_tokens(), [2]);
    assert_eq!(queue.take_tokens(), [3]);
    assert_eq!(world.cluster.status(world.now).waiting, 0);
}

/// A bounded queue says so.
#[test]
fn a_full_queue_refuses() {
    let mut world = World::new(ClusterSpec {
        queue_max: 1,
        ..cluster_spec(vec![limited("a", 1, 1)])
    });
    let _held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    let acquired = world.acquire(&queue.request(2, &Tried::default()));
    assert!(matches!(acquired, Acquired::Refused(Refusal::QueueFull)));
}

/// Nobody overtakes, also not one who does not want to wait.
#[test]
fn a_new_session_does_not_overtake() {
    let mut world = World::of(vec![limited("a", 1, 1)]);
    let held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    drop(held);
    assert_eq!(world.refusal(), Refusal::Full);
    assert_eq!(queue.take_tokens(), [1]);
}

/// Whoever leaves is not served, and the next one is.
#[test]
fn a_dropped_ticket_leaves_the_queue() {
    let mut world = World::of(vec![limited("a", 1, 1)]);
    let held = world.lease();
    let queue = Queue::new();
    let first = world.wait(&queue, 1);
    let _second = world.wait(&queue, 2);
    drop(first);
    drop(held);
    assert_eq!(queue.take_tokens(), [2]);
}

/// A retry that waits for b does not hold up those behind it who can use a.
#[test]
fn a_retrying_session_at_the_head_does_not_block_the_line() {
    let mut world = World::of(vec![limited("a", 1, 1), limited("b", 1, 1)]);
    let (a, _b) = (world.lease_on("a"), world.lease_on("b"));
    let mut has_tried_a = Tried::default();
    has_tried_a.push(a.endpoint());
    let queue = Queue::new();
    let _first = world.wait_having_tried(&queue, 1, &has_tried_a);
    let _second = world.wait(&queue, 2);
    drop(a);
    assert_eq!(queue.take_tokens(), [2]);
}

/// Fault #25: nobody sits in the queue while a slot is free, whatever has made it free.
#[test]
fn whatever_makes_room_serves_the_waiters() {
    let full = || {
        let spec = ClusterSpec {
            ejection: ejecting(1, 50),
            ..cluster_spec(vec![limited("a", 1, 1), limited("b", 1, 1)])
        };
        let mut world = World::new(spec);
        let held = (world.lease(), world.lease());
        let queue = Queue::new();
        let ticket = world.wait(&queue, 1);
        (world, held, queue, ticket)
    };

    let (world, _held, queue, _ticket) = full();
    let raised = vec![limited("a", 1, 2), limited("b", 1, 1)];
    world.cluster.reconfigure(cluster_spec(raised), world.now);
    assert_eq!(queue.take_tokens(), [1], "a raised limit");

    let (world, _held, queue, _ticket) = full();
    let added = vec![limited("a", 1, 1), limited("b", 1, 1), endpoint("c", 1)];
    world.cluster.reconfigure(cluster_spec(added), world.now);
    assert_eq!(queue.take_tokens(), [1], "an added endpoint");

    let (mut world, (a, _b), queue, _ticket) = full();
    world.fail(a);
    assert!(
        queue.take().is_empty(),
        "the endpoint was ejected, the other is full"
    );
    world.wait_until(10.0);
    world.wait_until(11.0);
    assert_eq!(queue.take_tokens(), [1], "an ended ejection, by a trial");
}

/// Those who wait when the last endpoint goes keep waiting: it may return before their time is over.
#[test]
fn waiters_keep_waiting_while_nobody_is_usable() {
    let mut world = World::of(vec![limited("a", 1, 1)]);
    let held = world.lease();
    let queue = Queue::new();
    let _ticket = world.wait(&queue, 1);
    world
        .cluster
        .reconfigure(cluster_spec(vec![disabled("a")]), world.now);
    drop(held);
    world.wait_until(1.0);
    assert!(queue.take().is_empty());
    world
        .cluster
        .reconfigure(cluster_spec(vec![limited("a", 1, 1)]), world.now);
    assert_eq!(queue.take_tokens(), [1]);
}

/// A limit lowered below what runs: nothing is cut, nothing is added until it fits.
#[test]
fn a_lowered_limit_lets_sessions_finish() {
    let mut world = World::of(vec![limited("a", 1, 3)]);
    let mut held = vec![world.lease(), world.lease(), world.lease()];
    world
        .cluster
        .reconfigure(cluster_spec(vec![limited("a", 1, 1)]), world.now);
    held.pop();
    held.pop();
    assert_eq!(world.refusal(), Refusal::Full);
    held.pop();
    assert_eq!(&**world.lease().name(), "a");
}

/// A thousand waiters who have all left hand one slot through, without recursion.
#[test]
fn a_slot_passes_through_waiters_that_have_left() {
    struct Gone(Mutex<Vec<u64>>);
    impl Waiter for Gone {
        fn grant(&self, token: u64, lease: Lease) {
            self.0.lock().push(token);
            drop(lease);
        }
    }
    let spec = ClusterSpec {
        queue_max: 100_000,
        ..cluster_spec(vec![limited("a", 1, 1)])
    };
    let mut world = World::new(spec);
    let held = world.lease();
    let gone = Arc::new(Gone(Mutex::default()));
    let waiter: Arc<dyn Waiter> = Arc::<Gone>::clone(&gone);
    let tried = Tried::default();
    let _tickets: Vec<Ticket> = (0..100_000)
        .map(|token| {
            let request = Request {
                key: None,
                tried: &tried,
                waiter: Some((&waiter, token)),
            };
            match world.acquire(&request) {
                Acquired::Wait(ticket) => ticket,
                Acquired::Lease(_) | Acquired::Refused(_) => panic!("it is full"),
            }
        })
        .collect();
    drop(held);
    assert_eq!(*gone.0.lock(), (0..100_000).collect::<Vec<u64>>());
    assert_eq!(world.status("a").in_flight, 0);
}

/// A waiter's own key decides where it goes.
#[test]
fn a_granted_waiter_goes_where_its_key_belongs() {
    let spec = ClusterSpec {
        balance: Balance::Hash(HashPolicy::default()),
        ..cluster_spec(vec![limited("a", 1, 1), limited("b", 1, 1)])
    };
    let mut world = World::new(spec);
    let owner = world.lease_for(42).name().to_string();
    let both = (world.lease_on("a"), world.lease_on("b"));
    let queue = Queue::new();
    let tried = Tried::default();
    let request = Request {
        key: Some(crate::units::HashKey(42)),
        ..queue.request(1, &tried)
    };
    let Acquired::Wait(_ticket) = world.acquire(&request) else {
        panic!("it is full");
    };
    world.now = at(1.0);
    let (first, second) = if owner == "a" { both } else { (both.1, both.0) };
    drop(first);
    drop(second);
    assert_eq!(&**queue.take().pop().unwrap().1.name(), owner);
}

/// Two threads hold a session each, counted apart; a limit of three that a reload brings has room for one more.
#[test]
fn a_new_limit_counts_the_sessions_of_all_threads() {
    let mut world = World::of(vec![endpoint("a", 1)]);
    let here = world.lease();
    let (there, mut world) = std::thread::spawn(move || (world.lease(), world))
        .join()
        .unwrap();
    let limited = cluster_spec(vec![limited("a", 1, 3)]);
    world.cluster.reconfigure(limited, world.now);
    assert_eq!(world.status("a").in_flight, 2);
    let _third = world.lease();
    assert_eq!(world.refusal(), Refusal::Full);
    drop((here, there));
    assert_eq!(world.status("a").in_flight, 1);
}
