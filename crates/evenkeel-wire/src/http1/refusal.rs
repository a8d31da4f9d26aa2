//! Why a message is not believed: the closed list of the framing policy, each with the status and the code that it is answered with.

use std::fmt;

/// What kind of message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A client's: the client is told what is wrong.
    Request,
    /// An endpoint's: the client is told that there is no answer to be had (502).
    Response,
}

/// The rule that a message breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Too many empty lines stand before a request.
    LeadingLines,
    /// The method is no token, or longer than any that is known.
    Method,
    /// The first line is not a method, a target and a version, with one space between each.
    RequestLine,
    /// The target has a byte that a target never has, or is of a form that does not go with the method.
    Target,
    /// The target is longer than the limit.
    TargetTooLong,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// The method is CONNECT, and no tunnels are offered.
    ConnectMethod,
    /// The first line of an answer is not a version, a status of three digits and a reason, with one space between each.
    StatusLine,
    /// The head is longer than the limit.
    HeadTooLarge,
    /// The head has more header lines than the limit.
    TooManyFields,
    /// A line ends with LF alone.
    BareLineFeed,
    /// A CR stands where no LF follows it.
    BareCarriageReturn,
    /// A line begins with white space: a header that goes on from the line before.
    Folded,
    /// The name of a header is no token, or is not followed by its colon at once.
    FieldName,
    /// The value of a header has a NUL or another control character.
    FieldValue,
    /// `Connection` has more options than are looked at.
    TooManyOptions,
    /// A request of HTTP/1.1 has no `Host`.
    HostMissing,
    /// There is more than one `Host`.
    HostRepeated,
    /// `Host` is not a name or an address, perhaps with a port.
    Host,
    /// A `Content-Length` is not one plain number that 64 bits can hold.
    Length,
    /// There are several `Content-Length`, and they differ.
    LengthsDiffer,
    /// `Transfer-Encoding` is anything but one `chunked`.
    TransferEncoding,
    /// `Transfer-Encoding` in a message of HTTP/1.0, which does not have it.
    TransferEncodingTooOld,
    /// Both `Content-Length` and `Transfer-Encoding`.
    LengthAndChunked,
    /// A chunk's size is no hexadecimal number, or larger than 64 bits can hold.
    ChunkSize,
    /// A chunk's extension has a control character, or extensions are longer than the limit.
    ChunkExtension,
    /// A chunk's data is not followed by CR and LF.
    ChunkEnd,
    /// The trailers are longer than the limit.
    TrailersTooLarge,
    /// There are more trailers than the limit.
    TooManyTrailers,
    /// The connection has ended before the body has.
    BodyCut,
}

impl Refusal {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 30] = [
        Self::LeadingLines,
        Self::Method,
        Self::RequestLine,
        Self::Target,
        Self::TargetTooLong,
        Self::Version,
        Self::ConnectMethod,
        Self::StatusLine,
        Self::HeadTooLarge,
        Self::TooManyFields,
        Self::BareLineFeed,
        Self::BareCarriageReturn,
        Self::Folded,
        Self::FieldName,
        Self::FieldValue,
        Self::TooManyOptions,
        Self::HostMissing,
        Self::HostRepeated,
        Self::Host,
        Self::Length,
        Self::LengthsDiffer,
        Self::TransferEncoding,
        Self::TransferEncodingTooOld,
        Self::LengthAndChunked,
        Self::ChunkSize,
        Self::ChunkExtension,
        Self::ChunkEnd,
        Self::TrailersTooLarge,
        Self::TooManyTrailers,
        Self::BodyCut,
    ];

    /// The status that the client is answered with.
    pub const fn status(self, of: Message) -> u16 {
        match of {
            Message::Request => self.told().1,
            Message::Response => 502,
        }
    }

    /// A word that stays the same over releases, for logs, metrics and the answer.
    pub const fn code(self) -> &'static str {
        self.told().0
    }

    /// The code, the status of a refused request, and a sentence for people.
    const fn told(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::LeadingLines => (
                "leading_lines",
                400,
                "too many empty lines before a request",
            ),
            Self::Method => ("bad_method", 400, "the method is no token"),
            Self::RequestLine => (
                "bad_request_line",
                400,
                "the first line is not a method, a target and a version",
            ),
            Self::Target => (
                "bad_target",
                400,
                "the target has a form or a byte that it must not have",
            ),
            Self::TargetTooLong => ("target_too_long", 414, "the target is too long"),
            Self::Version => (
                "bad_version",
                505,
                "the version is neither HTTP/1.0 nor HTTP/1.1",
            ),
            Self::ConnectMethod => ("connect_method", 501, "no tunnels are offered"),
            Self::StatusLine => (
                "bad_status_line",
                400,
                "the first line is not a version, a status and a reason",
            ),
            Self::HeadTooLarge => ("head_too_large", 431, "the head is too large"),
            Self::TooManyFields => ("too_many_headers", 431, "there are too many headers"),
            Self::BareLineFeed => ("bare_lf", 400, "a line ends with LF alone"),
            Self::BareCarriageReturn => ("bare_cr", 400, "a CR is not followed by LF"),
            Self::Folded => ("obs_fold", 400, "a line begins with white space"),
            Self::FieldName => (
                "bad_header_name",
                400,
                "the name of a header is no token with a colon behind it",
            ),
            Self::FieldValue => ("bad_header_value", 400, "a header has a control character"),
            Self::TooManyOptions => ("too_many_options", 400, "Connection has too many options"),
            Self::HostMissing => ("host_missing", 400, "there is no Host"),
            Self::HostRepeated => ("host_repeated", 400, "there is more than one Host"),
            Self::Host => ("bad_host", 400, "Host is no name or address"),
            Self::Length => (
                "bad_content_length",
                400,
                "Content-Length is not one plain number",
            ),
            Self::LengthsDiffer => (
                "content_lengths_differ",
                400,
                "several Content-Length differ",
            ),
            Self::TransferEncoding => (
                "bad_transfer_encoding",
                400,
                "Transfer-Encoding is not one chunked",
            ),
            Self::TransferEncodingTooOld => (
                "transfer_encoding_in_1_0",
                400,
                "HTTP/1.0 has no Transfer-Encoding",
            ),
            Self::LengthAndChunked => (
                "length_and_chunked",
                400,
                "both Content-Length and Transfer-Encoding",
            ),
            Self::ChunkSize => (
                "bad_chunk_size",
                400,
                "the size of a chunk is no hexadecimal number, or too large",
            ),
            Self::ChunkExtension => (
                "bad_chunk_extension",
                400,
                "the extension of a chunk has a control character, or is too long",
            ),
            Self::ChunkEnd => (
                "bad_chunk_end",
                400,
                "the data of a chunk is not followed by CR and LF",
            ),
            Self::TrailersTooLarge => ("trailers_too_large", 431, "the trailers are too large"),
            Self::TooManyTrailers => ("too_many_trailers", 431, "there are too many trailers"),
            Self::BodyCut => ("body_cut", 400, "the connection ended before the body"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.told().2)
    }
}

impl std::error::Error for Refusal {}
