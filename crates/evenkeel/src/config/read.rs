//! A typed reader over a spanned TOML document that never stops at the first problem.
//!
//! It is driven by the table of keys: what a key may hold, within which bounds, and whether it may be absent. Whatever is
//! wrong is reported, and the value is then simply not there.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::diagnostics::{Located, Problem, Problems, Span};
use super::keys::{Absent, Form, Key, Off, TABLES, Table};
use super::suggest::nearest;
use super::units::{
    check_name, missing_ip_help, parse_address, parse_duration, parse_percent, parse_size,
};
use super::words::{Words, names};

type Value<'r> = Spanned<DeValue<'r>>;

/// What the user should write instead.
type Advice = String;

/// One TOML table, of which every key that it may not have has been reported.
pub(super) struct TableReader<'r> {
    table: &'static Table,
    entries: &'r DeTable<'r>,
    subject: String,
    at: Span,
    problems: &'r Problems,
}

/// A table under a name of the user's choice.
pub(super) struct NamedTable<'r> {
    pub(super) name: Located<String>,
    pub(super) table: TableReader<'r>,
}

/// The value of a key that takes some words and otherwise a table.
pub(super) enum WordOrTable<'r> {
    Word,
    Table(TableReader<'r>),
}

/// The value of a key that other keys depend on.
#[derive(Clone, Debug)]
pub(super) enum Choice<T> {
    Absent,
    /// Written, and wrong: what depends on it cannot be judged.
    Unreadable,
    Made(Located<T>),
}

/// An item of a list of endpoints.
pub(super) enum Item<'r> {
    Address(Located<SocketAddr>),
    Table(TableReader<'r>),
}

/// The value of a key that takes some words and otherwise a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordOrPath {
    Word(&'static str),
    Path(String),
}

impl<'r> TableReader<'r> {
    /// `subject` names the table in messages, and `at` is where its missing keys are reported.
    pub(super) fn open(
        table: &'static Table,
        entries: &'r DeTable<'_>,
        subject: String,
        at: Span,
        problems: &'r Problems,
    ) -> Self {
        let reader = Self {
            table,
            entries,
            subject,
            at,
            problems,
        };
        reader.report_unknown_keys();
        reader
    }

    /// Where the table is.
    pub(super) fn place(&self) -> Span {
        self.at.clone()
    }

    pub(super) fn flag(&self, name: &str) -> Option<Located<bool>> {
        self.read(name, |_, value| value.as_bool().ok_or_else(|| found(value)))
    }

    pub(super) fn whole(&self, name: &str) -> Option<Located<u64>> {
        self.read(name, whole)
    }

    /// `None` inside is `"off"`.
    pub(super) fn duration(&self, name: &str) -> Option<Located<Option<Duration>>> {
        self.read(name, duration)
    }

    /// As [`Self::duration`], and nothing where the table has no such key.
    pub(super) fn duration_if_known(&self, name: &str) -> Option<Located<Option<Duration>>> {
        self.table.key(name).and_then(|key| self.duration(key.name))
    }

    /// In bytes; `None` inside is `"off"`.
    pub(super) fn size(&self, name: &str) -> Option<Located<Option<u64>>> {
        self.read(name, size)
    }

    /// `None` inside is `"off"`.
    pub(super) fn percent(&self, name: &str) -> Option<Located<Option<u64>>> {
        self.read(name, percent)
    }

    pub(super) fn text(&self, name: &str) -> Option<Located<String>> {
        self.read(name, text)
    }

    pub(super) fn word<T: Words>(&self, name: &str) -> Option<Located<T>> {
        self.read(name, |_, value| word(value))
    }

    /// As [`Self::word`], for a key that other keys depend on.
    pub(super) fn choice<T: Words>(&self, name: &str) -> Choice<T> {
        match self.word(name) {
            Some(word) => Choice::Made(word),
            None if self.entries.contains_key(name) => Choice::Unreadable,
            None => Choice::Absent,
        }
    }

