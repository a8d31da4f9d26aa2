//! One direction in bulk: through pipes, and back. Nothing is lost or repeated at any change of ways, and no pipe is left behind.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::support::{PATIENCE, Pair, buffer, gear, pipes};
use crate::pipe::{PipeBudget, Pipes};
use crate::{
    BYTES_PER_TURN_MAX, FULL_READS_TO_SPLICE, Fault, Flow, Gear, PIPE_BYTES_MAX, Pump,
    READ_BUFFER_BYTES, Splice, SpliceCounts, can_splice,
};

/// A relay in one direction; the test plays both peers.
struct Relay {
    source: Pair,
    sink: Pair,
    pump: Pump,
    gear: Gear,
    budget: Arc<PipeBudget>,
    counts: Arc<SpliceCounts>,
    sent: Numbered,
    arrived: Numbered,
}

/// A stream with a period that divides no buffer: what is lost, repeated or swapped is seen.
struct Numbered {
    /// One period, and as much again as any piece is long.
    pattern: Vec<u8>,
    place: u64,
    /// `place` within the period.
    phase: usize,
}

/// A prime.
const PERIOD: usize = 65_521;
/// The longest piece that is made or checked.
const PIECE_MAX: usize = 8 << 20;

impl Default for Numbered {
    fn default() -> Self {
        let mut random = fastrand::Rng::with_seed(1);
        let period: Vec<u8> = (0..PERIOD).map(|_| random.u8(..)).collect();
        let repeated = period.iter().copied().cycle();
        Self {
            pattern: repeated.take(PERIOD + PIECE_MAX).collect(),
            place: 0,
            phase: 0,
        }
    }
}

impl Numbered {
    fn peek(&self, count: usize) -> &[u8] {
        &self.pattern[self.phase..self.phase + count]
    }

    fn advance(&mut self, count: usize) {
        self.place += count as u64;
        self.phase = (self.phase + count) % PERIOD;
    }

    fn check(&mut self, bytes: &[u8]) {
        assert!(
            bytes == self.peek(bytes.len()),
            "what arrives is what was sent"
        );
        self.advance(bytes.len());
    }
}

impl Relay {
    fn with_pipes(most: usize) -> Self {
        Self::with(PipeBudget::new(most), Pipes::new, 0)
    }

    fn with(
        budget: Arc<PipeBudget>,
        pipes: impl FnOnce(Arc<PipeBudget>) -> Pipes,
        replay_max: usize,
    ) -> Self {
        let pipes = pipes(Arc::clone(&budget));
        let relay = Self {
            source: Pair::connected(),
            sink: Pair::connected(),
            pump: Pump::new(replay_max, Splice::Auto),
            counts: pipes.counts(),
            gear: gear(pipes),
            budget,
            sent: Numbered::default(),
            arrived: Numbered::default(),
        };
        relay.source.peer.set_nonblocking(true).unwrap();
        relay.sink.peer.set_nonblocking(true).unwrap();
        relay
    }

    /// The source's peer writes up to so many bytes, as far as there is room.
    fn write(&mut self, count: usize) {
        let (bytes, mut written) = (self.sent.peek(count), 0);
        while written < count {
            match self.source.peer.write(&bytes[written..]) {
                Ok(more) => written += more,
                Err(_) => break,
            }
        }
        self.sent.advance(written);
    }

    /// The sink's peer reads up to so many bytes.
    fn read(&mut self, most: usize) -> usize {
        let (mut block, mut count) = (buffer(), 0);
        while count < most {
            let room = block.len().min(most - count);
            match self.sink.peer.read(&mut block[..room]) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => {
                    self.arrived.check(&block[..bytes]);
                    count += bytes;
                }
            }
        }
        count
    }

    fn run(&mut self) -> Flow {
        self.source.note_now();
        self.sink.note_now();
        let flow = self.pump.run(
            &mut self.source.stream,
            &mut self.sink.stream,
            &mut self.gear,
        );
        assert!(
            flow != Flow::Yielding
                || self.source.stream.is_readable() && self.sink.stream.is_writable(),
            "a pump that can do nothing does not ask for another turn"
        );
        flow
    }

    /// Runs, the sink's peer reading, until all that was sent has arrived.
    fn settle(&mut self) {
        let begin = Instant::now();
        while self.arrived.place < self.sent.place {
            self.run();
            self.read(usize::MAX);
            assert!(begin.elapsed() < PATIENCE, "all that was sent arrives");
        }
        // Once more, for it has not yet seen that there is nothing left.
        self.run();
    }

    /// Runs, the sink's peer reading, until the pump is over.
    fn finish(&mut self) -> Flow {
        let begin = Instant::now();
        loop {
            let flow = self.run();
            self.read(usize::MAX);
            if !matches!(flow, Flow::Waiting | Flow::Yielding) {
                return flow;
            }
            assert!(begin.elapsed() < PATIENCE, "the end arrives");
        }
    }

    /// Moves in bulk until it is spliced.
    fn get_going(&mut self) {
        while self.counts.bytes() == 0 {
            self.write(READ_BUFFER_BYTES * (FULL_READS_TO_SPLICE as usize + 1));
            self.settle();
        }
    }

    /// Moves in bulk, nobody reading, until nothing more goes: the pump holds something that it cannot write.
    fn stall(&mut self) {
        while self.sink.stream.is_writable() || self.pump.is_drained() {
            self.write(PIPE_BYTES_MAX);
            self.run();
        }
    }
}

