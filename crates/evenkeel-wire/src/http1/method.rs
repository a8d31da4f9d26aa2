//! The method of a request: the ones that matter to a proxy by name, every other as it was written.

/// The longest method that is read. The longest that is registered (`UPDATEREDIRECTREF`) has 17 bytes.
pub(super) const METHOD_BYTES_MAX: usize = 32;

/// What a request asks for. Methods are told apart by case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'h> {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`
    Connect,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH`
    Patch,
    /// Any other token.
    Other(&'h str),
}

/// What of a request decides how its answer is framed. Outlives the request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The answer to HEAD has no body, whatever its head says.
    Head,
    /// An answer of 2xx to CONNECT begins a tunnel.
    Connect,
    /// Every other method.
    Other,
}

impl<'h> Method<'h> {
    /// The method of this name.
    pub fn of(name: &'h str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PATCH" => Self::Patch,
            other => Self::Other(other),
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'h str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Other(name) => name,
        }
    }

    /// Whether asking twice does what asking once does (RFC 9110, 9.2.2), so that a request whose fate is unknown may be sent again.
    pub const fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace => true,
            Self::Post | Self::Connect | Self::Patch | Self::Other(_) => false,
        }
    }

    /// What of it decides how the answer is framed.
    pub const fn asked(self) -> Asked {
        match self {
            Self::Head => Asked::Head,
            Self::Connect => Asked::Connect,
            _ => Asked::Other,
        }
    }
}