    /// A word that `advise` may say more about when it is not one of the type's.
    pub(super) fn word_or_advice<T: Words>(
        &self,
        name: &str,
        advise: impl Fn(&str) -> Option<Advice>,
    ) -> Option<Located<T>> {
        self.read(name, |_, value| {
            word(value).map_err(|advice| value.as_str().and_then(advise).unwrap_or(advice))
        })
    }

    pub(super) fn word_or_path(&self, name: &str) -> Option<Located<WordOrPath>> {
        self.read(name, word_or_path)
    }

    pub(super) fn address(&self, name: &str) -> Option<Located<SocketAddr>> {
        self.read(name, address)
    }

    /// A name of something that is defined elsewhere, whatever it is.
    pub(super) fn string(&self, name: &str) -> Option<Located<String>> {
        self.read(name, |_, value| string(value).map(str::to_owned))
    }

    /// The items of a list of strings; `what` is one of them.
    pub(super) fn strings(&self, name: &str, what: &str) -> Vec<Located<String>> {
        let read = |item: &'r Value<'r>| match string(item.get_ref()) {
            Ok(text) => Some(self.located(item, text.to_owned())),
            Err(advice) => {
                self.report(item, format!("{what} must be a string"), advice);
                None
            }
        };
        self.list(name)
            .map(|list| list.value.iter().filter_map(read).collect())
            .unwrap_or_default()
    }

