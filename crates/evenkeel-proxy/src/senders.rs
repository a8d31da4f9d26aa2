//! Whose PROXY header is believed. Pure.
//!
//! A header names whoever its sender likes. So only those that are listed are asked for one; what all others send is their own.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use evenkeel_reactor::Origin;

/// One entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Every address of a network.
    Network(Network),
    /// Every client of the Unix socket.
    Unix,
}

impl Sender {
    /// Whether a connection from there is one of the sender's.
    pub fn includes(&self, origin: Origin) -> bool {
        match (self, origin) {
            (Self::Network(network), Origin::Ip(address)) => network.contains(address.ip()),
            (Self::Unix, Origin::Unix) => true,
            _ => false,
        }
    }
}

/// `unix`, or a network.
impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// A network in CIDR notation: all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotANetwork {
    /// What stands before the `/` is no IP address.
    Address,
    /// What stands behind the `/` is no number of bits, or more than this, which an address of that family has.
    Prefix(u8),
    /// The address has bits beyond the prefix; this is the network that it lies in.
    Within(Network),
    /// It is IPv4 written as IPv6, which no connection comes from.
    Mapped,
}

impl Network {
    fn new(ip: IpAddr, prefix: u8) -> Self {
        let first = match ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask_v4(prefix))),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask_v6(prefix))),
        };
        Self { first, prefix }
    }

    /// Whether it is one of the network's addresses.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.first.is_ipv4() && Self::new(ip, self.prefix).first == self.first
    }
}

const fn mask_v4(prefix: u8) -> u32 {
    // Shifting by all bits is no shift.
    match u32::MAX.checked_shl(32 - prefix as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

const fn mask_v6(prefix: u8) -> u128 {
    match u128::MAX.checked_shl(128 - prefix as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

const fn bits(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// `10.0.0.0/8`; an address alone is the network that has no other.
impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| NotANetwork::Address)?;
        if ip.to_canonical() != ip {
            return Err(NotANetwork::Mapped);
        }
        let prefix = match prefix {
            Some(prefix) => parse_prefix(prefix, bits(ip))?,
            None => bits(ip),
        };
        let network = Self::new(ip, prefix);
        if network.first == ip {
            Ok(network)
        } else {
            Err(NotANetwork::Within(network))
        }
    }
}

fn parse_prefix(text: &str, most: u8) -> Result<u8, NotANetwork> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let prefix = text.parse().ok();
    prefix
        .filter(|prefix| is_plain && *prefix <= most)
        .ok_or(NotANetwork::Prefix(most))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    /// The bits before the prefix decide, from none to all, and never those of another family.
    #[test]
    fn a_network_is_its_first_bits() {
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.0/25", "192.0.2.127", "192.0.2.128"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::ffff:126.0.0.1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1/128", "::1", "::2"),
            ("::/0", "ffff::", "0.0.0.0"),
        ] {
            let network = network(text);
            assert!(network.contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(
                !network.contains(outside.parse().unwrap()),
                "{text} {outside}"
            );
        }
    }

    /// What is printed is read again as the same network.
    #[test]
    fn a_network_is_printed_as_it_is_written() {
        for text in ["10.0.0.0/8", "192.0.2.7/32", "::/0", "2001:db8::/32"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("192.0.2.7").to_string(), "192.0.2.7/32");
    }

    /// Each mistake is told apart, and a network that is meant is found.
    #[test]
    fn what_is_no_network_says_why() {
        for (text, why) in [
            ("", NotANetwork::Address),
            ("localhost", NotANetwork::Address),
            ("10.0.0/8", NotANetwork::Address),
            ("10.0.0.0:80/8", NotANetwork::Address),
            ("10.0.0.0/", NotANetwork::Prefix(32)),
            ("10.0.0.0/33", NotANetwork::Prefix(32)),
            ("10.0.0.0/+8", NotANetwork::Prefix(32)),
            ("10.0.0.0/255.0.0.0", NotANetwork::Prefix(32)),
            ("::/129", NotANetwork::Prefix(128)),
            ("10.0.0.1/8", NotANetwork::Within(network("10.0.0.0/8"))),
            ("::ffff:10.0.0.0/104", NotANetwork::Mapped),
        ] {
            assert_eq!(text.parse::<Network>(), Err(why), "{text}");
        }
    }

    /// An address has no part in the word for Unix sockets, nor the other way round.
    #[test]
    fn unix_clients_are_a_sender_of_their_own() {
        let ip = Origin::Ip(([127, 0, 0, 1], 5).into());
        let local = Sender::Network(network("127.0.0.0/8"));
        assert!(local.includes(ip) && !local.includes(Origin::Unix));
        assert!(Sender::Unix.includes(Origin::Unix) && !Sender::Unix.includes(ip));
    }
}