fn reset(peer: &TcpStream) {
    sockopt::set_socket_linger(peer, Some(Duration::ZERO)).unwrap();
}

/// Random sizes, pauses and a reader that is now fast, now slow: the pump changes between its ways many times.
#[test]
fn nothing_is_lost_at_a_change_of_ways() {
    for (seed, replay_max) in (0..).zip([0, 5000, 300_000, 0, 100, 1 << 20]) {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut relay = Relay::with(PipeBudget::new(2), Pipes::new, replay_max);
        for _ in 0..600 {
            match random.u8(0..4) {
                0 => relay.write(random.usize(1..300)),
                1 => relay.write(random.usize(1..2_000_000)),
                2 => {
                    relay.read(random.usize(1..1_500_000));
                }
                _ => {
                    relay.settle();
                }
            }
            relay.run();
        }
        relay.source.peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(relay.finish(), Flow::Ended);
        assert_eq!(relay.arrived.place, relay.sent.place);
        assert_eq!(relay.pump.received(), relay.sent.place);
        assert_eq!(relay.pump.moved(), relay.sent.place);
        let spliced = relay.counts.bytes();
        assert!(
            spliced > 0 && spliced < relay.sent.place,
            "both ways were gone"
        );
        drop((relay.pump, relay.gear));
        assert_eq!(relay.budget.open(), 0, "every pipe is closed");
    }
}