    /// The items of a list of endpoints, without those that are neither addresses nor tables; `what` is one of them.
    pub(super) fn items(&self, name: &str, what: &str) -> Option<Located<Vec<Item<'r>>>> {
        let list = self.list(name)?;
        if list.value.is_empty() {
            let problem = Problem::at(&list.span, format!("{} has no {name}", self.subject));
            self.problems
                .report(problem.help("write at least one, such as \"10.0.0.11:3306\""));
        }
        Some(list.map(|items| {
            items
                .iter()
                .filter_map(|item| self.item(name, what, item))
                .collect()
        }))
    }

    /// A table inside this one.
    pub(super) fn table(&self, name: &str) -> Option<Self> {
        let (key, at, value) = self.entry(name)?;
        let Some(entries) = value.get_ref().as_table() else {
            self.report_form(key, value, found(value.get_ref()));
            return None;
        };
        Some(self.open_inner(key, entries, at))
    }

    pub(super) fn word_or_table(&self, name: &str) -> Option<WordOrTable<'r>> {
        let (key, at, value) = self.entry(name)?;
        if let Some(entries) = value.get_ref().as_table() {
            return Some(WordOrTable::Table(self.open_inner(key, entries, at)));
        }
        match (&key.form, value.get_ref().as_str()) {
            (Form::WordOrTable { word, .. }, Some(text)) if *word == text => {
                Some(WordOrTable::Word)
            }
            (_, text) => {
                let advice = text
                    .and_then(|text| advise_table(key, text))
                    .unwrap_or_else(|| found(value.get_ref()));
                self.report_form(key, value, advice);
                None
            }
        }
    }

    /// The tables under names of the user's choice, in the order of the file.
    pub(super) fn named(&self, name: &str) -> Vec<NamedTable<'r>> {
        let Some((key, _, value)) = self.entry(name) else {
            return Vec::new();
        };
        let (Some(entries), Some(table)) = (value.get_ref().as_table(), key.form.inner()) else {
            self.report_form(key, value, format!("write `[{name}.NAME]`"));
            return Vec::new();
        };
        in_file_order(entries)
            .into_iter()
            .filter_map(|(name, value)| self.named_table(key, table, name, value))
            .collect()
    }

    fn list(&self, name: &str) -> Option<Located<&'r DeArray<'r>>> {
        let (key, _, value) = self.entry(name)?;
        match value.get_ref() {
            DeValue::Array(items) => Some(self.located(value, items)),
            other => {
                self.report_form(key, value, found(other));
                None
            }
        }
    }

    fn item(&self, name: &str, what: &str, item: &'r Value<'r>) -> Option<Item<'r>> {
        let table = self.table.key(name)?.form.inner()?;
        if let Some(entries) = item.get_ref().as_table() {
            return Some(Item::Table(Self::open(
                table,
                entries,
                what.to_owned(),
                self.span_of(item),
                self.problems,
            )));
        }
        match address(&Form::EndpointAddress, item.get_ref()) {
            Ok(address) => Some(Item::Address(self.located(item, address))),
            Err(advice) => {
                self.report(
                    item,
                    format!("{what} must be an address or a table"),
                    advice,
                );
                None
            }
        }
    }

    fn named_table(
        &self,
        key: &Key,
        table: &'static Table,
        name: &'r Spanned<Cow<'r, str>>,
        value: &'r Value<'r>,
    ) -> Option<NamedTable<'r>> {
        let at = self.span(name.span());
        let kind = key.name;
        let written: &str = name.get_ref();
        if let Err(advice) = check_name(written) {
            self.problems.report(
                Problem::at(
                    &at,
                    format!("`{}` is no name for a {kind}", written.escape_debug()),
                )
                .help(advice),
            );
        }
        let Some(entries) = value.get_ref().as_table() else {
            let advice = format!("write `[{kind}.NAME]`, with the keys below it");
            self.problems.report(
                Problem::at(
                    &at,
                    format!("`{kind}.{}` must be a table", written.escape_debug()),
                )
                .help(advice),
            );
            return None;
        };
        let subject = format!("{kind} `{}`", written.escape_debug());
        Some(NamedTable {
            name: Located {
                value: written.to_owned(),
                span: at.clone(),
            },
            table: Self::open(table, entries, subject, at, self.problems),
        })
    }

    fn open_inner(&self, key: &Key, entries: &'r DeTable<'r>, at: Span) -> Self {
        let table = key.form.inner().unwrap_or(self.table);
        Self::open(table, entries, format!("`{}`", key.name), at, self.problems)
    }

    /// Reads one key; whatever is wrong with it is reported here.
    fn read<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Form, &DeValue<'_>) -> Result<T, Advice>,
    ) -> Option<Located<T>> {
        let (key, _, value) = self.entry(name)?;
        match parse(&key.form, value.get_ref()) {
            Ok(parsed) => Some(self.located(value, parsed)),
            Err(advice) => {
                self.report_form(key, value, advice);
                None
            }
        }
    }

    /// A key of the table, where its name is, and its value.
    fn entry(&self, name: &str) -> Option<(&'static Key, Span, &'r Value<'r>)> {
        let key = self.table.key(name);
        debug_assert!(
            key.is_some(),
            "the reader asks for `{name}`, which {} has not",
            self.table.title
        );
        let key = key?;
        match self.entries.get_key_value(name) {
            Some((written, value)) => Some((key, self.span(written.span()), value)),
            None => {
                self.report_if_required(key);
                None
            }
        }
    }

    fn report_if_required(&self, key: &Key) {
        if key.absent == Absent::Error {
            let problem = Problem::at(&self.at, format!("{} has no `{}`", self.subject, key.name));
            self.problems.report(problem.help(format!(
                "add `{}`: {}",
                key.name,
                as_clause(key.about)
            )));
        }
    }

    fn report_unknown_keys(&self) {
        for (written, _) in in_file_order(self.entries) {
            let name: &str = written.get_ref();
            if self.table.key(name).is_none() {
                let problem = Problem::at(
                    &self.span(written.span()),
                    format!("unknown key `{}`", name.escape_debug()),
                );
                self.problems
                    .report(problem.help(advise_key(self.table, name)));
            }
        }
    }

    fn report_form(&self, key: &Key, value: &Value<'_>, advice: Advice) {
        self.report(
            value,
            format!("`{}` must be {}", key.name, key.form.describe()),
            advice,
        );
    }

    fn report(&self, value: &Value<'_>, message: String, advice: Advice) {
        self.problems
            .report(Problem::at(&self.span_of(value), message).help(advice));
    }

    fn located<T>(&self, at: &Value<'_>, value: T) -> Located<T> {
        Located {
            value,
            span: self.span_of(at),
        }
    }

    fn span_of(&self, value: &Value<'_>) -> Span {
        self.span(value.span())
    }

    fn span(&self, bytes: Range<usize>) -> Span {
        Span {
            file: self.at.file,
            bytes,
        }
    }
}

