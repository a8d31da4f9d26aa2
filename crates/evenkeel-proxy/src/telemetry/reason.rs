//! Why a session ended: one closed list for the access log, the counters and the documentation.

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+) => {
        /// Why a session ended. Each has one code, the same everywhere.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The code, as logs and metrics spell it.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }
    };
}

reasons! {
    /// Both sides sent their end of stream, and every byte was delivered.
    Done = "done",
    /// The endpoint refused the connection, as did every other one tried.
    ConnectRefused = "connect_refused",
    /// No attempt to connect was answered within the connect timeout.
    ConnectTimeout = "connect_timeout",
    /// The endpoint could not be reached (no route, network down).
    ConnectUnreachable = "connect_unreachable",
    /// This machine could not open another connection (descriptors, ports, memory).
    LocalResources = "local_resources",
    /// No endpoint of the cluster is usable.
    NoEndpoint = "no_endpoint",
    /// Every usable endpoint is full, and so is the wait queue.
    QueueFull = "queue_full",
    /// No endpoint had a free slot within the queue timeout.
    QueueTimeout = "queue_timeout",
    /// The endpoint sent no answer byte within the first-byte timeout.
    FirstByteTimeout = "first_byte_timeout",
    /// No byte moved for the idle timeout.
    IdleTimeout = "idle_timeout",
    /// One side had ended its stream, and the other sent nothing more for the half-closed timeout.
    HalfClosedTimeout = "half_closed_timeout",
    /// The endpoint reset the connection.
    UpstreamReset = "upstream_reset",
    /// The endpoint ended the connection before its first answer byte.
    UpstreamClosed = "upstream_closed",
    /// Probes found the endpoint down, and its cluster closes the sessions of such endpoints.
    EndpointDown = "endpoint_down",
    /// The client reset the connection.
    ClientReset = "client_reset",
    /// The client went away before an endpoint was connected.
    ClientClosed = "client_closed",
    /// The client sent nothing usable before its end of stream.
    EmptyRequest = "empty_request",
    /// The client's first bytes did not come within the preread timeout.
    PrereadTimeout = "preread_timeout",
    /// A trusted sender began with no PROXY header, or with a malformed one.
    ProxyProtocolError = "proxy_protocol_error",
    /// No rule of the listener is for it, and the listener has no target for all others.
    NoRoute = "no_route",
    /// A limit of this process was reached.
    Limit = "limit",
    /// The stop deadline passed while the session still ran.
    StopDeadline = "stop",
    /// A fault of evenkeel itself; the program log says which.
    Internal = "internal",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

    /// The table in the documentation has every code, in this order, and no other.
    #[test]
    fn the_documentation_lists_every_code() {
        let (_, table) = OPERATIONS.split_once("## Reason codes").unwrap();

        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented: Vec<&str> = rows
            .filter_map(|row| Some(row.split_once('`')?.0))
            .collect();

        let codes: Vec<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(documented, codes);
    }

    /// A reason's number is its place in the list: counters are indexed by it.
    #[test]
    fn numbers_are_places() {
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }
}
