//! What is asked of DNS, and one thing that it may answer.

use std::fmt;
use std::net::SocketAddr;

use super::name::DnsName;

/// What an item of `endpoints` asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Which addresses has this host? All of them have the one port.
    Host {
        /// Its name.
        name: DnsName,
        /// The port.
        port: u16,
        /// Which addresses count.
        family: Family,
    },
    /// Which hosts and ports offer this service? They have priorities and weights.
    Service {
        /// The name of its SRV records.
        name: DnsName,
        /// Which addresses of the hosts count.
        family: Family,
    },
}

/// Which of a host's addresses count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4 if it has any, or else IPv6: a machine with both is one endpoint, not two.
    #[default]
    PreferIpv4,
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
    /// Both.
    Any,
}

/// An address that a question leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The lowest is used first; 0 for a host.
    pub priority: u16,
    /// From an SRV record; `None` for a host.
    pub weight: Option<u16>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Question {
    /// Which addresses count.
    pub const fn family(&self) -> Family {
        match self {
            Self::Host { family, .. } | Self::Service { family, .. } => *family,
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { name, port, .. } => write!(f, "{name}:{port}"),
            Self::Service { name, .. } => write!(f, "srv {name}"),
        }
    }
}

impl Family {
    pub(super) const fn asks_ipv4(self) -> bool {
        !matches!(self, Self::Ipv6)
    }

    pub(super) const fn asks_ipv6(self) -> bool {
        !matches!(self, Self::Ipv4)
    }
}