/// A sentence as the end of another one.
fn as_clause(sentence: &str) -> String {
    let mut rest = sentence.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(rest).collect()
}

/// A table's entries as they are written; the parser keeps them in alphabetical order.
fn in_file_order<'r>(entries: &'r DeTable<'r>) -> Vec<(&'r Spanned<Cow<'r, str>>, &'r Value<'r>)> {
    let mut ordered: Vec<_> = entries.iter().collect();
    ordered.sort_by_key(|(name, _)| name.span().start);
    ordered
}

/// What to say of a key that a table has not: what is meant, or where it belongs, or what there is.
fn advise_key(table: &Table, written: &str) -> Advice {
    let same_idea = table
        .keys
        .iter()
        .find(|key| key.elsewhere.contains(&written));
    if let Some(key) = same_idea {
        return format!("this is called `{}` here", key.name);
    }
    let home = TABLES.iter().find(|other| other.key(written).is_some());
    if let Some(home) = home {
        return format!("`{written}` belongs to {}", home.title);
    }
    let names = || table.keys.iter().map(|key| key.name);
    match nearest(written, names()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!(
            "the keys here are {}",
            names().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// What to say of a string where a word or a table is wanted.
fn advise_table(key: &Key, written: &str) -> Option<Advice> {
    let Form::WordOrTable { word, table } = &key.form else {
        return None;
    };
    if let Some(word) = nearest(written, [*word]) {
        return Some(format!("did you mean \"{word}\"?"));
    }
    table
        .key("text")
        .map(|_| "to send a text of your own, write { text = \"…\" }".to_owned())
}

/// What is there instead of what is wanted.
fn found(value: &DeValue<'_>) -> Advice {
    match value {
        DeValue::String(_) => "this is a string".to_owned(),
        DeValue::Integer(_) => "this is a whole number".to_owned(),
        DeValue::Float(_) => "this is a number with a fraction".to_owned(),
        DeValue::Boolean(_) => "this is true or false".to_owned(),
        DeValue::Datetime(_) => "this is a date or time".to_owned(),
        DeValue::Array(_) => "this is a list".to_owned(),
        DeValue::Table(_) => "this is a table".to_owned(),
    }
}

fn string<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Advice> {
    value.as_str().ok_or_else(|| found(value))
}

/// A string; a number in its place is told how to become one.
fn quantity<'v>(value: &'v DeValue<'_>, units: &str) -> Result<&'v str, Advice> {
    match value {
        DeValue::Integer(number) => Err(format!(
            "write a string with a unit, such as \"{number}{units}\""
        )),
        other => string(other),
    }
}

/// Splits `"off"` from everything else.
fn off_or<T>(
    off: Off,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, Advice>,
) -> Result<Option<T>, Advice> {
    match (text, off) {
        ("off", Off::Allowed) => Ok(None),
        ("off", Off::Refused) => Err("it cannot be turned off".to_owned()),
        _ => parse(text).map(Some),
    }
}

fn whole(form: &Form, value: &DeValue<'_>) -> Result<u64, Advice> {
    let integer = value.as_integer().ok_or_else(|| found(value))?;
    let Form::Whole { min, max } = form else {
        return Err(form_mismatch());
    };
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) if number < i128::from(*min) => Err("that is too small".to_owned()),
        Ok(number) if number > i128::from(*max) => Err("that is too large".to_owned()),
        Ok(number) => u64::try_from(number).map_err(|_| "that is too large".to_owned()),
        Err(_) => Err("that is too large".to_owned()),
    }
}

fn duration(form: &Form, value: &DeValue<'_>) -> Result<Option<Duration>, Advice> {
    let Form::Duration { min, max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(*off, quantity(value, "s")?, |text| {
        match parse_duration(text)? {
            parsed if parsed < *min => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too long".to_owned()),
            parsed => Ok(parsed),
        }
    })
}

fn size(form: &Form, value: &DeValue<'_>) -> Result<Option<u64>, Advice> {
    let Form::Size { max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(*off, quantity(value, "KiB")?, |text| {
        match parse_size(text)? {
            0 => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too large".to_owned()),
            parsed => Ok(parsed),
        }
    })
}

fn percent(form: &Form, value: &DeValue<'_>) -> Result<Option<u64>, Advice> {
    let Form::Percent { min, max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(*off, quantity(value, "%")?, |text| {
        match parse_percent(text)? {
            parsed if parsed < *min => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too large".to_owned()),
            parsed => Ok(parsed),
        }
    })
}

fn too_small(off: Off) -> Advice {
    match off {
        Off::Allowed => "that is too small; \"off\" turns it off".to_owned(),
        Off::Refused => "that is too small".to_owned(),
    }
}

fn text(form: &Form, value: &DeValue<'_>) -> Result<String, Advice> {
    let text = string(value)?;
    let Form::Text { bytes_max } = form else {
        return Err(form_mismatch());
    };
    match text.len() {
        0 => Err("to send nothing, leave the key out".to_owned()),
        length if length > *bytes_max => Err(format!("this has {length} bytes")),
        _ => Ok(text.to_owned()),
    }
}

fn word<T: Words>(value: &DeValue<'_>) -> Result<T, Advice> {
    let written = string(value)?;
    T::of(written).ok_or_else(|| advise_word(written, names::<T>()))
}

fn advise_word(written: &str, known: Vec<&'static str>) -> Advice {
    match nearest(written, known) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("\"{}\" is none of them", written.escape_debug()),
    }
}

fn word_or_path(form: &Form, value: &DeValue<'_>) -> Result<WordOrPath, Advice> {
    let Form::WordOrPath { words, bytes_max } = form else {
        return Err(form_mismatch());
    };
    let written = string(value)?;
    if let Some(word) = words.iter().find(|word| **word == written) {
        return Ok(WordOrPath::Word(word));
    }
    match nearest(written, words.iter().copied()) {
        _ if written.contains('\0') => Err("a path holds no NUL".to_owned()),
        _ if written.len() > *bytes_max => Err(format!(
            "this has {} bytes, and a path here has at most {bytes_max}",
            written.len()
        )),
        _ if written.contains('/') => Ok(WordOrPath::Path(written.to_owned())),
        Some(word) => Err(format!("did you mean \"{word}\"?")),
        None => Err(format!(
            "for a file beside this one, write \"./{}\"",
            written.escape_debug()
        )),
    }
}

fn address(form: &Form, value: &DeValue<'_>) -> Result<SocketAddr, Advice> {
    if let (DeValue::Integer(port), Form::BindAddress) = (value, form) {
        return Err(missing_ip_help(port));
    }
    match (form, parse_address(string(value)?)?) {
        (Form::EndpointAddress, parsed) if parsed.port() == 0 => {
            Err("no endpoint listens on port 0".to_owned())
        }
        (Form::EndpointAddress, parsed) if parsed.ip().is_unspecified() => {
            Err("that is every address and none; this machine is \"127.0.0.1\"".to_owned())
        }
        (_, parsed) => Ok(parsed),
    }
}

/// Cannot happen while every key of the table is read by the method of its form, which a test holds: `all-keys.toml` has them all.
fn form_mismatch() -> Advice {
    debug_assert!(false, "a key is read by a method that is not its form's");
    "the program reads this key in the wrong way; please report it".to_owned()
}
