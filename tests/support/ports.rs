//! Free TCP ports on the loopback address, never the same for two tests.
//!
//! They lie below the range that the kernel takes the ports of outgoing connections from (32768 and up), so that no
//! connection of another test can sit on one between this choice and its use.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// An address on which nobody listens, and which this process gives to nobody else.
///
/// Found by connecting, not by binding: a process that another test starts at this moment would hold a bound socket open
/// until it executes its program.
pub(crate) fn free() -> SocketAddr {
    for _ in 0..COUNT {
        let address = next();
        let connected = TcpStream::connect(address);
        if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return address;
        }
    }
    panic!("no port is free");
}

/// Two test programs at the same time start at different places.
fn next() -> SocketAddr {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU32::new(std::process::id().wrapping_mul(977)));
    let port = FIRST + next.fetch_add(1, Ordering::Relaxed) % COUNT;
    let port = u16::try_from(port).expect("FIRST + COUNT is below 65,536");
    (Ipv4Addr::LOCALHOST, port).into()
}
