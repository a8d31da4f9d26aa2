//! What the process asks of the kernel at its start: descriptors, and bounds for receive buffers.

use std::fs;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the kernel lets receive buffers grow to unless its administrator has changed it. With send buffers of at most 4 MiB a
/// session then holds at most 14 MiB in flight: what its endpoint's kernel has not sent, what ours has received, and what ours
/// has not sent.
const GROWTH_BYTES_MAX: usize = 6 << 20;

/// The receive buffer asked for where the kernel would let them grow further; the kernel doubles it.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// Raises the soft limit on open descriptors to the hard one: a session takes two. If that fails the process runs on with
/// what it has.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        tracing::warn!(%error, ?current, ?maximum, "the limit on open descriptors cannot be raised");
    }
}

/// How many more descriptors this process may open; `None` if there is no limit.
pub(crate) fn free_descriptors() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile).current?;
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    Some(limit.saturating_sub(open as u64))
}

/// The receive buffer to ask for; `None` leaves it to the kernel.
///
/// The kernel grows a receive buffer up to the third number of `net.ipv4.tcp_rmem`. On machines tuned for long fat
/// networks that is 32 MiB and more, and so much would lie in flight behind a client that has stopped reading.
pub(crate) fn receive_buffer() -> Option<usize> {
    let grows_to = last_number("/proc/sys/net/ipv4/tcp_rmem")?;
    let may_be_set_to = last_number("/proc/sys/net/core/rmem_max")?;
    bounded_receive_buffer(grows_to, may_be_set_to)
}

fn bounded_receive_buffer(grows_to: usize, may_be_set_to: usize) -> Option<usize> {
    let is_bounded = grows_to <= GROWTH_BYTES_MAX;
    // A smaller buffer than wanted would cost throughput on every connection to save memory on few.
    let is_settable = may_be_set_to >= RECEIVE_BUFFER_BYTES;
    (!is_bounded && is_settable).then_some(RECEIVE_BUFFER_BYTES)
}

/// The ports that the kernel hands out to whoever connects, as they were when this was first asked; all where it does not say.
pub(crate) fn handed_out_ports() -> &'static RangeInclusive<u16> {
    static PORTS: OnceLock<RangeInclusive<u16>> = OnceLock::new();
    PORTS.get_or_init(|| {
        fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
            .ok()
            .and_then(|text| parse_range(&text))
            .unwrap_or(0..=u16::MAX)
    })
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.trim_ascii().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim_ascii().parse().ok()?)
}

fn last_number(path: &str) -> Option<usize> {
    fs::read_to_string(path)
        .ok()?
        .split_ascii_whitespace()
        .last()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own words, and words that are none.
    #[test]
    fn a_range_of_ports_is_understood() {
        assert_eq!(parse_range("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(parse_range("32768\n"), None);
        assert_eq!(parse_range(""), None);
    }

    /// Only a kernel that would let buffers grow beyond the bound, and lets us set it, is interfered with.
    #[test]
    fn the_kernels_own_bound_is_preferred() {
        const MIB: usize = 1 << 20;
        assert_eq!(bounded_receive_buffer(6 * MIB, 4 * MIB), None);
        assert_eq!(
            bounded_receive_buffer(32 * MIB, 4 * MIB),
            Some(RECEIVE_BUFFER_BYTES)
        );
        assert_eq!(bounded_receive_buffer(32 * MIB, 212_992), None);
    }
}
