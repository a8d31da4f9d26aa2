//! From a request's host and path to where it goes. Pure.
//!
//! The most specific route wins, in whatever order they are written: an exact host before a wildcard, a longer wildcard before
//! a shorter, either before any host; then the longest path. Paths are compared as they are sent on, byte by byte: nothing is
//! decoded, so that the endpoint never sees another path than the one that was routed by.

use crate::host_pattern::HostPattern;
use crate::route::Route;
use crate::settings::HttpRoute;
use crate::tier::Tier;

impl Route {
    /// Where a request goes; `None` if no rule is for it and there is nothing for all others. The host is as the client sent it, with its port.
    pub(crate) fn find(&self, host: &str, path: &str) -> Option<&Tier> {
        let host = without_port(host.as_bytes());
        let routes = self.requests().iter();
        let taking = routes.filter(|(route, _)| takes(route, host, path.as_bytes()));
        let best = taking.max_by_key(|(route, _)| rank(route));
        best.map(|(_, tier)| tier).or_else(|| self.default_tier())
    }
}

/// Larger is more specific.
fn rank(route: &HttpRoute) -> (u8, usize, usize) {
    let (kind, length) = match &route.host {
        Some(HostPattern::Exact(name)) => (2, name.as_str().len()),
        Some(HostPattern::Below(name)) => (1, name.as_str().len()),
        None => (0, 0),
    };
    (kind, length, route.path.len())
}

fn takes(route: &HttpRoute, host: &[u8], path: &[u8]) -> bool {
    let takes_host = route
        .host
        .as_ref()
        .is_none_or(|host_pattern| is_host(host_pattern, host));
    takes_host && is_within(path, route.path.as_bytes())
}

fn is_host(pattern: &HostPattern, host: &[u8]) -> bool {
    match pattern {
        HostPattern::Exact(name) => host.eq_ignore_ascii_case(name.as_str().as_bytes()),
        HostPattern::Below(name) => {
            let name = name.as_str().as_bytes();
            // At least a letter and a dot stand before it.
            let Some(before) = host
                .len()
                .checked_sub(name.len() + 1)
                .filter(|before| *before > 0)
            else {
                return false;
            };
            host[before] == b'.' && host[before + 1..].eq_ignore_ascii_case(name)
        }
    }
}

/// Without a port, and without the dot that ends a name which is whole.
fn without_port(host: &[u8]) -> &[u8] {
    let end = match host.iter().rposition(|byte| *byte == b':') {
        // Within brackets it belongs to the address.
        Some(colon) if !host[colon..].contains(&b']') => colon,
        _ => host.len(),
    };
    let name = &host[..end];
    name.strip_suffix(b".").unwrap_or(name)
}

fn is_within(path: &[u8], prefix: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(prefix) else {
        return false;
    };
    prefix.is_empty() || prefix.ends_with(b"/") || matches!(rest.first(), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(host: &str, path: &str) -> HttpRoute {
        let host = (host != "*").then(|| host.parse().unwrap());
        HttpRoute {
            host,
            path: path.into(),
            to: "web".into(),
        }
    }

    /// The most specific host, then the longest path, whatever the order.
    #[test]
    fn the_most_specific_route_wins() {
        let routes = [
            route("*", ""),
            route("*.example", ""),
            route("*.eu.example", ""),
            route("shop.example", ""),
            route("shop.example", "/api"),
            route("shop.example", "/api/v2/"),
            route("*", "/status"),
        ];
        for (host, path, expected) in [
            ("shop.example", "/", 3),
            ("SHOP.example:8080", "/api", 4),
            ("shop.example.", "/api/x", 4),
            ("shop.example", "/api/v2/x", 5),
            ("shop.example", "/api/v2", 4),
            ("shop.example", "/apix", 3),
            ("shop.example", "/%61pi", 3),
            ("a.example", "/api", 1),
            ("a.b.eu.example", "/", 2),
            ("example", "/", 0),
            ("other", "/status/x", 6),
            ("[::1]:80", "/", 0),
        ] {
            let host = without_port(host.as_bytes());
            let taking = (0..routes.len()).filter(|at| takes(&routes[*at], host, path.as_bytes()));
            let best = taking.max_by_key(|at| rank(&routes[*at]));
            assert_eq!(best, Some(expected), "{path}");
        }
    }

    /// An address is compared without its port, and keeps its brackets.
    #[test]
    fn a_port_is_no_part_of_a_host() {
        for (host, name) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("a.:80", "a"),
        ] {
            assert_eq!(without_port(host.as_bytes()), name.as_bytes());
        }
    }
}
