//! An endpoint whose machine does not answer a connect at all.

use std::net::{SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketType};

use super::ports;

/// A listening socket whose queue is full: on Linux a connect to it gets no answer.
pub(crate) struct Deaf {
    pub(crate) address: SocketAddr,
    _listener: rustix::fd::OwnedFd,
    _queue: Vec<TcpStream>,
}

impl Deaf {
    pub(crate) fn start() -> Self {
        let address = ports::free();
        let listener =
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&listener, &address).expect("the port is free");
        rustix::net::listen(&listener, 0).expect("it is bound");
        // A queue of length 0 holds one connection.
        let queue = vec![TcpStream::connect(address).expect("the first is accepted")];
        Self {
            address,
            _listener: listener,
            _queue: queue,
        }
    }
}
