//! A name that DNS can be asked for: checked once, written one way.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A name of dot-separated labels, in lower case. With a dot at its end it is absolute: no search domain is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(Arc<str>);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or nothing but a dot.
    #[error("a name has at least one letter or digit")]
    Empty,
    /// More than DNS carries.
    #[error("a name has at most {max} characters, and this has {0}", max = DnsName::LENGTH_MAX)]
    TooLong(usize),
    /// Two dots in a row, or one in front.
    #[error("there is nothing between two dots")]
    EmptyLabel,
    /// More than DNS carries between two dots.
    #[error("at most {max} characters may stand between two dots", max = DnsName::LABEL_LENGTH_MAX)]
    LabelTooLong,
    /// A character that no name has.
    #[error("a name has letters, digits, `-` and `_` between its dots, and no `{char}`", char = .0.escape_debug())]
    Stray(char),
    /// Beside a dot, or at an end.
    #[error("a `-` may stand neither first nor last between two dots")]
    HyphenAtEdge,
    /// Digits at the end make an address, or a mistyped one.
    #[error("a name does not end with a number")]
    EndsWithNumber,
}

impl DnsName {
    /// The most characters, without a dot at the end.
    pub const LENGTH_MAX: usize = 253;
    /// The most characters between two dots.
    pub const LABEL_LENGTH_MAX: usize = 63;

    /// By the rules of RFC 1123, with `_` allowed as well: services have it, and so have the names of containers.
    ///
    /// # Errors
    ///
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let relative = text.strip_suffix('.').unwrap_or(text);
        if relative.is_empty() {
            return Err(NameError::Empty);
        }
        if relative.len() > Self::LENGTH_MAX {
            return Err(NameError::TooLong(relative.len()));
        }
        relative.split('.').try_for_each(check_label)?;
        let last = relative.rsplit('.').next().unwrap_or(relative);
        if last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NameError::EndsWithNumber);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// As it is written in messages and asked for.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether no search domain is to be tried.
    pub fn is_absolute(&self) -> bool {
        self.0.ends_with('.')
    }

    /// Names that RFC 6761 gives to the machine itself.
    pub(super) fn is_localhost(&self) -> bool {
        let name = self.0.trim_end_matches('.');
        name == "localhost" || name.ends_with(".localhost")
    }

    /// Dots between labels.
    pub(super) fn inner_dots(&self) -> usize {
        self.0.trim_end_matches('.').matches('.').count()
    }
}

/// Names are looked up in tables by their text.
impl Borrow<str> for DnsName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_label(label: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    if let Some(stray) = label.chars().find(|c| !allowed(*c)) {
        return Err(NameError::Stray(stray));
    }
    if label.len() > DnsName::LABEL_LENGTH_MAX {
        return Err(NameError::LabelTooLong);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(NameError::HyphenAtEdge);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of hosts, services and containers, absolute or not; the case does not matter.
    #[test]
    fn names_are_read() {
        for (text, name) in [
            ("db", "db"),
            ("DB.Internal", "db.internal"),
            ("db.internal.", "db.internal."),
            ("_mysql._tcp.db.internal", "_mysql._tcp.db.internal"),
            ("my_app-db_1", "my_app-db_1"),
            ("3com.example", "3com.example"),
        ] {
            assert_eq!(DnsName::parse(text).unwrap().as_str(), name);
        }
    }

    /// Each rule is told apart.
    #[test]
    fn what_is_no_name_says_why() {
        let long_label = "a".repeat(64);
        let long = ["abcdefg"; 32].join(".");
        for (text, error) in [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("db..internal", NameError::EmptyLabel),
            (".db", NameError::EmptyLabel),
            ("-db.internal", NameError::HyphenAtEdge),
            ("db-.internal", NameError::HyphenAtEdge),
            ("d b", NameError::Stray(' ')),
            ("dä.internal", NameError::Stray('ä')),
            ("10.0.0.300", NameError::EndsWithNumber),
            (&long_label, NameError::LabelTooLong),
            (&long, NameError::TooLong(255)),
        ] {
            assert_eq!(DnsName::parse(text), Err(error), "{text}");
        }
    }
}
