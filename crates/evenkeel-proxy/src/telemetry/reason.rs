//! Why a session ended: one closed list for the access log, the counters and the documentation.

use std::fmt;

use evenkeel_wire::http1::Refusal;

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

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                let meaning = match self {
                    $(Self::$variant => concat!($($doc),+),)+
                };
                meaning.trim_start().trim_end_matches('.')
            }

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
    /// The client did not send the whole head of its request in time.
    HeadTimeout = "head_timeout",
    /// The client sent nothing of the body of its request for too long.
    BodyTimeout = "body_timeout",
    /// The body of the request is larger than the limit.
    BodyTooLarge = "body_too_large",
    /// The exchange took longer than it may as a whole.
    RequestTimeout = "request_timeout",
    /// The endpoint had begun its answer and sent nothing more of it for too long.
    UpstreamIdleTimeout = "upstream_idle_timeout",
    /// The endpoint has as many connections as it may, and as many wait for one as may.
    PoolFull = "pool_full",
    /// No connection to the endpoint became free in time.
    PoolTimeout = "pool_timeout",
    /// Too many empty lines stand before a request.
    LeadingLines = "leading_lines",
    /// The method is no token, or longer than any that is known.
    BadMethod = "bad_method",
    /// The first line is not a method, a target and a version, with one space between each.
    BadRequestLine = "bad_request_line",
    /// The target has a byte that a target never has, or is of a form that does not go with the method.
    BadTarget = "bad_target",
    /// The target is longer than the limit.
    TargetTooLong = "target_too_long",
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    BadVersion = "bad_version",
    /// The method is CONNECT, and no tunnels are offered.
    ConnectMethod = "connect_method",
    /// The first line of an answer is not a version, a status of three digits and a reason, with one space between each.
    BadStatusLine = "bad_status_line",
    /// The head is longer than the limit.
    HeadTooLarge = "head_too_large",
    /// The head has more header lines than the limit.
    TooManyFields = "too_many_headers",
    /// A line ends with LF alone.
    BareLineFeed = "bare_lf",
    /// A CR stands where no LF follows it.
    BareCarriageReturn = "bare_cr",
    /// A line begins with white space: a header that goes on from the line before.
    ObsFold = "obs_fold",
    /// The name of a header is no token, or is not followed by its colon at once.
    BadHeaderName = "bad_header_name",
    /// The value of a header has a NUL or another control character.
    BadHeaderValue = "bad_header_value",
    /// `Connection` has more options than are looked at.
    TooManyOptions = "too_many_options",
    /// A request of HTTP/1.1 has no `Host`.
    HostMissing = "host_missing",
    /// There is more than one `Host`.
    HostRepeated = "host_repeated",
    /// `Host` is not a name or an address, perhaps with a port.
    BadHost = "bad_host",
    /// A `Content-Length` is not one plain number that 64 bits can hold.
    BadContentLength = "bad_content_length",
    /// There are several `Content-Length`, and they differ.
    LengthsDiffer = "content_lengths_differ",
    /// `Transfer-Encoding` is anything but one `chunked`.
    BadTransferEncoding = "bad_transfer_encoding",
    /// `Transfer-Encoding` in a message of HTTP/1.0, which does not have it.
    TransferEncodingTooOld = "transfer_encoding_in_1_0",
    /// Both `Content-Length` and `Transfer-Encoding`.
    LengthAndChunked = "length_and_chunked",
    /// A chunk's size is no hexadecimal number, or larger than 64 bits can hold.
    BadChunkSize = "bad_chunk_size",
    /// A chunk's extension has a control character, or extensions are longer than the limit.
    BadChunkExtension = "bad_chunk_extension",
    /// A chunk's data is not followed by CR and LF.
    BadChunkEnd = "bad_chunk_end",
    /// The trailers are longer than the limit.
    TrailersTooLarge = "trailers_too_large",
    /// There are more trailers than the limit.
    TooManyTrailers = "too_many_trailers",
    /// The connection has ended before the body has.
    BodyCut = "body_cut",
    /// A limit of this process was reached.
    Limit = "limit",
    /// The stop deadline passed while the session still ran.
    StopDeadline = "stop",
    /// A fault of evenkeel itself; the program log says which.
    Internal = "internal",
}

impl Reason {
    /// Why a message was refused that is no HTTP, or none that could be read in one way.
    pub fn of_refusal(refusal: Refusal) -> Self {
        let mut reasons = Self::ALL.iter();
        let same = reasons.find(|reason| reason.code() == refusal.code());
        same.copied().unwrap_or(Self::Internal)
    }
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

    /// There is a reason for each rule that a message of HTTP can break.
    #[test]
    fn every_refusal_is_a_reason() {
        for refusal in Refusal::ALL {
            assert_eq!(Reason::of_refusal(refusal).code(), refusal.code());
        }
    }

    /// A reason's number is its place in the list: counters are indexed by it.
    #[test]
    fn numbers_are_places() {
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
    }
}
