//! One connection to an endpoint: the thin part. It moves the bytes of a [`Dialogue`], and closes as each kind is owed.
//!
//! Nothing here looks at a clock; whoever awaits it sets the limit, and may go on awaiting afterwards: no byte is lost.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_wire::proxy_protocol::{Ends, encode_own};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use super::dialogue::{Dialogue, WhenLate};
use super::tls::Credential;
use super::verdict::Verdict;
use crate::settings::ProxyVersion;

/// What is read at one time.
const PIECE_BYTES: usize = 4096;
/// The most bytes that are read and thrown away after the verdict, so that the close is an orderly one.
const REST_BYTES_MAX: usize = 64 << 10;
/// When nothing has come for so long, the kernel asks whether the peer is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
/// Unanswered, so often, so far apart, and the connection is broken.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_COUNT: u32 = 3;

/// A stream of either family.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection on which a conversation is held.
pub(super) struct Visit {
    stream: Box<dyn Duplex>,
    dialogue: Box<dyn Dialogue>,
    /// What is not sent yet.
    outbox: Vec<u8>,
    piece: Vec<u8>,
}

/// Only connects. The kernel is told to keep its last acknowledgement back for a moment, and the close sends a reset in its
/// place: so the endpoint's kernel forgets the connection before its program ever sees it, and neither side is left with one
/// that times out. A Unix socket has neither acknowledgements nor ports.
pub(super) async fn knock(address: &Address) -> Verdict {
    let connected = match address {
        Address::Ip(address) => connect_unacknowledged(*address).await.map(drop),
        Address::Unix(path) => UnixStream::connect(path).await.map(drop),
    };
    match connected {
        Ok(()) => Verdict::Passed,
        Err(error) => Verdict::of_connecting(&error),
    }
}

async fn connect_unacknowledged(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket_for(address)?;
    sockopt::set_tcp_quickack(&socket, false)?;
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    connect(socket, address).await
}

fn socket_for(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

/// TCP connects a socket to itself when its own port happens to be the one it connects to: nobody listens there.
async fn connect(socket: TcpSocket, address: SocketAddr) -> io::Result<TcpStream> {
    let stream = socket.connect(address).await?;
    if stream.local_addr()? == address {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

async fn connect_guarded(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = connect(socket_for(address)?, address).await?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_COUNT)?;
    Ok(stream)
}

/// A stream, and its ends where they are IP addresses.
async fn connect_to(address: &Address) -> io::Result<(Box<dyn Duplex>, Option<Ends<SocketAddr>>)> {
    match address {
        Address::Ip(address) => {
            let stream = connect_guarded(*address).await?;
            let ends = Ends {
                source: stream.local_addr()?,
                destination: *address,
            };
            Ok((Box::new(stream), Some(ends)))
        }
        Address::Unix(path) => Ok((Box::new(UnixStream::connect(path).await?), None)),
    }
}

/// The handshake behind the header, which whoever is at the other end reads before it.
async fn secured(
    mut stream: Box<dyn Duplex>,
    header: &[u8],
    credential: Credential,
) -> Result<Box<dyn Duplex>, Verdict> {
    let sent = stream.write_all(header).await;
    sent.map_err(|error| Verdict::failed(format_args!("no PROXY header could be sent: {error}")))?;
    Ok(Box::new(credential.shake_hands(stream).await?))
}

/// Connects, and shakes hands.
pub(super) async fn greet(
    address: &Address,
    header: Option<ProxyVersion>,
    credential: Credential,
) -> Verdict {
    let (stream, ends) = match connect_to(address).await {
        Ok(connected) => connected,
        Err(error) => return Verdict::of_connecting(&error),
    };
    let header = header.map_or_else(Vec::new, |version| encode_own(version, ends));
    match secured(stream, &header, credential).await {
        Ok(mut stream) => {
            // The endpoint has answered; how it takes the goodbye says nothing.
            let _ = stream.shutdown().await;
            Verdict::Passed
        }
        Err(verdict) => verdict,
    }
}

impl Visit {
    pub(super) async fn begin(
        address: &Address,
        header: Option<ProxyVersion>,
        dialogue: Box<dyn Dialogue>,
        credential: Option<Credential>,
    ) -> Result<Self, Verdict> {
        let connected = connect_to(address).await;
        let (stream, ends) = connected.map_err(|error| Verdict::of_connecting(&error))?;
        let header = header.map_or_else(Vec::new, |version| encode_own(version, ends));
        let (stream, outbox) = match credential {
            Some(credential) => (secured(stream, &header, credential).await?, Vec::new()),
            None => (stream, header),
        };
        Ok(Self {
            stream,
            dialogue,
            outbox,
            piece: vec![0; PIECE_BYTES],
        })
    }

    pub(super) fn waiting_for(&self) -> &'static str {
        self.dialogue.waiting_for()
    }

    pub(super) fn when_late(&self) -> WhenLate {
        self.dialogue.when_late()
    }

    /// Goes on until there is a verdict. May be given up at any moment, and called again.
    pub(super) async fn verdict(&mut self) -> Verdict {
        loop {
            self.send().await;
            let heard = match self.stream.read(&mut self.piece).await {
                Ok(0) => return self.dialogue.hear_end(),
                Ok(count) => &self.piece[..count],
                Err(error) => {
                    let waiting_for = self.dialogue.waiting_for();
                    return Verdict::failed(format_args!("no {waiting_for}: {error}"));
                }
            };
            if let Some(verdict) = self.dialogue.hear(heard) {
                return verdict;
            }
        }
    }

    /// What cannot be sent is given up: the endpoint may have said why before it closed, and that is read next.
    async fn send(&mut self) {
        self.outbox.extend(self.dialogue.take_outbound());
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox).await {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(_) => self.outbox.clear(),
            }
        }
    }

    /// Says goodbye, ends the stream, and waits for the other end, so that no unread byte turns the close into a reset.
    pub(super) async fn part(mut self) {
        self.send().await;
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let mut rest = REST_BYTES_MAX;
        while let Ok(count @ 1..) = self.stream.read(&mut self.piece).await {
            rest = rest.saturating_sub(count);
            if rest == 0 {
                return;
            }
        }
    }
}
