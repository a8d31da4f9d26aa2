//! One direction: bounded turns, bounded memory, replay.

use std::io::{Read, Write};
use std::net::Shutdown;

use super::support::{Pair, buffer, gear, pipes};
use crate::{Flow, Pump, READ_BUFFER_BYTES, READS_PER_TURN_MAX, Splice, Stream};

/// A source with that much to read.
fn full_source(bytes: usize) -> Pair {
    let mut pair = Pair::connected();
    pair.peer.write_all(&vec![7; bytes]).unwrap();
    pair.note_until(Stream::is_readable);
    pair
}

/// However much there is to read, one run takes its share and yields.
#[test]
fn a_run_takes_no_more_than_its_share() {
    let (mut source, mut sink) = (full_source(200_000), Pair::connected());
    let mut pump = Pump::new(0, Splice::Auto);
    let mut gear = gear(pipes(0));
    gear.buffer = vec![0; 1000].into_boxed_slice();
    assert_eq!(
        pump.run(&mut source.stream, &mut sink.stream, &mut gear),
        Flow::Yielding
    );
    assert_eq!(pump.moved(), (1000 * READS_PER_TURN_MAX) as u64);
}

/// A sink that takes nothing more stops the reading: at most one read is kept in memory.
#[test]
fn a_stalled_sink_stops_the_reading() {
    let mut sink = Pair::connected();
    let mut pump = Pump::new(0, Splice::Off);
    let mut gear = gear(pipes(0));
    let mut source = full_source(100_000);
    while sink.stream.is_writable() {
        source.note_until(Stream::is_readable);
        pump.run(&mut source.stream, &mut sink.stream, &mut gear);
        if !source.stream.is_readable() {
            source.peer.write_all(&[7; 100_000]).unwrap();
        }
    }
    assert!(pump.unsent().len() <= READ_BUFFER_BYTES);
    let received = pump.received();
    assert_eq!(
        pump.run(&mut source.stream, &mut sink.stream, &mut gear),
        Flow::Waiting
    );
    assert_eq!(pump.received(), received);

    // Once there is room again all of it arrives.
    sink.peer.set_nonblocking(true).unwrap();
    source.peer.shutdown(Shutdown::Write).unwrap();
    let (mut arrived, mut block) = (0, buffer());
    loop {
        while let Ok(count @ 1..) = sink.peer.read(&mut block) {
            arrived += count as u64;
        }
        if !pump.unsent().is_empty() {
            sink.note_until(Stream::is_writable);
        } else {
            source.note_until(Stream::is_readable);
        }
        if pump.run(&mut source.stream, &mut sink.stream, &mut gear) == Flow::Ended {
            break;
        }
    }
    assert_eq!(pump.moved(), pump.received());
    sink.stream.send_end();
    sink.peer.set_nonblocking(false).unwrap();
    let mut rest = Vec::new();
    sink.peer.read_to_end(&mut rest).unwrap();
    assert_eq!(arrived + rest.len() as u64, pump.moved());
}

/// What was written is kept up to the limit and sent again, from the first byte, to another sink.
#[test]
fn a_replay_starts_from_the_first_byte() {
    let (mut source, mut first, mut second) =
        (full_source(3000), Pair::connected(), Pair::connected());
    let mut pump = Pump::new(4000, Splice::Auto);
    assert_eq!(
        pump.run(&mut source.stream, &mut first.stream, &mut gear(pipes(1))),
        Flow::Waiting
    );
    assert!(pump.can_replay());
    pump.rewind();
    assert_eq!(
        pump.run(&mut source.stream, &mut second.stream, &mut gear(pipes(1))),
        Flow::Waiting
    );
    assert_eq!(pump.moved(), 3000);
    let mut arrived = [0; 3000];
    second.peer.read_exact(&mut arrived).unwrap();
    assert_eq!(arrived, [7; 3000]);
}

/// A source that sends exactly as much as the limit can be replayed, with its end; one byte more, and it cannot.
#[test]
fn a_replay_holds_as_much_as_its_limit() {
    for (sent, can_replay) in [(4000, true), (4001, false)] {
        let (mut source, mut sink) = (full_source(sent), Pair::connected());
        source.peer.shutdown(Shutdown::Write).unwrap();
        source.note_until(Stream::is_end_announced);
        let mut pump = Pump::new(4000, Splice::Auto);
        assert_eq!(
            pump.run(&mut source.stream, &mut sink.stream, &mut gear(pipes(0))),
            Flow::Ended
        );
        assert_eq!((pump.moved(), pump.can_replay()), (sent as u64, can_replay));
    }
}

/// A source that sends more than the limit is passed on, but cannot be replayed, and nothing is kept of it.
#[test]
fn beyond_the_limit_nothing_is_kept() {
    let (mut source, mut sink) = (full_source(5000), Pair::connected());
    let mut pump = Pump::new(4000, Splice::Auto);
    pump.run(&mut source.stream, &mut sink.stream, &mut gear(pipes(1)));
    assert_eq!(pump.moved(), 5000);
    assert!(!pump.can_replay());
    assert!(pump.unsent().is_empty());
}
