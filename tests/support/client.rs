//! A client: connects, writes, ends its stream, reads.
//!
//! Every read has a deadline, so that a test whose answer never comes fails instead of hanging.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::wait;

/// Connects; reads and writes fail at the deadline of all waiting.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    try_connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
}

pub(crate) fn try_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(wait::DEADLINE))?;
    stream.set_write_timeout(Some(wait::DEADLINE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request, ends the stream, and reads the answer to its end: the client of a half-close protocol.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = try_connect(address)?;
    stream.write_all(request)?;
    stream.shutdown(Shutdown::Write)?;
    read_to_end(&mut stream)
}

/// As [`exchange`], with text.
pub(crate) fn ask(address: SocketAddr, request: &str) -> String {
    let answer = exchange(address, request.as_bytes()).expect("an answer");
    String::from_utf8(answer).expect("the answer is text")
}

/// Connects, sends nothing, and reads what the other side says of its own accord, to its end.
pub(crate) fn listen(address: SocketAddr) -> String {
    let answer = read_to_end(&mut connect(address)).expect("an answer");
    String::from_utf8(answer).expect("the answer is text")
}

pub(crate) fn read_to_end(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Reads exactly as many bytes as `expected` has, and compares.
pub(crate) fn expect(stream: &mut TcpStream, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, expected);
}

/// Writes, and reads the same bytes back.
pub(crate) fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("it can be written");
    expect(stream, bytes);
}

/// Closes with a reset instead of an orderly end.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a TCP socket");
    drop(stream);
}

/// Whether the connection ended with a reset rather than an orderly end.
pub(crate) fn ends_with_reset(stream: &mut TcpStream) -> bool {
    match read_to_end(stream) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
            true
        }
    }
}
