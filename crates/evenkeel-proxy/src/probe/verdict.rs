//! What a probe came to, in a form that can be shown anywhere.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

/// The most characters of a reason: a server's own words may be long, and are cut.
pub const REASON_CHARACTERS_MAX: usize = 200;

/// What a probe came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint answered as it should.
    Passed,
    /// It did not, for this reason.
    Failed(Words),
    /// This machine could not ask, for this reason; the endpoint is neither better nor worse for it.
    NotAsked(Words),
}

/// A few words in one line, whatever bytes they were made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Arc<str>);

impl Words {
    pub(super) fn new(said: impl fmt::Display) -> Self {
        let said = said.to_string();
        let mut words: String = said
            .chars()
            .take(REASON_CHARACTERS_MAX)
            .map(|character| {
                if character.is_control() {
                    '·'
                } else {
                    character
                }
            })
            .collect();
        if said.chars().nth(REASON_CHARACTERS_MAX).is_some() {
            words.push('…');
        }
        Self(Arc::from(words))
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Verdict {
    pub(super) fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(Words::new(reason))
    }

    pub(super) fn not_asked(reason: impl fmt::Display) -> Self {
        Self::NotAsked(Words::new(reason))
    }

    /// Of a connection that could not be made.
    pub(super) fn of_connecting(error: &io::Error) -> Self {
        let what = match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED) => "connection refused",
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                return Self::not_asked(format_args!("cannot open another connection: {error}"));
            }
            Some(Errno::ADDRNOTAVAIL) => {
                return Self::not_asked("no local port is left for another connection");
            }
            Some(Errno::ACCESS | Errno::PERM) => {
                return Self::not_asked(format_args!("connecting is not allowed: {error}"));
            }
            _ => return Self::failed(format_args!("cannot connect: {error}")),
        };
        Self::failed(what)
    }

    /// Of silence.
    pub(super) fn silence(waiting_for: &str, timeout: Duration) -> Self {
        Self::failed(format_args!("no {waiting_for} within {timeout:?}"))
    }

    /// Why it did not pass.
    pub fn reason(&self) -> Option<&Words> {
        match self {
            Self::Passed => None,
            Self::Failed(reason) | Self::NotAsked(reason) => Some(reason),
        }
    }
}

/// What an endpoint said, in quotation marks, for the end of a reason.
pub(super) fn quoted(bytes: &[u8]) -> String {
    /// Enough to recognise what speaks there.
    const SHOWN_BYTES_MAX: usize = 60;
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let more = if bytes.len() > shown.len() { "…" } else { "" };
    format!("\"{}{more}\"", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's words are cut and cannot move a terminal's cursor.
    #[test]
    fn a_reason_is_one_short_line() {
        let words = Words::new(format!("a\nb\u{1b}[2J{}", "é".repeat(500)));

        let text = words.to_string();
        assert!(text.starts_with("a·b·[2Jéé"));
        assert!(text.ends_with("é…"));
        assert_eq!(text.chars().count(), REASON_CHARACTERS_MAX + 1);
    }

    /// What this machine lacks is not the endpoint's fault.
    #[test]
    fn a_lack_of_descriptors_is_nobodys_failure() {
        let lack = io::Error::from(Errno::MFILE);
        assert!(matches!(
            Verdict::of_connecting(&lack),
            Verdict::NotAsked(_)
        ));
        let refused = io::Error::from(Errno::CONNREFUSED);
        assert_eq!(
            Verdict::of_connecting(&refused),
            Verdict::failed("connection refused")
        );
    }
}
