//! Listening sockets that somebody else has opened: a service manager, or the process that this one follows.
//!
//! What comes from outside is judged before it is used: a number may be nobody's descriptor, and a descriptor may be
//! anything. Whose sockets they are to be is decided elsewhere. The one place of this project with unsafe code.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{
    self, AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, ipproto, sockopt,
};

/// The first descriptor that a service manager hands over: those before it are standard input, output and error.
const FIRST: RawFd = 3;

/// The most descriptors that a process is started with; more are a mistake of whoever says so.
pub const STARTED_WITH_MAX: usize = 4096;

/// Takes the descriptors that this process was started with, from the third on, as `LISTEN_FDS` counts them. Each is one's own
/// only once: a second call gets none.
///
/// An error stands in the place of a number that cannot have come from whoever started the process: nothing is open there,
/// or it is something that this process has opened itself.
pub fn started_with(count: usize) -> Vec<io::Result<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    (FIRST..)
        .take(count.min(STARTED_WITH_MAX))
        .map(own)
        .collect()
}

/// A descriptor that outlives `exec` has its close-on-exec flag clear, and whatever this process opens has it set. So the flag
/// tells them apart, and nothing that somebody here owns is taken from them.
#[expect(
    unsafe_code,
    reason = "an inherited descriptor is a bare number, and becomes one's own here"
)]
fn own(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the number is not -1. It is only asked about, and the kernel answers EBADF where nothing is open.
    let seen = unsafe { BorrowedFd::borrow_raw(number) };
    if fcntl_getfd(seen)?.contains(FdFlags::CLOEXEC) {
        return Err(io::Error::other("it was opened by this process itself"));
    }
    fcntl_setfd(seen, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and nobody here owns it: it was not opened here (see above), and each number is taken at most once
    // (see `TAKEN`).
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Where a listening socket is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundAddress {
    /// An IP address and a TCP port.
    Ip(SocketAddr),
    /// A path.
    Path(PathBuf),
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Why a descriptor cannot be accepted on.
#[derive(Debug)]
pub enum Unfit {
    /// It is a file, a pipe or the like.
    NotASocket,
    /// It is a socket of another kind: datagrams, or another family.
    WrongKind,
    /// Nobody has made it listen.
    NotListening,
    /// It has no address that it could be told by.
    Unnamed,
    /// What the system says.
    Io(io::Error),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASocket => f.write_str("it is not a socket"),
            Self::WrongKind => f.write_str("it is neither a TCP nor a Unix stream socket"),
            Self::NotListening => f.write_str("it does not listen"),
            Self::Unnamed => f.write_str("it has no address"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<Errno> for Unfit {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// A descriptor that has been found to be a listening stream socket with an address.
#[derive(Debug)]
pub struct Inherited {
    descriptor: OwnedFd,
    address: BoundAddress,
}

impl Inherited {
    /// Judges a descriptor. One that is fit will not block, and is closed on `exec`.
    ///
    /// # Errors
    ///
    /// It cannot be accepted on; it is closed.
    pub fn examine(descriptor: OwnedFd) -> Result<Self, Unfit> {
        let kind = FileType::from_raw_mode(fstat(&descriptor)?.st_mode);
        if kind != FileType::Socket {
            return Err(Unfit::NotASocket);
        }
        if !is_stream(&descriptor)? {
            return Err(Unfit::WrongKind);
        }
        if !sockopt::socket_acceptconn(&descriptor)? {
            return Err(Unfit::NotListening);
        }
        let address = address_of(&net::getsockname(&descriptor)?).ok_or(Unfit::Unnamed)?;
        fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
        // A service manager's sockets block.
        fcntl_setfl(&descriptor, fcntl_getfl(&descriptor)? | OFlags::NONBLOCK)?;
        Ok(Self {
            descriptor,
            address,
        })
    }

    /// Where it is bound.
    pub const fn address(&self) -> &BoundAddress {
        &self.address
    }

    /// Whether other sockets of this user may be bound beside it (`SO_REUSEPORT`).
    pub fn shares_its_address(&self) -> bool {
        matches!(self.address, BoundAddress::Ip(_))
            && sockopt::socket_reuseport(&self.descriptor).unwrap_or(false)
    }
}

impl From<Inherited> for OwnedFd {
    fn from(inherited: Inherited) -> Self {
        inherited.descriptor
    }
}

fn is_stream(descriptor: &OwnedFd) -> Result<bool, Errno> {
    if sockopt::socket_type(descriptor)? != SocketType::STREAM {
        return Ok(false);
    }
    Ok(match sockopt::socket_domain(descriptor)? {
        AddressFamily::INET | AddressFamily::INET6 => {
            sockopt::socket_protocol(descriptor)? == Some(ipproto::TCP)
        }
        family => family == AddressFamily::UNIX,
    })
}

pub(crate) fn address_of(name: &SocketAddrAny) -> Option<BoundAddress> {
    if let Ok(address) = SocketAddr::try_from(name.clone()) {
        return Some(BoundAddress::Ip(address));
    }
    let name = SocketAddrUnix::try_from(name.clone()).ok()?;
    let path = std::ffi::OsStr::from_bytes(name.path_bytes()?);
    Some(BoundAddress::Path(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What listens is taken, and its address is told.
    #[test]
    fn listening_sockets_are_fit() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let expected = BoundAddress::Ip(tcp.local_addr().unwrap());
        let tcp = Inherited::examine(tcp.into()).unwrap();
        assert_eq!(*tcp.address(), expected);
        assert!(!tcp.shares_its_address());

        let path = std::env::temp_dir().join(format!("ek-inherit-{}", std::process::id()));
        let unix = Inherited::examine(UnixListener::bind(&path).unwrap().into()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(*unix.address(), BoundAddress::Path(path));
    }

    /// Everything else is refused for what it is.
    #[test]
    fn anything_else_is_unfit() {
        let file = File::open("/dev/null").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();

        assert!(matches!(
            Inherited::examine(file.into()),
            Err(Unfit::NotASocket)
        ));
        assert!(matches!(
            Inherited::examine(datagrams.into()),
            Err(Unfit::WrongKind)
        ));
        assert!(matches!(
            Inherited::examine(connected.into()),
            Err(Unfit::NotListening)
        ));
    }

    /// What this process has opened itself is nobody's to take, nor is a number that nothing is open at.
    #[test]
    fn ones_own_descriptors_are_not_taken() {
        use std::os::fd::AsRawFd;
        let own_file = File::open("/dev/null").unwrap();

        assert!(own(own_file.as_raw_fd()).is_err());
        assert!(own(RawFd::MAX).is_err());
    }
}
