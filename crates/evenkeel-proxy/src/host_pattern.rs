//! Names of hosts as routes and certificates are chosen by them: one name, or all names below one. Pure.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::discovery::{DnsName, NameError};

/// One name, or all names below one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `db.example.com`.
    Exact(DnsName),
    /// `*.example.com`: any name that ends so, however many labels it has before, and not `example.com` itself.
    Below(DnsName),
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPattern {
    /// A `*` that does not stand for everything in front of a name.
    #[error("a `*` stands at the beginning alone, before a dot, as in \"*.example.com\"")]
    Star,
    /// What is left is no name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for HostPattern {
    type Err = NotAPattern;

    fn from_str(text: &str) -> Result<Self, NotAPattern> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let below = text.strip_prefix("*.");
        if below.unwrap_or(text).contains('*') {
            return Err(NotAPattern::Star);
        }
        Ok(match below {
            Some(below) => Self::Below(DnsName::parse(below)?),
            None => Self::Exact(DnsName::parse(text)?),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

/// What is known under patterns. A name is looked up once for each of its labels, however many patterns there are.
#[derive(Clone, Debug)]
pub(crate) struct HostTable<T> {
    exact: HashMap<DnsName, T>,
    below: HashMap<DnsName, T>,
}

impl<T> Default for HostTable<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            below: HashMap::new(),
        }
    }
}

impl<T> FromIterator<(HostPattern, T)> for HostTable<T> {
    /// Of two values under one pattern the first counts.
    fn from_iter<I: IntoIterator<Item = (HostPattern, T)>>(known: I) -> Self {
        let mut table = Self::default();
        for (pattern, value) in known {
            match pattern {
                HostPattern::Exact(name) => table.exact.entry(name).or_insert(value),
                HostPattern::Below(name) => table.below.entry(name).or_insert(value),
            };
        }
        table
    }
}

impl<T> HostTable<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.below.is_empty()
    }

    /// What is known of a name in lower case without a dot at its end: under the name itself, or else under the longest pattern
    /// that it is below.
    pub(crate) fn find(&self, name: &str) -> Option<&T> {
        self.exact.get(name).or_else(|| {
            let mut parents = std::iter::successors(parent(name), |name| parent(name));
            parents.find_map(|parent| self.below.get(parent))
        })
    }
}

/// A name without its first label.
fn parent(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, parent)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(patterns: &[&'static str]) -> HostTable<&'static str> {
        let parsed = patterns.iter().map(|text| (text.parse().unwrap(), *text));
        parsed.collect()
    }

    /// A name is matched by itself first, then by the nearest name that it is below.
    #[test]
    fn the_closest_pattern_counts() {
        let known = table(&["*.example.com", "db.example.com", "*.eu.example.com"]);
        for (name, pattern) in [
            ("db.example.com", Some("db.example.com")),
            ("web.example.com", Some("*.example.com")),
            ("a.db.example.com", Some("*.example.com")),
            ("a.b.eu.example.com", Some("*.eu.example.com")),
            ("eu.example.com", Some("*.example.com")),
            ("example.com", None),
            ("notexample.com", None),
            ("com", None),
            ("", None),
        ] {
            assert_eq!(known.find(name).copied(), pattern, "{name}");
        }
    }

    /// A pattern is written one way, whatever the user's spelling.
    #[test]
    fn patterns_are_read_and_printed() {
        for (text, printed) in [
            ("DB.Example.com.", "db.example.com"),
            ("*.Example.com", "*.example.com"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), printed);
        }
    }

    /// Regular expressions and stars elsewhere are refused, and so is what is no name.
    #[test]
    fn other_patterns_are_refused() {
        for text in ["*", "*.", "a.*.com", "*a.com", "*.*.com", "db*.example.com"] {
            assert_eq!(
                text.parse::<HostPattern>(),
                Err(NotAPattern::Star),
                "{text}"
            );
        }
        for text in ["", ".", "*..", "a..b", "a b", "10.0.0.1", "a:443"] {
            let refused = text.parse::<HostPattern>();
            assert!(
                matches!(refused, Err(NotAPattern::Name(_))),
                "{text}: {refused:?}"
            );
        }
    }
}
