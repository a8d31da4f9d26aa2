//! Which process listens on an address: from `/proc/net/tcp` or `/proc/net/unix` to a socket's inode, from `/proc/PID/fd` to its owner.
//!
//! Only for an error message, so everything here is best effort: another user's process cannot be looked into.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use evenkeel_core::units::Address;

/// The state LISTEN in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The flags of a socket in `/proc/net/unix` that listens.
const ACCEPTS_CONNECTIONS: &str = "00010000";

/// A process that holds an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub pid: u32,
    /// Its command's name, at most 15 bytes, as the kernel keeps it.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.command, self.pid)
    }
}

/// Who listens on the address, or on a wildcard that covers it.
pub(super) fn find(address: &Address) -> Option<Holder> {
    let inode = match address {
        Address::Ip(address) => inode_of(*address),
        Address::Unix(path) => inode_of_path(path),
    };
    let link = format!("socket:[{}]", inode?);
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let pid = pids
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| holds(*pid, &link))?;
    let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(Holder {
        pid,
        command: command.trim_end().to_owned(),
    })
}

fn holds(pid: u32, link: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors.flatten().any(|descriptor| {
        fs::read_link(descriptor.path()).is_ok_and(|target| target.to_str() == Some(link))
    })
}

fn inode_of(address: SocketAddr) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .find_map(|path| {
            let table = fs::read_to_string(path).ok()?;
            table
                .lines()
                .filter_map(listening)
                .find(|(held, _)| overlaps(*held, address))
                .map(|(_, inode)| inode)
        })
}

fn inode_of_path(path: &Path) -> Option<u64> {
    let table = fs::read_to_string("/proc/net/unix").ok()?;
    table
        .lines()
        .filter_map(listening_on_path)
        .find(|(held, _)| Path::new(held) == path)
        .map(|(_, inode)| inode)
}

/// The path and inode of a line that describes a listening Unix socket.
fn listening_on_path(line: &str) -> Option<(&str, u64)> {
    let (numbers, path) = line.split_at(line.find('/')?);
    let mut words = numbers.split_ascii_whitespace();
    let flags = words.nth(3)?;
    let inode = words.nth(2)?.parse().ok()?;
    (flags == ACCEPTS_CONNECTIONS).then_some((path, inode))
}

/// The address and inode of a line that describes a listening socket.
fn listening(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_ascii_whitespace();
    let address = parse_address(words.nth(1)?)?;
    let state = words.nth(1)?;
    let inode = words.nth(5)?.parse().ok()?;
    (state == LISTEN).then_some((address, inode))
}

/// `0100007F:15B3` is 127.0.0.1:5555: groups of four bytes in the machine's order, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let groups: Option<Vec<[u8; 4]>> = (0..ip.len())
        .step_by(8)
        .map(|start| {
            Some(
                u32::from_str_radix(ip.get(start..start + 8)?, 16)
                    .ok()?
                    .to_ne_bytes(),
            )
        })
        .collect();
    let ip = match *groups?.as_slice() {
        [octets] => IpAddr::V4(Ipv4Addr::from(octets)),
        [a, b, c, d] => {
            let octets: [u8; 16] = [a, b, c, d].concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn overlaps(held: SocketAddr, wanted: SocketAddr) -> bool {
    let (held_ip, wanted_ip) = (held.ip().to_canonical(), wanted.ip().to_canonical());
    held.port() == wanted.port()
        && (held_ip == wanted_ip || held_ip.is_unspecified() || wanted_ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of a little-endian machine, as the kernel writes it.
    #[test]
    #[cfg(target_endian = "little")]
    fn a_line_of_the_table_is_understood() {
        let line = "   1: 0100007F:15B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 48213 1 0";
        let expected = (SocketAddr::from(([127, 0, 0, 1], 5555)), 48213);
        assert_eq!(listening(line), Some(expected));

        let connected = line.replace(" 0A ", " 01 ");
        assert_eq!(listening(&connected), None);
        assert_eq!(listening("  sl  local_address rem_address   st"), None);
        assert_eq!(
            parse_address("00000000000000000000000001000000:0050"),
            "[::1]:80".parse().ok()
        );
    }

    /// This very process is found as the holder of an address it listens on.
    #[test]
    fn the_holder_of_an_address_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = find(&listener.local_addr().unwrap().into()).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert!(!holder.command.is_empty());
    }
}
