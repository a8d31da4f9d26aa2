//! The units everything else is counted in: time, weights, names, keys, addresses.
//!
//! Plain values without behaviour of their own. No clock is read here: a [`Time`] always comes from outside.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A moment, in microseconds since an origin that the caller chooses once per process.
///
/// One `u64` instead of `std::time::Instant`, so that it fits an atomic and a simulation can make its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin itself.
    pub const ZERO: Self = Self(0);
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment `later` after this one; [`Time::NEVER`] on overflow.
    pub fn after(self, later: Duration) -> Self {
        let micros = u64::try_from(later.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long ago `earlier` was; zero if it has not come yet.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// An endpoint's share of the work, relative to its neighbours; 0 means no new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// No new work.
    pub const ZERO: Self = Self(0);
    /// What an endpoint has unless configured otherwise.
    pub const ONE: Self = Self(1);
    /// The largest weight: it keeps every sum over 65,536 endpoints far inside an `i64`.
    pub const MAX: Self = Self(1_000_000);

    /// `None` above [`Weight::MAX`].
    pub const fn new(weight: u32) -> Option<Self> {
        if weight <= Self::MAX.0 {
            Some(Self(weight))
        } else {
            None
        }
    }

    /// The plain number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies an endpoint for as long as the process runs; never used again for another one.
///
/// It stays with an endpoint over reloads while its name and address stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u64);

/// Where somebody listens: an endpoint, or a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IP address and a TCP port.
    Ip(SocketAddr),
    /// A Unix stream socket's path.
    Unix(Arc<Path>),
}

impl Address {
    /// The IP address and port; `None` for a Unix socket, which has neither.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The hash of whatever decides placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashKey(pub u64);

impl HashKey {
    /// XXH3 (64 bit, seed 0) of the bytes: the same on every machine and in every release.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(bytes))
    }

    /// Of an IP address, so that an IPv4 address and its IPv4-mapped IPv6 form are one key.
    pub fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::of_bytes(&v4.octets()),
            IpAddr::V6(v6) => Self::of_bytes(&v6.octets()),
        }
    }
}
