//! Non-blocking stream sockets: what the kernel said of them, and the few calls that move bytes.
//!
//! A [`Stream`] remembers what edge-triggered events have told, so that nobody asks the kernel what is already known, and
//! tells an orderly end from a reset exactly. When to read, write or close is decided elsewhere.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};

use crate::inherit::{BoundAddress, Inherited, address_of};
use crate::origin::Origin;
use crate::pipe::Pipe;
use crate::poller::Readiness;
use crate::unix::{self, FileMark, PathError, SocketFile};

/// Connections that may wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
pub const BACKLOG_MAX: i32 = 4096;

/// How long a connection may be silent before the kernel asks whether the peer is still there.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// How long the kernel waits between two such questions. `dead_peer` says when it gives up.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) const NEW_SOCKET: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// What every stream of a kind has in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// How long a peer may leave bytes unacknowledged or keepalive probes unanswered (`TCP_USER_TIMEOUT`); `None` leaves
    /// it to the kernel's own limits.
    pub dead_peer: Option<Duration>,
    /// The receive buffer to ask for (`SO_RCVBUF`, in bytes); `None` lets the kernel size it.
    pub receive_buffer: Option<usize>,
}

impl StreamOptions {
    /// 0 stands for the kernel's own limits.
    fn user_timeout_millis(self) -> u32 {
        let millis = |limit: Duration| u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        self.dead_peer.map_or(0, millis)
    }
}

/// Whether other sockets may be bound to the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only this one.
    Exclusive,
    /// One for each worker (`SO_REUSEPORT`); the kernel spreads connections over them.
    Workers,
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    /// Its name in the file system, removed before the socket is closed: whoever connects then is told that nothing is there.
    file: Option<SocketFile>,
    descriptor: OwnedFd,
}

impl Listener {
    /// Binds and listens; beside others that share the address it takes a [`Claim`] to know that they are one's own. An IPv6
    /// wildcard takes IPv6 only: an address means what it says, and `0.0.0.0` and `[::]` may stand side by side. Accepted
    /// streams inherit the options, so that they cost nothing per connection.
    ///
    /// # Errors
    ///
    /// What the kernel says: the address is in use, is not this machine's, or needs a privilege.
    pub fn bind(address: SocketAddr, sharing: Sharing, options: StreamOptions) -> io::Result<Self> {
        let descriptor = bind(address, sharing)?;
        prepare(&descriptor, options)?;
        guard(&descriptor, options)?;
        net::listen(&descriptor, BACKLOG_MAX)?;
        Ok(Self {
            file: None,
            descriptor,
        })
    }

    /// Goes on with a socket that somebody else has opened, under these options. Its file, if it has one, is left
    /// alone, until [`Listener::take_file`].
    ///
    /// # Errors
    ///
    /// What the kernel says; none is expected of a socket that listens.
    pub fn adopt(inherited: Inherited, options: StreamOptions) -> io::Result<Self> {
        let is_tcp = matches!(inherited.address(), BoundAddress::Ip(_));
        let adopted = Self {
            file: None,
            descriptor: inherited.into(),
        };
        if is_tcp {
            adopted.adjust(options);
        }
        // Whoever opened it may have had another backlog in mind.
        net::listen(&adopted.descriptor, BACKLOG_MAX)?;
        Ok(adopted)
    }

    /// Gives the streams that connect from now on other options. What the kernel refuses stays as it was: none of them decides
    /// whether a stream works. A receive buffer that was set cannot be given back to the kernel's own sizing.
    pub(crate) fn adjust(&self, options: StreamOptions) {
        let _ = prepare(&self.descriptor, options);
        let _ = guard(&self.descriptor, options);
    }

    /// Listens on a path, whose file gets these permissions. One that a dead process has left is replaced. Dropping the
    /// listener removes the file, if it is still the one that was made here.
    ///
    /// # Errors
    ///
    /// Somebody listens there, something else lies there, or what else the kernel says.
    pub fn bind_path(path: &Path, permissions: u32) -> Result<Self, PathError> {
        let (descriptor, file) = unix::listen(path, permissions)?;
        Ok(Self {
            file: Some(file),
            descriptor,
        })
    }

