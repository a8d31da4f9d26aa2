//! What the tests of the loads have in common: addresses for endpoints.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

/// An address that nobody listens on: below the ports that the kernel gives to outgoing connections, and each only once.
pub(crate) fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 2000 + u16::try_from(std::process::id() % 4000).expect("below 4000");
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = (Ipv4Addr::LOCALHOST, port).into();
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return address,
            _ => {}
        }
    }
}
