//! Making a connection for a session of the application layer, and keeping it in a pool.

use std::io;
use std::os::fd::AsFd;

use evenkeel_core::units::Address;
use evenkeel_reactor::{Fault, Origin, Remote, StreamOptions};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::pool::Pooled;
use crate::kernel;
use crate::layer7::Stream;

/// Connects to an endpoint. How long that may take is the caller's business.
///
/// # Errors
///
/// Nobody is there, or this machine lacks something.
pub(crate) async fn connect(address: &Address, options: StreamOptions) -> Result<Stream, Fault> {
    let (remote, origin) = match address {
        Address::Ip(address) => (Remote::Ip(*address), Origin::Ip(*address)),
        Address::Unix(path) => (Remote::Unix(path), Origin::Unix),
    };
    let connecting = evenkeel_reactor::Stream::connect(remote, options)?;
    let stream = Stream::adopt(connecting, origin).map_err(|_| Fault::Local)?;
    stream.writable().await.map_err(|_| Fault::Local)?;
    match sockopt::socket_error(stream.as_fd()) {
        Ok(Ok(())) if is_connected_to_itself(&stream, address) => Err(Fault::Refused),
        Ok(Ok(())) => Ok(stream),
        Ok(Err(error)) | Err(error) => Err(Fault::from(error)),
    }
}

/// TCP allows that, where nobody listens on a port that the kernel hands out to whoever connects.
fn is_connected_to_itself(stream: &Stream, address: &Address) -> bool {
    let Address::Ip(address) = address else {
        return false;
    };
    // Only such ports are handed out: all others are spared the question.
    kernel::handed_out_ports().contains(&address.port()) && stream.local_address() == Some(*address)
}

/// A stream as the kernel has it, which no runtime watches.
pub(crate) enum Unwatched {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Pooled for Stream {
    type Portable = Unwatched;

    fn is_stale(&mut self) -> bool {
        let read = self.try_read(&mut [0]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn has_ended(&self) -> bool {
        let looked = recv(self, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        looked != Err(Errno::AGAIN)
    }

    fn pack(self) -> Option<Unwatched> {
        match self {
            Self::Tcp(stream) => stream.into_std().ok().map(Unwatched::Tcp),
            Self::Unix(stream) => stream.into_std().ok().map(Unwatched::Unix),
        }
    }

    fn unpack(packed: Unwatched) -> io::Result<Self> {
        Ok(match packed {
            Unwatched::Tcp(stream) => Self::Tcp(tokio::net::TcpStream::from_std(stream)?),
            Unwatched::Unix(stream) => Self::Unix(tokio::net::UnixStream::from_std(stream)?),
        })
    }
}