    /// Leaves the file of a Unix socket alone from now on: somebody else listens on the same socket.
    pub fn leave_file(&mut self) {
        if let Some(file) = self.file.take() {
            file.leave();
        }
    }

    /// The file that dropping the listener removes.
    pub fn file(&self) -> Option<&FileMark> {
        self.file.as_ref()?.mark()
    }

    /// Has charge of its file from now on, if that is one of these: whoever opened the socket has left it.
    pub fn take_file(&mut self, files: &[FileMark]) {
        let Some(BoundAddress::Path(path)) = self.name().filter(|_| self.file.is_none()) else {
            return;
        };
        let mark = files.iter().find(|mark| mark.path == path);
        self.file = mark.cloned().map(SocketFile::of);
    }

    fn name(&self) -> Option<BoundAddress> {
        address_of(&net::getsockname(&self.descriptor).ok()?)
    }

    /// The IP address it is bound to, with the port the kernel chose.
    ///
    /// # Errors
    ///
    /// What the kernel says; none is expected of a bound socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        Ok(net::getsockname(&self.descriptor)?.try_into()?)
    }

    /// The next connection, and where it comes from.
    pub(crate) fn accept(&self) -> Result<(Stream, Origin), Errno> {
        let (descriptor, peer) = net::acceptfrom_with(&self.descriptor, NEW_SOCKET)?;
        Ok((Stream::new(descriptor), Origin::of(peer)))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The claim to an address: while it is held, and while a listener bound under it lives, nobody else can have one.
///
/// Sockets that share an address (`SO_REUSEPORT`) would let another process of the same user join them unasked, and to look
/// first and bind then leaves room for two to find the address free. What the kernel does decide in one step is whether a
/// socket that shares nothing may *listen*: not beside any other that listens. So a claim is such a socket. Only once it
/// listens does it allow sharing, and only then are the listeners bound beside it. Dropping it resets what has connected
/// to it in between; that client would have been refused a moment earlier.
#[derive(Debug)]
pub struct Claim {
    _descriptor: OwnedFd,
}

impl Claim {
    /// Claims an address.
    ///
    /// # Errors
    ///
    /// "Address in use" if anybody listens there or claims it at this moment, or what else the kernel says.
    pub fn stake(address: SocketAddr) -> io::Result<Self> {
        let descriptor = bind(address, Sharing::Exclusive)?;
        net::listen(&descriptor, 0)?;
        sockopt::set_socket_reuseport(&descriptor, true)?;
        Ok(Self {
            _descriptor: descriptor,
        })
    }
}

fn bind(address: SocketAddr, sharing: Sharing) -> Result<OwnedFd, Errno> {
    let descriptor = net::socket_with(family(address), SocketType::STREAM, NEW_SOCKET, None)?;
    // Connections of an earlier run that linger in TIME_WAIT do not hold the address.
    sockopt::set_socket_reuseaddr(&descriptor, true)?;
    if sharing == Sharing::Workers {
        sockopt::set_socket_reuseport(&descriptor, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&descriptor, true)?;
    }
    net::bind(&descriptor, &address)?;
    Ok(descriptor)
}

fn prepare(descriptor: &OwnedFd, options: StreamOptions) -> Result<(), Errno> {
    // Before the handshake, which announces the window that goes with it.
    if let Some(bytes) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(descriptor, bytes)?;
    }
    sockopt::set_tcp_nodelay(descriptor, true)
}