/// In bulk nearly everything is spliced, and a run still ends when it has had its share.
#[test]
fn bulk_is_spliced_in_bounded_turns() {
    let mut relay = Relay::with_pipes(1);
    relay.get_going();
    for _ in 0..40 {
        relay.write(8 << 20);
        let before = relay.pump.received();
        relay.run();
        let share = relay.pump.received() - before;
        assert!(share < BYTES_PER_TURN_MAX + PIPE_BYTES_MAX as u64);
        relay.settle();
    }
    assert!(relay.counts.bytes() > relay.sent.place * 9 / 10);
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// After a few small messages the pump copies again, and gives its pipe back while it waits.
#[test]
fn small_messages_are_copied_again() {
    let mut relay = Relay::with_pipes(1);
    relay.get_going();
    for _ in 0..10 {
        relay.write(100);
        relay.settle();
    }
    let spliced = relay.counts.bytes();
    relay.write(1000);
    relay.settle();
    assert_eq!(relay.counts.bytes(), spliced);
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// A reader that stops leaves at most one pipe full behind it, and the pump does nothing at all until there is room again.
#[test]
fn fault_41_a_stalled_sink_holds_one_pipe_and_no_more() {
    let mut relay = Relay::with_pipes(2);
    relay.get_going();
    relay.stall();
    let received = relay.pump.received();
    assert!(received - relay.pump.moved() <= PIPE_BYTES_MAX as u64);
    assert!(!relay.pump.is_drained());
    for _ in 0..5 {
        relay.write(1000);
        assert_eq!(relay.run(), Flow::Waiting);
    }
    assert_eq!(relay.pump.received(), received);

    relay.settle();
    assert!(relay.pump.is_drained());
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// The source ends while a pipe is full: the end is told when all before it is written.
#[test]
fn an_end_comes_after_what_the_pipe_holds() {
    let mut relay = Relay::with_pipes(1);
    relay.get_going();
    relay.stall();
    relay.source.peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(relay.run(), Flow::Waiting);
    assert!(!relay.pump.has_source_ended());

    assert_eq!(relay.finish(), Flow::Ended);
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// The source resets while a pipe is full: what had arrived is delivered, an exact prefix, then the reset is told.
#[test]
fn a_reset_comes_after_what_the_pipe_holds() {
    let mut relay = Relay::with_pipes(1);
    relay.get_going();
    relay.stall();
    let held = relay.pump.received();
    reset(&relay.source.peer);
    relay.source.peer = Pair::connected().peer;
    assert_eq!(relay.run(), Flow::Waiting);

    assert_eq!(relay.finish(), Flow::SourceBroken(Fault::Reset));
    assert!(relay.arrived.place >= held && relay.arrived.place <= relay.sent.place);
    assert_eq!(relay.arrived.place, relay.pump.received());
}

/// The sink resets while a pipe holds bytes for it: that pipe is closed with the pump, not given to the next.
#[test]
fn a_pipe_that_holds_something_is_never_given_back() {
    let mut relay = Relay::with_pipes(1);
    relay.get_going();
    relay.stall();
    reset(&relay.sink.peer);
    relay.sink.peer = Pair::connected().peer;
    assert_eq!(relay.run(), Flow::SinkBroken);
    assert!(!relay.pump.is_drained());
    assert_eq!(relay.budget.open(), 1);

    drop(relay.pump);
    assert_eq!(relay.budget.open(), 0);
    assert!(
        relay.gear.pipes.take().is_some(),
        "there is room for a new one"
    );
}

/// What is kept for a replay is copied. When its limit is passed, bulk is spliced.
#[test]
fn a_replay_is_copied_and_what_follows_spliced() {
    let mut relay = Relay::with(PipeBudget::new(1), Pipes::new, 400_000);
    relay.write(390_000);
    relay.settle();
    assert!(relay.pump.can_replay());
    assert_eq!(relay.counts.bytes(), 0);

    relay.get_going();
    assert!(!relay.pump.can_replay());
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// With no pipe to be had, for whichever reason, bytes are copied and that is counted, without a try at every read.
#[test]
fn without_a_pipe_bytes_are_copied() {
    /// No kernel grants this.
    const TOO_MUCH: &[usize] = &[1 << 40];
    /// Less than the read buffer.
    const TOO_LITTLE: &[usize] = &[4096];
    let granting = |capacities| move |budget| Pipes::with_capacities(budget, capacities);

    let mut exhausted = Relay::with_pipes(0);
    let mut unhelpful = Relay::with(PipeBudget::new(8), granting(TOO_LITTLE), 0);
    for relay in [&mut exhausted, &mut unhelpful] {
        for _ in 0..20 {
            relay.write(PIPE_BYTES_MAX);
            relay.settle();
        }
        assert_eq!(relay.arrived.place, relay.sent.place);
        assert_eq!((relay.counts.bytes(), relay.budget.open()), (0, 0));
    }
    assert!((1..4).contains(&exhausted.counts.over_budget()));
    assert!((1..4).contains(&unhelpful.counts.refused()));

    // A pipe of the size that all are born with is still worth having.
    let mut modest = Relay::with(PipeBudget::new(8), granting(TOO_MUCH), 0);
    modest.get_going();
    assert_eq!(modest.counts.smaller(), 1);
}

/// Two pumps of different workers share one pipe's budget: who comes second copies, and splices when the first is done.
#[test]
fn the_budget_is_shared() {
    let budget = PipeBudget::new(1);
    let mut first = Relay::with(Arc::clone(&budget), Pipes::new, 0);
    let mut second = Relay::with(Arc::clone(&budget), Pipes::new, 0);
    first.get_going();
    first.stall();
    for _ in 0..4 {
        second.write(PIPE_BYTES_MAX);
        second.settle();
    }
    assert_eq!(second.counts.bytes(), 0);
    assert!(second.counts.over_budget() > 0);

    first.settle();
    second.get_going();
    assert_eq!(second.arrived.place, second.sent.place);
}

/// A listener may forbid it.
#[test]
fn splicing_can_be_switched_off() {
    let mut relay = Relay::with_pipes(1);
    relay.pump = Pump::new(0, Splice::Off);
    for _ in 0..10 {
        relay.write(PIPE_BYTES_MAX);
        relay.settle();
    }
    assert_eq!(relay.counts.bytes(), 0);
    assert_eq!(relay.arrived.place, relay.sent.place);
}

/// The kernel that the tests run on splices without blocking; one that cannot would be found out and only copied on.
#[test]
fn this_kernel_can_splice() {
    assert!(can_splice());
}

/// A pool keeps empty pipes for the next, but none at its bound.
#[test]
fn pipes_are_used_again() {
    let mut pool = pipes(2);
    let pipe = pool.take().unwrap();
    pool.give_back(pipe);
    let kept = [pool.take(), pool.take(), pool.take()];
    assert_eq!(kept.iter().flatten().count(), 2);
    for pipe in kept.into_iter().flatten() {
        pool.give_back(pipe);
    }
    assert!(pool.take().is_some());
}
