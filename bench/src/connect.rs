//! Connections to what is measured: waited for, or begun; and how a load knows that it is served.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

/// How long a single exchange may take where a load waits for it.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);

/// Between two attempts to be served for the first time.
const PAUSE: Duration = Duration::from_millis(20);

/// A proxy may know only by its next probe that the endpoints are there, and ends what it is sent until then. Returns what the
/// exchange that was served returned.
pub(crate) fn wait_until_served<T>(mut exchange: impl FnMut() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    loop {
        match exchange() {
            Ok(served) => return Ok(served),
            Err(error) if begin.elapsed() > EXCHANGE_MAX => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// A connection that waits for what it asks for.
pub(crate) fn connect_and_wait(target: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, EXCHANGE_MAX).context("cannot connect")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(EXCHANGE_MAX))?;
    stream.set_write_timeout(Some(EXCHANGE_MAX))?;
    Ok(stream)
}

/// Begins to connect, without waiting for it.
pub(crate) fn begin(target: SocketAddr) -> Result<TcpStream, Errno> {
    let family = match target {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = net::socket_with(family, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &target) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error),
    }
}
