//! From what is known of a session to where it goes.
//!
//! A listener has one route. It says which first bytes must be seen before a session can be placed, and resolves the facts
//! into a placement; it reads nothing itself.

use evenkeel_reactor::Origin;

use crate::settings::KeySource;
use crate::tier::{Placement, Tier};

/// What is known of a session when it is placed.
pub(crate) struct Facts<'a> {
    /// Who connected.
    pub(crate) client: Origin,
    /// What the client sent before its first line feed, without white space at the end; `None` if nobody looked.
    pub(crate) first_line: Option<&'a [u8]>,
}

/// Where a listener's sessions go.
pub(crate) struct Route {
    tier: Tier,
}

impl Route {
    pub(crate) const fn to(tier: Tier) -> Self {
        Self { tier }
    }

    /// Whether both lead to the same place, under the same settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.tier.is_same(&other.tier)
    }

    /// Whether a session's first line must be read before it can be placed.
    pub(crate) fn needs_first_line(&self) -> bool {
        self.tier.needs_first_line()
    }

    /// Where a session goes of which nothing has been read.
    pub(crate) fn place_unread(&self, client: Origin) -> Placement {
        self.tier.resolve(&Facts {
            client,
            first_line: None,
        })
    }

    /// Where a session goes that begins with these bytes.
    pub(crate) fn place(&self, client: Origin, first_bytes: &[u8]) -> Placement {
        self.tier.resolve(&Facts {
            client,
            first_line: Some(first_line(first_bytes)),
        })
    }
}

/// The bytes up to the first line feed, at most [`KeySource::FIRST_LINE_MAX`], without white space at the end.
fn first_line(bytes: &[u8]) -> &[u8] {
    let bounded = &bytes[..bytes.len().min(KeySource::FIRST_LINE_MAX)];
    let line = bounded
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    line.trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line is the same key however the client ends it, and whatever comes behind it.
    #[test]
    fn a_first_line_ends_at_the_line_feed_without_white_space() {
        for bytes in ["alice", "alice\n", "alice\r\n", "alice \t\r\nbob\n"] {
            assert_eq!(first_line(bytes.as_bytes()), b"alice");
        }
        assert_eq!(first_line(b""), b"");
        assert_eq!(first_line(b"\nalice"), b"");
        assert_eq!(first_line(&[b'x'; 5000]).len(), KeySource::FIRST_LINE_MAX);
    }
}
