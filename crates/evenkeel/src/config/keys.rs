//! What a key is: its name, what it may hold, and what it is worth when it is not written.
//!
//! The keys themselves are in `tables`. The reader takes bounds, words and suggestions from them, `config schema` prints
//! them, and a test holds `docs/configuration.md` against them. What a key means to the program is `build`'s business.

use std::time::Duration;

use super::units::{print_duration, print_size};

/// A set of keys, as one TOML table.
#[derive(Debug)]
pub(super) struct Table {
    /// How the reference calls it: `[cluster.NAME]`, or what it is where it has no header of its own.
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) absent: Absent,
    pub(super) about: &'static str,
    /// What other programs call it; a user who writes that is shown the way.
    pub(super) elsewhere: &'static [&'static str],
}

/// What a key is worth when it is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It must be written.
    Error,
    /// As if this TOML value had been written.
    Value(&'static str),
    /// As these words say.
    Means(&'static str),
}

/// Whether `"off"` is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    Allowed,
    Refused,
}

/// What a key's value looks like.
#[derive(Debug)]
pub(super) enum Form {
    Flag,
    Whole {
        min: u64,
        max: u64,
    },
    Duration {
        min: Duration,
        max: Duration,
        off: Off,
    },
    Size {
        max: u64,
        off: Off,
    },
    Percent {
        min: u64,
        max: u64,
        off: Off,
    },
    Text {
        bytes_max: usize,
    },
    Word(fn() -> Vec<&'static str>),
    /// One of the words, or a path; a path has a `/`, a word has none.
    WordOrPath {
        words: &'static [&'static str],
        bytes_max: usize,
    },
    Name,
    /// The name of a cluster.
    Target,
    BindAddress,
    EndpointAddress,
    /// As before, or a name instead of the IP address.
    AddressOrName,
    /// A name with SRV records.
    Service,
    /// A list of addresses.
    NameServers {
        count_max: usize,
    },
    /// Of a file.
    Permissions,
    /// Status codes of HTTP, and ranges of them.
    StatusCodes,
    /// A text in which `\\xff` stands for a byte.
    Bytes {
        bytes_max: usize,
    },
    File {
        bytes_max: usize,
    },
    /// Of a host, without a port.
    HostName,
    /// A name, or `*.` and a name.
    HostPattern,
    Patterns,
    /// A list of networks, and a word for Unix clients.
    Senders,
    /// A list whose items are addresses or tables.
    Endpoints(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
    /// One of the words, or a table.
    WordOrTable {
        word: &'static str,
        table: &'static Table,
    },
    Table(&'static Table),
    /// Any number of tables, each under a name that the user chooses.
    Named(&'static Table),
}

impl Table {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    pub(super) const fn new(
        name: &'static str,
        form: Form,
        absent: Absent,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            form,
            absent,
            about,
            elsewhere: &[],
        }
    }

    pub(super) const fn elsewhere(mut self, names: &'static [&'static str]) -> Self {
        self.elsewhere = names;
        self
    }
}

impl Form {
    /// What may be written, as the end of "`key` must be …".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min, max, off } => {
                let (min, max) = (print_duration(*min), print_duration(*max));
                format!("a duration from \"{min}\" to \"{max}\"{}", or_off(*off))
            }
            Self::Size { max, off } => format!(
                "a size from \"1B\" to \"{}\"{}",
                print_size(*max),
                or_off(*off)
            ),
            Self::Percent { min, max, off } => {
                format!("a percentage from \"{min}%\" to \"{max}%\"{}", or_off(*off))
            }
            Self::Text { bytes_max } => format!("a text of 1 to {bytes_max} bytes"),
            Self::Word(words) => one_of(&words()),
            Self::WordOrPath { words, .. } => format!("{}, or a path with a \"/\"", one_of(words)),
            Self::Name => "a name".to_owned(),
            Self::Target => "the name of a cluster".to_owned(),
            Self::BindAddress | Self::EndpointAddress => {
                "an IP address and a port, or \"unix:/path\"".to_owned()
            }
            Self::AddressOrName => {
                "an IP address or a name, and a port; or \"unix:/path\"".to_owned()
            }
            Self::Service => "a name".to_owned(),
            Self::NameServers { count_max } => {
                format!("a list of at most {count_max} IP addresses, each with a port or without")
            }
            Self::StatusCodes => "status codes and ranges, such as \"200-299, 304\"".to_owned(),
            Self::Bytes { bytes_max } => {
                format!("1 to {bytes_max} bytes, with escapes such as \\r \\n \\0 \\xff")
            }
            Self::File { .. } => "a path".to_owned(),
            Self::Permissions => "octal digits from \"0000\" to \"0777\"".to_owned(),
            Self::HostPattern => {
                "a name such as \"db.example.com\" or \"*.example.com\"".to_owned()
            }
            Self::HostName => "a name such as \"db.example.com\"".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
            Self::Patterns => "a list of paths".to_owned(),
            Self::Senders => "a list of networks such as \"10.0.0.0/8\", or \"unix\"".to_owned(),
            Self::Endpoints(_) => "a list of addresses or tables".to_owned(),
            Self::WordOrTable { word, .. } => format!("\"{word}\" or a table"),
            Self::Table(_) => "a table".to_owned(),
            Self::Named(_) => "a table of tables".to_owned(),
        }
    }

    /// The table of keys inside, if there is one.
    pub(super) fn inner(&self) -> Option<&'static Table> {
        match self {
            Self::Endpoints(table)
            | Self::Tables(table)
            | Self::Table(table)
            | Self::Named(table)
            | Self::WordOrTable { table, .. } => Some(table),
            _ => None,
        }
    }
}

fn or_off(off: Off) -> &'static str {
    match off {
        Off::Allowed => ", or \"off\"",
        Off::Refused => "",
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}
