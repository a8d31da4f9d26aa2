//! From what is known of a session to where it goes.
//!
//! A listener has one route: where its sessions go, by the name that a TLS client asks for where there are rules for names. It says
//! which first bytes must be seen before a session can be placed, and resolves the facts into a placement; it reads
//! nothing itself.

use std::sync::Arc;

use evenkeel_reactor::Origin;

use crate::host_pattern::HostTable;
use crate::settings::{HttpRoute, KeySource, ListenerSettings, RouteSettings};
use crate::start_error::StartError;
use crate::tier::{BalanceTier, Placement, Tier};

/// What is known of a session when it is placed.
pub(crate) struct Facts<'a> {
    /// Who connected.
    pub(crate) client: Origin,
    /// What the client sent before its first line feed, without white space at the end; `None` if nobody looked.
    pub(crate) first_line: Option<&'a [u8]>,
}

/// Where a listener's sessions go.
pub(crate) struct Route {
    /// Where those go that no rule is for.
    default: Option<Tier>,
    /// The rules in the order of the settings, and what they are found by.
    ruled: Vec<Tier>,
    by_server_name: HostTable<usize>,
    /// The rules for requests, in the order of the settings.
    requests: Vec<(HttpRoute, Tier)>,
    /// The default, or else where the first rule leads.
    first: Tier,
}

impl Route {
    /// The route of a listener.
    ///
    /// # Errors
    ///
    /// It leads to a cluster that is not there, or nowhere.
    pub(crate) fn of(
        listener: &ListenerSettings,
        tiers: &[Arc<BalanceTier>],
    ) -> Result<Self, StartError> {
        let tier = |to: &Arc<str>| {
            let known = tiers.iter().find(|tier| tier.name() == to);
            let tier = known.map(|tier| Tier::Balance(Arc::clone(tier)));
            tier.ok_or_else(|| StartError::UnknownTarget {
                listener: Arc::clone(&listener.name),
                to: Arc::clone(to),
            })
        };
        let rules = &listener.routes;
        let default = listener.to.as_ref().map(tier).transpose()?;
        let ruled: Vec<Tier> = rules
            .iter()
            .map(|rule| tier(&rule.to))
            .collect::<Result<_, _>>()?;
        let rules_for_requests = listener.protocol.request_routes().iter();
        let requests: Vec<(HttpRoute, Tier)> = rules_for_requests
            .map(|rule| Ok((rule.clone(), tier(&rule.to)?)))
            .collect::<Result<_, StartError>>()?;
        let first_ruled = || {
            ruled
                .first()
                .or_else(|| requests.first().map(|(_, tier)| tier))
        };
        let first = default.as_ref().or_else(first_ruled).cloned();
        Ok(Self {
            first: first.ok_or_else(|| StartError::NoTarget {
                listener: Arc::clone(&listener.name),
            })?,
            default,
            ruled,
            requests,
            by_server_name: names_of(rules),
        })
    }

    /// Whether both lead to the same places, under the same settings; what the rules are is compared elsewhere.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.ruled.iter().zip(&other.ruled);
        self.first.is_same(&other.first)
            && self.default.is_some() == other.default.is_some()
            && self.ruled.len() == other.ruled.len()
            && pairs.into_iter().all(|(one, other)| one.is_same(other))
            && self.goes_as_requests_of(other)
    }

    fn goes_as_requests_of(&self, other: &Self) -> bool {
        let mut pairs = self.requests.iter().zip(&other.requests);
        self.requests.len() == other.requests.len()
            && pairs.all(|((_, one), (_, other))| one.is_same(other))
    }

    /// The rules for requests, in the order of the settings.
    pub(crate) fn requests(&self) -> &[(HttpRoute, Tier)] {
        &self.requests
    }

    /// Where those go that no rule is for; `None` is nowhere.
    pub(crate) const fn default_tier(&self) -> Option<&Tier> {
        self.default.as_ref()
    }

    /// Whether a session's first line must be read before it can be placed.
    pub(crate) fn needs_first_line(&self) -> bool {
        self.first.needs_first_line()
    }

    /// Whether the name that a TLS client asks for must be read before a session can be placed.
    pub(crate) fn goes_by_server_name(&self) -> bool {
        !self.by_server_name.is_empty()
    }

    /// Where a session goes of which nothing has been read; with rules this is not decided before its first bytes have come,
    /// and what is said here is under whose settings it waits for them.
    pub(crate) fn place_unread(&self, client: Origin) -> Placement {
        self.first.resolve(&Facts {
            client,
            first_line: None,
        })
    }

    /// Where a session goes that begins with these bytes, if there are no rules.
    pub(crate) fn place(&self, client: Origin, first_bytes: &[u8]) -> Placement {
        self.first.resolve(&Facts {
            client,
            first_line: Some(first_line(first_bytes)),
        })
    }

    /// Where a session goes whose client asks for this name, in lower case, or for none; with the rule's place among those of the
    /// settings, if it is one that leads there. `None` is nowhere.
    pub(crate) fn place_by_name(
        &self,
        client: Origin,
        server_name: Option<&str>,
    ) -> Option<(Placement, Option<usize>)> {
        let rule = server_name.and_then(|name| self.by_server_name.find(name).copied());
        let tier = match rule {
            Some(rule) => self.ruled.get(rule),
            None => self.default.as_ref(),
        };
        let facts = Facts {
            client,
            first_line: None,
        };
        Some((tier?.resolve(&facts), rule))
    }
}

fn names_of(rules: &[RouteSettings]) -> HostTable<usize> {
    let numbered = rules.iter().zip(0..);
    numbered
        .map(|(rule, number)| (rule.server_name.clone(), number))
        .collect()
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
