//! Connecting to a Unix socket in bounded time.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connects. A listener that accepts nothing has a full backlog in the end, and connecting would wait for ever; here it
/// fails after `patience` with [`io::ErrorKind::WouldBlock`]. The stream is left with `patience` for its writes and reads.
pub(super) fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let kind = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    rustix::net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}