/// Has the kernel notice that the peer is gone, however silent the connection is.
fn guard(descriptor: &OwnedFd, options: StreamOptions) -> Result<(), Errno> {
    sockopt::set_socket_keepalive(descriptor, true)?;
    sockopt::set_tcp_keepidle(descriptor, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(descriptor, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_user_timeout(descriptor, options.user_timeout_millis())
}

const fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Where to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote<'a> {
    /// TCP.
    Ip(SocketAddr),
    /// A Unix stream socket.
    Unix(&'a Path),
}

/// How a connection broke, or could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody listens there.
    Refused,
    /// There is no way there: no route, the network is down, the path does not exist.
    Unreachable,
    /// The peer did not answer in the kernel's time.
    TimedOut,
    /// This machine lacks something: descriptors, ports, memory, permission.
    Local,
    /// The peer broke the connection.
    Reset,
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        match error {
            // A full backlog of a Unix socket is `EAGAIN`.
            Errno::CONNREFUSED | Errno::AGAIN => Self::Refused,
            Errno::NETUNREACH
            | Errno::HOSTUNREACH
            | Errno::NETDOWN
            | Errno::HOSTDOWN
            | Errno::NOENT => Self::Unreachable,
            Errno::TIMEDOUT => Self::TimedOut,
            Errno::MFILE
            | Errno::NFILE
            | Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::ACCESS
            | Errno::PERM
            | Errno::AFNOSUPPORT => Self::Local,
            _ => Self::Reset,
        }
    }
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// The peer's end of stream: every byte it sent has been read.
    End,
    /// Nothing now.
    Nothing,
    /// The connection is broken, and what had arrived has been read.
    Broken(Fault),
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// So many bytes were taken, perhaps none.
    Bytes(usize),
    /// The peer takes nothing more.
    Broken,
}

/// A socket that cannot be spliced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported;

/// A connected, or connecting, stream.
#[derive(Debug)]
pub struct Stream {
    descriptor: OwnedFd,
    readable: bool,
    writable: bool,
    /// The peer's end of stream is among what is yet unread: a short read does not mean that nothing is left. Sticky.
    ended: bool,
    /// An end of stream arrived while the connection was whole, so whatever breaks later the peer had said all.
    orderly: bool,
    /// The socket's error, which the kernel tells only once.
    error: Option<Errno>,
}

impl Stream {
    pub(crate) const fn new(descriptor: OwnedFd) -> Self {
        Self {
            descriptor,
            readable: false,
            writable: false,
            ended: false,
            orderly: false,
            error: None,
        }
    }

