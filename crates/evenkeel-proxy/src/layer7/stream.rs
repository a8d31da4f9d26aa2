//! A connection as an asynchronous session has it: TCP or Unix, the same to whoever reads and writes.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use evenkeel_reactor::Origin;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected stream that the worker's runtime watches.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Does the same with either kind.
macro_rules! either {
    ($stream:expr, $inner:ident => $done:expr) => {
        match $stream {
            Stream::Tcp($inner) => $done,
            Stream::Unix($inner) => $done,
        }
    };
}

impl Stream {
    /// Has the runtime watch a stream that the reactor has accepted from there.
    ///
    /// # Errors
    ///
    /// The kernel has no memory, or no more watches, for it.
    pub(crate) fn adopt(accepted: evenkeel_reactor::Stream, from: Origin) -> io::Result<Self> {
        let descriptor = OwnedFd::from(accepted);
        Ok(match from {
            Origin::Ip(_) => Self::Tcp(TcpStream::from_std(descriptor.into())?),
            Origin::Unix => Self::Unix(UnixStream::from_std(descriptor.into())?),
        })
    }

    /// Waits until there may be something to read: bytes, the end or an error.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        either!(self, stream => stream.readable().await)
    }

    /// Waits until there may be room to write.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        either!(self, stream => stream.writable().await)
    }

    /// Reads what there is; 0 is the end.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.try_read(buffer))
    }

    /// Does something else with the socket; if that would block, the stream waits for its next event.
    pub(crate) fn try_io<T>(
        &self,
        interest: Interest,
        operation: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        either!(self, stream => stream.try_io(interest, operation))
    }

    /// The address at this machine's end; `None` for a Unix socket.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Makes the close that follows a reset, not an end of stream. What the peer has not yet received is lost.
    pub(crate) fn reset_when_closed(&self) {
        // Without the option the descriptor is closed all the same.
        let _ = sockopt::set_socket_linger(self, Some(Duration::ZERO));
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, stream => stream.as_fd())
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}
