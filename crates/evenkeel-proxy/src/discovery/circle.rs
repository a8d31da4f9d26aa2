//! Whether a session would come back to the listener that it came in by: it would go round until the descriptors run out.

use std::net::{IpAddr, SocketAddr};

use evenkeel_core::units::Address;

/// Whether both addresses cannot be listened on at once.
pub fn overlap(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Ip(one), Address::Ip(other)) => overlap_ip(*one, *other),
        (one, other) => one == other,
    }
}

/// `[::]` takes IPv6 alone.
fn overlap_ip(one: SocketAddr, other: SocketAddr) -> bool {
    let same_port = one.port() == other.port() && one.port() != 0;
    let same_family = one.is_ipv4() == other.is_ipv4();
    let same_address =
        one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    same_port && same_family && same_address
}

/// Whether a connection to the address is accepted by whoever listens there, as far as can be said without asking for this
/// machine's addresses.
pub fn leads_back(address: &Address, bind: &Address) -> bool {
    let this_machine = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    overlap(address, bind)
        && (address == bind || address.ip().is_some_and(|ip| this_machine(ip.ip())))
}