    /// Begins to connect. The first event that says writable, or broken, tells the result.
    ///
    /// # Errors
    ///
    /// It failed at once.
    pub fn connect(remote: Remote<'_>, options: StreamOptions) -> Result<Self, Fault> {
        match remote {
            Remote::Ip(address) => {
                let descriptor =
                    net::socket_with(family(address), SocketType::STREAM, NEW_SOCKET, None)?;
                prepare(&descriptor, options)?;
                begin(&descriptor, &address)?;
                Ok(Self::new(descriptor))
            }
            Remote::Unix(path) => {
                let address = SocketAddrUnix::new(path)?;
                let descriptor =
                    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, NEW_SOCKET, None)?;
                begin(&descriptor, &address)?;
                Ok(Self::new(descriptor))
            }
        }
    }

    /// Has the kernel notice that the peer is gone. Accepted streams have that from their listener; for one that was connected
    /// it is left until it has lived for a while, since it takes four calls and most connections are short.
    pub fn guard(&self, options: StreamOptions) {
        // A Unix socket knows nothing of it, and needs none: its peer cannot go unnoticed.
        let _ = guard(&self.descriptor, options);
    }

    /// Takes in what an event says.
    pub fn note(&mut self, readiness: Readiness) {
        self.readable |= readiness.is_readable();
        self.writable |= readiness.is_writable();
        self.ended |= readiness.is_ended();
        if readiness.is_broken() {
            self.note_error();
        } else if self.error.is_none() {
            // An event after a failed write says "ended" without "broken": the write has used up the error.
            self.orderly |= readiness.is_ended();
        }
    }

    /// The address at this machine's end; `None` for a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.descriptor).ok()?.try_into().ok()
    }

    /// Whether it is connected to itself. TCP allows that: where nobody listens on a port of this machine that the kernel also
    /// hands out to whoever connects, it may happen to be handed out to this very connection.
    pub fn is_connected_to_itself(&self, remote: SocketAddr) -> bool {
        net::getsockname(&self.descriptor)
            .is_ok_and(|local| SocketAddr::try_from(local) == Ok(remote))
    }

    /// Whether an event said that it can be written to: for a connecting stream, that it is connected.
    pub const fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether an event said that there is something to read.
    pub const fn is_readable(&self) -> bool {
        self.readable
    }

    /// How the connection broke, if it did. Bytes that arrived before may still be unread.
    pub fn fault(&self) -> Option<Fault> {
        self.error.map(Fault::from)
    }

    /// Whether the peer's end of stream, or a break, has been announced.
    #[cfg(test)]
    pub(crate) const fn is_end_announced(&self) -> bool {
        self.ended
    }

    /// Whether it broke before the peer had ended its stream: the peer wants nothing more, and what it sent is not complete.
    pub fn is_reset(&self) -> bool {
        // Linux says EPIPE, not ECONNRESET, when a reset follows the peer's end of stream.
        self.error
            .is_some_and(|error| !self.orderly && error != Errno::PIPE)
    }

    /// Reads what has arrived.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Received {
        match net::recv(&self.descriptor, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => self.received_end(),
            Ok((count, _)) => {
                // A short read has emptied the socket, and the next byte makes an event. Not so an end of stream that
                // was announced before: its event has come already.
                self.readable = count == buffer.len() || self.ended;
                Received::Bytes(count)
            }
            Err(Errno::AGAIN) => {
                self.readable = false;
                Received::Nothing
            }
            Err(error) => {
                self.error.get_or_insert(error);
                self.received_end()
            }
        }
    }

    /// Writes as much as there is room for.
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        if self.error.is_some() {
            return Sent::Broken;
        }
        match net::send(&self.descriptor, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => {
                // A short write makes an event as soon as there is room again.
                self.writable = count == bytes.len();
                Sent::Bytes(count)
            }
            Err(Errno::AGAIN) => {
                self.writable = false;
                Sent::Bytes(0)
            }
            Err(error) => self.sending_failed(error),
        }
    }

    /// Moves what has arrived into an empty pipe. Only a socket that says so has nothing more: how much fits into a pipe
    /// depends on how the bytes lie in memory.
    ///
    /// # Errors
    ///
    /// This kernel cannot splice from this kind of socket; nothing has been read.
    pub(crate) fn receive_into(&mut self, pipe: &mut Pipe) -> Result<Received, Unsupported> {
        match pipe.fill(&self.descriptor) {
            Ok(0) => Ok(self.received_end()),
            Ok(count) => Ok(Received::Bytes(count)),
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(Received::Nothing)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(Unsupported),
            Err(error) => {
                self.error.get_or_insert(error);
                Ok(self.received_end())
            }
        }
    }

    /// Writes what a pipe holds, as much as there is room for.
    pub(crate) fn send_from(&mut self, pipe: &mut Pipe) -> Sent {
        if self.error.is_some() {
            return Sent::Broken;
        }
        match pipe.drain(&self.descriptor) {
            // Not even a short write says that there is no room left; one that moves nothing does.
            Ok(count @ 1..) => Sent::Bytes(count),
            Ok(_) | Err(Errno::AGAIN) => {
                self.writable = false;
                Sent::Bytes(0)
            }
            Err(error) => self.sending_failed(error),
        }
    }

    /// Sends the end of stream. A broken connection has no use for one.
    pub fn send_end(&self) {
        let _ = net::shutdown(&self.descriptor, Shutdown::Write);
    }

    /// Makes the close that follows a reset, not an end of stream. What the peer has not yet received is lost.
    pub fn reset_when_closed(&self) {
        // Without the option the descriptor is closed all the same.
        let _ = sockopt::set_socket_linger(&self.descriptor, Some(Duration::ZERO));
    }

    fn sending_failed(&mut self, error: Errno) -> Sent {
        self.error.get_or_insert(error);
        // Whatever arrived before can still be read, and no event announces its end again.
        self.readable = true;
        self.ended = true;
        Sent::Broken
    }

    fn received_end(&mut self) -> Received {
        self.readable = false;
        match self.fault() {
            Some(fault) if self.is_reset() => Received::Broken(fault),
            _ => Received::End,
        }
    }

    fn note_error(&mut self) {
        if self.error.is_none()
            && let Ok(Err(error)) = sockopt::socket_error(&self.descriptor)
        {
            self.error = Some(error);
        }
    }
}

/// For whoever moves its bytes by other means.
impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        stream.descriptor
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn begin(descriptor: &OwnedFd, address: &impl net::addr::SocketAddrArg) -> Result<(), Errno> {
    match net::connect(descriptor, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error),
    }
}
