//! Where an accepted stream comes from. A Unix socket's clients have no address, and so nothing that tells them apart.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rustix::net::SocketAddrAny;

/// Where a stream comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An IP address and a TCP port.
    Ip(SocketAddr),
    /// A Unix socket of this machine.
    Unix,
}

impl Origin {
    /// As the kernel tells it with an accepted socket. It tells nothing of a Unix client that is not bound to a path, as
    /// practically none is.
    pub(crate) fn of(peer: Option<SocketAddrAny>) -> Self {
        peer.and_then(|peer| SocketAddr::try_from(peer).ok())
            .map_or(Self::Unix, Self::Ip)
    }

    /// The IP address; `None` for a Unix socket.
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }
}

impl From<SocketAddr> for Origin {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

/// The address, or the word `unix`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
