//! What a stream makes of the kernel's words: an end, a reset, and one after the other.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rustix::net::{self, AddressFamily, SocketType, sockopt};

use super::support::{Pair, buffer};
use crate::{Fault, Received, Sent, Stream};

/// All that can be read, and what ended it.
fn read_out(stream: &mut Stream) -> (usize, Received) {
    let (mut count, mut buffer) = (0, buffer());
    loop {
        match stream.receive(&mut buffer[..1000]) {
            Received::Bytes(bytes) => count += bytes,
            end => return (count, end),
        }
    }
}

/// An end of stream comes after the last byte.
#[test]
fn an_end_comes_after_the_last_byte() {
    let mut pair = Pair::connected();
    pair.peer.write_all(&[1; 5000]).unwrap();
    pair.peer.shutdown(Shutdown::Write).unwrap();
    pair.note_until(Stream::is_end_announced);
    assert_eq!(read_out(&mut pair.stream), (5000, Received::End));
    assert_eq!(pair.stream.fault(), None);
}

/// What arrived before a reset is still read; then the reset is told.
#[test]
fn a_reset_comes_after_the_last_byte() {
    let mut pair = Pair::connected();
    pair.peer.write_all(&[1; 5000]).unwrap();
    sockopt::set_socket_linger(&pair.peer, Some(Duration::ZERO)).unwrap();
    let mut pair = drop_peer(pair);
    pair.note_until(|stream| stream.fault().is_some());
    assert!(pair.stream.is_reset());
    assert_eq!(
        read_out(&mut pair.stream),
        (5000, Received::Broken(Fault::Reset))
    );
}

/// A peer that has ended its stream and resets afterwards has said all it had to say, whether the two were noticed one after
/// the other or at once.
#[test]
fn a_reset_after_an_end_takes_nothing_back() {
    for noticed_apart in [true, false] {
        let mut pair = Pair::connected();
        pair.peer.write_all(&[1; 5000]).unwrap();
        pair.peer.shutdown(Shutdown::Write).unwrap();
        if noticed_apart {
            pair.note_until(Stream::is_end_announced);
        }
        sockopt::set_socket_linger(&pair.peer, Some(Duration::ZERO)).unwrap();
        let mut pair = drop_peer(pair);
        pair.note_until(|stream| stream.fault().is_some());
        assert!(!pair.stream.is_reset());
        assert_eq!(read_out(&mut pair.stream), (5000, Received::End));
    }
}

/// A write that fails uses the kernel's error up; the reset is known all the same when the reading comes to its end.
#[test]
fn a_reset_found_by_writing_is_remembered() {
    let mut pair = Pair::connected();
    pair.peer.write_all(&[1; 5000]).unwrap();
    sockopt::set_socket_linger(&pair.peer, Some(Duration::ZERO)).unwrap();
    let mut pair = drop_peer(pair);
    while pair.stream.send(b"?") != Sent::Broken {}
    assert!(pair.stream.is_reset());
    assert_eq!(
        read_out(&mut pair.stream),
        (5000, Received::Broken(Fault::Reset))
    );
}

/// A write finds the reset and uses up the kernel's error, and only then the event comes, which says "ended" and no more: it is
/// no end, or a cut answer would pass for a whole one.
#[test]
fn a_reset_whose_error_a_write_has_used_up_is_no_end() {
    let pair = Pair::connected();
    sockopt::set_socket_linger(&pair.peer, Some(Duration::ZERO)).unwrap();
    let mut pair = drop_peer(pair);
    while pair.stream.send(b"x") != Sent::Broken {}
    pair.note_events();
    assert_eq!(
        read_out(&mut pair.stream),
        (0, Received::Broken(Fault::Reset))
    );
    assert!(pair.stream.is_reset());
}

/// The same pair without its peer, which is closed.
fn drop_peer(mut pair: Pair) -> Pair {
    pair.peer = Pair::connected().peer;
    pair
}

/// A connection that the kernel gave its own endpoint's port is told from one that has a peer.
#[test]
fn a_connection_to_itself_is_known() {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let own: SocketAddr = net::getsockname(&socket).unwrap().try_into().unwrap();
    net::connect(&socket, &own).unwrap();
    assert!(Stream::new(socket).is_connected_to_itself(own));

    let pair = Pair::connected();
    let remote = pair.peer.local_addr().unwrap();
    assert!(!pair.stream.is_connected_to_itself(remote));
}
