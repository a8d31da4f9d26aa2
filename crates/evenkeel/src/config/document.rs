//! One file's text into its raw form: bytes to text, text to a TOML document, and what is wrong with either.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, Error};

use super::diagnostics::{FileId, LineIndex, Problem, Problems, Span, shown};
use super::file::{File, Role};

/// Whether there is more to a configuration than what could be read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Understood {
    /// Every key is known and where the user put it, though the value of some may be wrong.
    Wholly,
    /// A file could not be read, or its syntax leaves open which key is where.
    Partly,
}

/// A file that has been read as far as it goes.
pub(super) struct Document {
    pub(super) file: File,
    pub(super) understood: Understood,
}

/// Text from a file's bytes; what is no text keeps its place, so that a report can show it.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<String, NotText> {
    let (text, invalid_at) = match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Some(error.utf8_error().valid_up_to()),
        ),
    };
    // Up to the first invalid byte, the text has the same offsets as the bytes.
    let valid = &text[..invalid_at.unwrap_or(text.len())];
    match (valid.find('\0'), invalid_at) {
        (Some(at), _) => Err(NotText::new(text, at, "this file holds a NUL byte")),
        (None, Some(at)) => Err(NotText::new(text, at, "this file is not valid UTF-8")),
        (None, None) => Ok(text),
    }
}

/// Why a file is no text.
pub(super) struct NotText {
    /// The file's content, with a replacement for what is no text.
    pub(super) text: String,
    at: usize,
    message: &'static str,
}

impl NotText {
    fn new(text: String, at: usize, message: &'static str) -> Self {
        Self { text, at, message }
    }

    pub(super) fn problem(&self, file: FileId) -> Problem {
        let stray = self.text[self.at..].chars().next();
        let end = self.at + stray.map_or(0, char::len_utf8);
        let span = Span {
            file,
            bytes: self.at..end,
        };
        Problem::at(&span, self.message).help("save it as plain text in UTF-8")
    }
}

/// Parses and reads a text; whatever is wrong goes to `problems`. Of a broken text nothing is read.
pub(super) fn read(text: &str, role: Role, file: FileId, problems: &Problems) -> Document {
    let (table, errors) = DeTable::parse_recoverable(text);
    let faults = Faults::of(errors, text.len());
    for fault in &faults.kept {
        problems.report(fault.problem(text, file));
    }
    if faults.understood == Understood::Partly {
        return Document {
            file: File::default(),
            understood: Understood::Partly,
        };
    }
    let found = Problems::default();
    let read = File::read(table.get_ref(), role, file, &found);
    // A value with a syntax error is no value: whatever else seems wrong on its line may only seem so.
    let lines = LineIndex::of(text);
    let faulty = faults.lines(&lines);
    problems.absorb(found, |span| {
        !faulty.contains(&lines.line_of(span.bytes.start))
    });
    Document {
        file: read,
        understood: Understood::Wholly,
    }
}

/// The syntax errors worth showing: those up to the first that makes the rest guesswork.
struct Faults {
    kept: Vec<Fault>,
    understood: Understood,
}

struct Fault {
    message: String,
    bytes: Range<usize>,
}

impl Faults {
    fn of(errors: Vec<Error>, length: usize) -> Self {
        let mut all: Vec<Fault> = errors
            .into_iter()
            .map(|error| Fault::of(&error, length))
            .collect();
        all.sort_by_key(|fault| fault.bytes.start);
        let first_break = all.iter().position(|fault| !fault.leaves_keys_in_place());
        all.truncate(first_break.map_or(all.len(), |position| position + 1));
        Self {
            kept: all,
            understood: if first_break.is_some() {
                Understood::Partly
            } else {
                Understood::Wholly
            },
        }
    }

    /// The lines that they are on.
    fn lines(&self, index: &LineIndex) -> BTreeSet<usize> {
        let starts = self.kept.iter().map(|fault| fault.bytes.start);
        starts.map(|start| index.line_of(start)).collect()
    }
}

impl Fault {
    fn of(error: &Error, length: usize) -> Self {
        let bytes = error.span().unwrap_or(length..length);
        Self {
            message: error.message().to_owned(),
            bytes: bytes.start.min(length)..bytes.end.min(length),
        }
    }

    /// The parser goes on after these as if the value had been written correctly.
    fn leaves_keys_in_place(&self) -> bool {
        const HARMLESS: [&str; 4] = [
            "string values must be quoted",
            "invalid float",
            "invalid basic string",
            "duplicate key",
        ];
        HARMLESS
            .iter()
            .any(|harmless| self.message.starts_with(harmless))
    }

    fn problem(&self, text: &str, file: FileId) -> Problem {
        let at = |bytes| Span { file, bytes };
        if self.is_missing_quotes() {
            let word = word_around(text, self.bytes.start);
            let help = format!("write it as \"{}\"", shown(&text[word.clone()]));
            return Problem::at(&at(word), "this value needs quotes").help(help);
        }
        let here = at(self.bytes.clone());
        if self.message.starts_with("duplicate key") {
            return Problem::at(&here, "this key is written twice").help("keep one of them");
        }
        if let Some(end) = self.end_before_missing_comma(text) {
            let message = "this is not TOML: a comma is missing between two items";
            return Problem::at(&at(end..end), message).help("put a comma here");
        }
        let problem = Problem::at(&here, format!("this is not TOML: {}", self.message));
        match self.key_before_colon(text) {
            Some(key) => problem.help(format!("write `{key} = …`")),
            None => problem,
        }
    }

    /// Where an item ends that the next one follows without a comma; behind a comment it would be no place for one.
    fn end_before_missing_comma(&self, text: &str) -> Option<usize> {
        let at = text.floor_char_boundary(self.bytes.start);
        let before = text[..at].trim_end();
        let last_line = before.lines().next_back()?;
        let is_missing = self
            .message
            .starts_with("missing comma between array elements");
        (is_missing && !last_line.contains('#')).then_some(before.len())
    }

    /// The key of a line that is written as in YAML or JSON.
    fn key_before_colon<'t>(&self, text: &'t str) -> Option<&'t str> {
        let at = text.floor_char_boundary(self.bytes.start);
        let start = text[..at].rfind(['\n', '{', ',']).map_or(0, |end| end + 1);
        let line = text[start..].lines().next()?;
        let key = line.split_once(':')?.0.trim().trim_matches('"');
        let is_key = !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_key.then_some(key)
    }

    fn is_missing_quotes(&self) -> bool {
        let mistaken = ["string values must be quoted", "invalid float"];
        mistaken.iter().any(|start| self.message.starts_with(start))
    }
}

/// The longest piece of text around a byte that has nothing in it that would end a value.
fn word_around(text: &str, byte: usize) -> Range<usize> {
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '[' | ']' | '{' | '}' | '#');
    let middle = text.floor_char_boundary(byte);
    let start = text[..middle]
        .rfind(ends)
        .map_or(0, |end| text.ceil_char_boundary(end + 1));
    let end = text[middle..]
        .find(ends)
        .map_or(text.len(), |end| middle + end);
    start..end
}
