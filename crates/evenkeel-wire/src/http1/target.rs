//! The target of a request in its four forms (RFC 9112, 3.2).
//!
//! A path is passed on as it was written. What two paths have in common is for routes to decide.

use super::{Host, Method, Refusal};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'h> {
    /// A path of whoever `Host` names: what clients send to servers.
    Origin {
        /// From its `/` on, without the query.
        path: &'h str,
        /// What stands behind the first `?`.
        query: Option<&'h str>,
    },
    /// A whole URI: what clients send to proxies. It is passed on as a path, with its own host in `Host`.
    Absolute {
        /// How it would be fetched.
        scheme: Scheme,
        /// Whom it is for; a `Host` that says otherwise counts for nothing.
        host: Host<'h>,
        /// From its `/` on, without the query; `/` where there is none, but `*` for OPTIONS, as RFC 9112 (3.2.4) wants it passed on.
        path: &'h str,
        /// What stands behind the first `?`.
        query: Option<&'h str>,
    },
    /// Where a tunnel (CONNECT) should lead.
    Authority(Host<'h>),
    /// `*`, whoever answers (OPTIONS).
    Asterisk,
}

/// How something is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Through TLS.
    Https,
}

impl Scheme {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl<'h> Target<'h> {
    pub(super) fn parse(method: Method<'_>, text: &'h str) -> Result<Self, Refusal> {
        if !text
            .bytes()
            .fold(true, |all, byte| all & is_of_target(byte))
        {
            return Err(Refusal::Target);
        }
        match (method, text) {
            (Method::Connect, authority) => tunnel(authority),
            (_, path) if path.starts_with('/') => Ok(origin(path)),
            (Method::Options, "*") => Ok(Self::Asterisk),
            (_, uri) => absolute(method, uri),
        }
    }

    /// The path without the query; `*` where it is about whoever answers, empty for a tunnel.
    pub const fn path(&self) -> &'h str {
        match *self {
            Self::Origin { path, .. } | Self::Absolute { path, .. } => path,
            Self::Asterisk => "*",
            Self::Authority(_) => "",
        }
    }

    /// What stands behind the first `?`.
    pub const fn query(&self) -> Option<&'h str> {
        match *self {
            Self::Origin { query, .. } | Self::Absolute { query, .. } => query,
            Self::Authority(_) | Self::Asterisk => None,
        }
    }
}

/// Visible ASCII, without the `#` whose right side is the client's own business.
pub(super) const fn is_of_target(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}

fn origin(text: &str) -> Target<'_> {
    let (path, query) = split_query(text);
    Target::Origin { path, query }
}

/// A tunnel leads to a host and a port, both said.
fn tunnel(text: &str) -> Result<Target<'_>, Refusal> {
    let host = Host::parse(text.as_bytes()).map_err(|_| Refusal::Target)?;
    if host.name.is_empty() || host.port.is_none() {
        return Err(Refusal::Target);
    }
    Ok(Target::Authority(host))
}

/// Only what is fetched by HTTP, from somewhere.
fn absolute<'h>(method: Method<'_>, uri: &'h str) -> Result<Target<'h>, Refusal> {
    let (scheme, rest) = uri.split_once("://").ok_or(Refusal::Target)?;
    let scheme = scheme_of(scheme).ok_or(Refusal::Target)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(end);
    let host = Host::parse(authority.as_bytes()).map_err(|_| Refusal::Target)?;
    if host.name.is_empty() {
        return Err(Refusal::Target);
    }
    let (path, query) = split_query(path_and_query);
    let path = match (path, method, query) {
        ("", Method::Options, None) => "*",
        ("", ..) => "/",
        (path, ..) => path,
    };
    Ok(Target::Absolute {
        scheme,
        host,
        path,
        query,
    })
}

fn scheme_of(name: &str) -> Option<Scheme> {
    let schemes = [Scheme::Http, Scheme::Https];
    let mut schemes = schemes.into_iter();
    schemes.find(|scheme| scheme.as_str().eq_ignore_ascii_case(name))
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    }
}
