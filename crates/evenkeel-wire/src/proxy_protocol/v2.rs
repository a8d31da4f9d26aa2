//! Version 2: binary, with a checked length and typed fields behind the addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::crc32c::crc32c;
use super::{Ends, HEADER_BYTES_MAX, Header, Malformed, Parsed, UnixPath};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The bytes of a Unix socket's path.
pub const UNIX_PATH_BYTES: usize = 108;

/// The signature, version and command, family and transport, length.
const FIXED_BYTES: usize = 16;

const VERSION: u8 = 0x20;
const LOCAL: u8 = 0x0;
const PROXY: u8 = 0x1;
const UNSPECIFIED: u8 = 0x00;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;
/// The highest family and the highest transport that the specification knows.
const FAMILY_MAX: u8 = 0x3;
const TRANSPORT_MAX: u8 = 0x2;

const CHECKSUM: u8 = 0x03;
const CHECKSUM_BYTES: usize = 4;
/// A TLV's type and length.
const TLV_HEAD_BYTES: usize = 3;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    if let Some(byte) = bytes.get(12) {
        check_command(*byte)?;
    }
    let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
        return Ok(Parsed::Partial);
    };
    let command = fixed[12] & 0x0f;
    let family = fixed[13];
    let length = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > HEADER_BYTES_MAX {
        return Err(Malformed::Length);
    }
    if command == PROXY {
        check_family(family, length)?;
    }
    let Some(whole) = bytes.get(..length) else {
        return Ok(Parsed::Partial);
    };
    let header = match command {
        // The rest is to be discarded, whatever it is.
        LOCAL => Header::Local,
        _ => proxied(family, whole)?,
    };
    Ok(Parsed::Whole(header, length))
}

const fn check_command(byte: u8) -> Result<(), Malformed> {
    match (byte & 0xf0, byte & 0x0f) {
        (VERSION, LOCAL | PROXY) => Ok(()),
        (VERSION, _) => Err(Malformed::Command),
        _ => Err(Malformed::Version),
    }
}

const fn check_family(family: u8, length: usize) -> Result<(), Malformed> {
    if family >> 4 > FAMILY_MAX || family & 0x0f > TRANSPORT_MAX {
        return Err(Malformed::Family);
    }
    if length < FIXED_BYTES + address_bytes(family) {
        return Err(Malformed::Length);
    }
    Ok(())
}

/// How many bytes the addresses take; none where they are not looked at.
const fn address_bytes(family: u8) -> usize {
    match family {
        TCP_OVER_IPV4 => 2 * (4 + 2),
        TCP_OVER_IPV6 => 2 * (16 + 2),
        UNIX_STREAM => 2 * UNIX_PATH_BYTES,
        _ => 0,
    }
}

fn proxied(family: u8, whole: &[u8]) -> Result<Header, Malformed> {
    let (addresses, tlvs) = whole[FIXED_BYTES..].split_at(address_bytes(family));
    let header = match family {
        TCP_OVER_IPV4 => Header::Tcp(ends(addresses, |bytes: [u8; 4]| Ipv4Addr::from(bytes))),
        TCP_OVER_IPV6 => Header::Tcp(ends(addresses, |bytes: [u8; 16]| Ipv6Addr::from(bytes))),
        UNIX_STREAM => Header::Unix(Box::new(paths(addresses))),
        // Where the addresses end, and TLVs begin, is not known.
        _ => return Ok(Header::Local),
    };
    check_tlvs(whole, tlvs)?;
    Ok(header)
}

fn ends<const N: usize, T: Into<IpAddr>>(
    addresses: &[u8],
    ip: impl Fn([u8; N]) -> T,
) -> Ends<SocketAddr> {
    let address = |number: usize| {
        SocketAddr::new(
            ip(chunk(addresses, number * N)).into(),
            u16::from_be_bytes(chunk(addresses, 2 * N + 2 * number)),
        )
    };
    Ends {
        source: address(0),
        destination: address(1),
    }
}

fn paths(addresses: &[u8]) -> Ends<UnixPath> {
    Ends {
        source: chunk(addresses, 0),
        destination: chunk(addresses, UNIX_PATH_BYTES),
    }
}

/// So many bytes from there on; zeros if they are not there, which has been ruled out.
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let chunk = bytes.get(at..).and_then(<[u8]>::first_chunk);
    debug_assert!(chunk.is_some(), "the length has been checked");
    chunk.copied().unwrap_or([0; N])
}

/// The TLVs fill what is left of the header, and every checksum among them is right.
fn check_tlvs(whole: &[u8], mut tlvs: &[u8]) -> Result<(), Malformed> {
    while !tlvs.is_empty() {
        let [kind, high, low] = *tlvs.first_chunk::<TLV_HEAD_BYTES>().ok_or(Malformed::Tlv)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let value = tlvs[TLV_HEAD_BYTES..].get(..length).ok_or(Malformed::Tlv)?;
        if kind == CHECKSUM {
            let at = whole.len() - tlvs.len() + TLV_HEAD_BYTES;
            check_checksum(whole, at, value)?;
        }
        tlvs = &tlvs[TLV_HEAD_BYTES + length..];
    }
    Ok(())
}

/// The checksum is that of the header in which it is zeros itself.
fn check_checksum(whole: &[u8], at: usize, value: &[u8]) -> Result<(), Malformed> {
    let said: [u8; CHECKSUM_BYTES] = value.try_into().map_err(|_| Malformed::Checksum)?;
    let (before, after) = (&whole[..at], &whole[at + CHECKSUM_BYTES..]);
    let found = crc32c([before, &[0; CHECKSUM_BYTES], after]);
    if found == u32::from_be_bytes(said) {
        Ok(())
    } else {
        Err(Malformed::Checksum)
    }
}

pub(super) fn encode(header: &Header) -> Vec<u8> {
    match header {
        Header::Local => framed(LOCAL, UNSPECIFIED, &[]),
        Header::Tcp(ends) => tcp(ends),
        Header::Unix(ends) => framed(
            PROXY,
            UNIX_STREAM,
            &[ends.source, ends.destination].concat(),
        ),
    }
}

fn tcp(ends: &Ends<SocketAddr>) -> Vec<u8> {
    let Ends {
        source,
        destination,
    } = ends.of_one_family();
    let ports = [source.port(), destination.port()]
        .map(u16::to_be_bytes)
        .concat();
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ips = [source.octets(), destination.octets()].concat();
            framed(PROXY, TCP_OVER_IPV4, &[ips, ports].concat())
        }
        (source, destination) => {
            let ips = [source, destination].map(octets_of_ipv6).concat();
            framed(PROXY, TCP_OVER_IPV6, &[ips, ports].concat())
        }
    }
}

fn octets_of_ipv6(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn framed(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(FIXED_BYTES + addresses.len());
    header.extend_from_slice(SIGNATURE);
    header.extend_from_slice(&[VERSION | command, family]);
    let length = u16::try_from(addresses.len()).unwrap_or(u16::MAX);
    header.extend_from_slice(&length.to_be_bytes());
    header.extend_from_slice(addresses);
    header
}
