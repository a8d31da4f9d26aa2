//! What `Connection` says: whether the connection stays, and which headers are meant for the next hop alone (RFC 9110, 7.6.1).

use super::field::elements;
use super::{Fields, Known, Refusal, Version};

/// The most options of `Connection` that are looked at: each is held against every header when a head is passed on.
pub(super) const OPTIONS_MAX: usize = 32;

/// The options that mean something here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// `close`
    pub closes: bool,
    /// `keep-alive`
    pub keeps_alive: bool,
    /// `upgrade`
    pub upgrades: bool,
    /// There are others, which name headers that go no further.
    pub names_fields: bool,
}

/// What becomes of a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It is there for the next one.
    KeepAlive,
    /// It ends.
    Close,
}

impl Connection {
    pub(super) fn of(fields: Fields<'_>) -> Result<Self, Refusal> {
        let mut connection = Self::default();
        let options = fields.of(Known::Connection).flat_map(elements);
        for (index, option) in options.enumerate() {
            if index == OPTIONS_MAX {
                return Err(Refusal::TooManyOptions);
            }
            connection.note(option);
        }
        Ok(connection)
    }

    fn note(&mut self, option: &[u8]) {
        let noted = match option.len() {
            5 if option.eq_ignore_ascii_case(b"close") => &mut self.closes,
            7 if option.eq_ignore_ascii_case(b"upgrade") => &mut self.upgrades,
            10 if option.eq_ignore_ascii_case(b"keep-alive") => &mut self.keeps_alive,
            _ => &mut self.names_fields,
        };
        *noted = true;
    }

    /// What the sender of a message of this version wants to become of the connection (RFC 9112, 9.3).
    pub const fn persistence(self, version: Version) -> Persistence {
        match version {
            _ if self.closes => Persistence::Close,
            Version::Http11 => Persistence::KeepAlive,
            Version::Http10 if self.keeps_alive => Persistence::KeepAlive,
            Version::Http10 => Persistence::Close,
        }
    }
}
