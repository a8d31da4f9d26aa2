//! A typed reader over a spanned TOML document that never stops at the first problem.
//!
//! It is driven by the table of keys: what a key may hold, within which bounds, and whether it may be absent. Whatever is
//! wrong is reported, and the value is then simply not there.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_proxy::discovery::DnsName;
use evenkeel_proxy::settings::StatusRange;
use evenkeel_proxy::{HostPattern, Sender};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::diagnostics::{Located, Problem, Problems, Span, shown};
use super::endpoint_address::EndpointAddress;
use super::keys::{Absent, Form, Key, Table};
use super::suggest::nearest;
use super::tables::TABLES;
use super::units::{check_name, parse_sender};
use super::values::{
    Advice, WordOrPath, address, bytes, duration, endpoint_address, file, found, host_name,
    host_pattern, name_server, percent, permissions, service, size, status_codes, string, text,
    whole, word, word_or_path,
};
use super::words::Words;

type Value<'r> = Spanned<DeValue<'r>>;

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
    Address(Located<EndpointAddress>),
    Table(TableReader<'r>),
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

    /// Where the name of a key is that is written, rightly or wrongly.
    pub(super) fn key_place(&self, name: &str) -> Option<Span> {
        let (written, _) = self.entries.get_key_value(name)?;
        Some(self.span(written.span()))
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

    pub(super) fn address(&self, name: &str) -> Option<Located<Address>> {
        self.read(name, address)
    }

    pub(super) fn status_codes(&self, name: &str) -> Option<Located<Vec<StatusRange>>> {
        self.read(name, status_codes)
    }

    /// With the escapes undone.
    pub(super) fn bytes(&self, name: &str) -> Option<Located<Vec<u8>>> {
        self.read(name, bytes)
    }

    pub(super) fn file(&self, name: &str) -> Option<Located<String>> {
        self.read(name, file)
    }

    pub(super) fn endpoint_address(&self, name: &str) -> Option<Located<EndpointAddress>> {
        self.read(name, endpoint_address)
    }

    pub(super) fn service(&self, name: &str) -> Option<Located<DnsName>> {
        self.read(name, service)
    }

    pub(super) fn host_name(&self, name: &str) -> Option<Located<DnsName>> {
        self.read(name, host_name)
    }

    pub(super) fn host_pattern(&self, name: &str) -> Option<Located<HostPattern>> {
        self.read(name, host_pattern)
    }

    /// Reports if neither of two keys is written, of which one must be.
    pub(super) fn require_either(&self, usual: &str, other: &str) {
        if self.entries.contains_key(usual) || self.entries.contains_key(other) {
            return;
        }
        if let Some(key) = self.table.key(usual) {
            let message = format!("{} has no `{usual}`", self.subject);
            let about = as_clause(key.about);
            let advice = format!("add `{usual}`: {about}; or `{other}`");
            self.problems
                .report(Problem::at(&self.at, message).help(advice));
        }
    }

    pub(super) fn permissions(&self, name: &str) -> Option<Located<u32>> {
        self.read(name, permissions)
    }

    /// A name of something that is defined elsewhere, whatever it is.
    pub(super) fn string(&self, name: &str) -> Option<Located<String>> {
        self.read(name, |_, value| string(value).map(str::to_owned))
    }

    /// The items of a list of strings; `what` is one of them.
    pub(super) fn strings(&self, name: &str, what: &str) -> Vec<Located<String>> {
        let what = format!("{what} must be a string");
        let list = self.parsed_items(name, &what, |value| string(value).map(str::to_owned));
        list.map(|list| list.value).unwrap_or_default()
    }

    pub(super) fn name_servers(&self, name: &str) -> Option<Located<Vec<Located<SocketAddr>>>> {
        self.parsed_items(name, "a name server must be an IP address", name_server)
    }

    /// The items of a list that can be read; `message` is said of the others.
    fn parsed_items<T>(
        &self,
        name: &str,
        message: &str,
        parse: impl Fn(&DeValue<'_>) -> Result<T, Advice>,
    ) -> Option<Located<Vec<Located<T>>>> {
        let read = |item: &'r Value<'r>| match parse(item.get_ref()) {
            Ok(parsed) => Some(self.located(item, parsed)),
            Err(advice) => {
                self.report(item, message.to_owned(), advice);
                None
            }
        };
        let list = self.list(name)?;
        Some(list.map(|items| items.iter().filter_map(read).collect()))
    }

    /// The items of a list of senders, without those that are none.
    pub(super) fn senders(&self, name: &str) -> Option<Located<Vec<Sender>>> {
        let list = self.list(name)?;
        if list.value.is_empty() {
            let problem = Problem::at(&list.span, format!("`{name}` is empty"));
            let advice = "write at least one network, or leave `proxy_protocol` out";
            self.problems.report(problem.help(advice));
        }
        Some(list.map(|items| items.iter().filter_map(|item| self.sender(item)).collect()))
    }

    /// The same, where nobody may be written.
    pub(super) fn senders_if_written(&self, name: &str) -> Option<Located<Vec<Sender>>> {
        let list = self.list(name)?;
        Some(list.map(|items| items.iter().filter_map(|item| self.sender(item)).collect()))
    }

    fn sender(&self, item: &'r Value<'r>) -> Option<Sender> {
        match string(item.get_ref()).and_then(parse_sender) {
            Ok(sender) => Some(sender),
            Err(advice) => {
                self.report(
                    item,
                    "this must be a network or \"unix\"".to_owned(),
                    advice,
                );
                None
            }
        }
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

    /// The tables of a list of them; `what` is one of them.
    pub(super) fn tables(&self, name: &str, what: &str) -> Option<Located<Vec<Self>>> {
        let list = self.list(name)?;
        if list.value.is_empty() {
            let problem = Problem::at(&list.span, format!("`{name}` is empty"));
            self.problems
                .report(problem.help("write at least one, or leave the key out"));
        }
        let table = self.table.key(name)?.form.inner()?;
        let open = |item: &'r Value<'r>| match item.get_ref().as_table() {
            Some(entries) => {
                let at = self.span_of(item);
                Some(Self::open(
                    table,
                    entries,
                    what.to_owned(),
                    at,
                    self.problems,
                ))
            }
            None => {
                self.report(
                    item,
                    format!("{what} must be a table"),
                    found(item.get_ref()),
                );
                None
            }
        };
        Some(list.map(|items| items.iter().filter_map(open).collect()))
    }

    /// A table inside this one.
    pub(super) fn table(&self, name: &str) -> Option<Self> {
        let (key, at, value) = self.entry(name)?;
        let Some(entries) = value.get_ref().as_table() else {
            self.report_form(key, value, as_a_table(key, value.get_ref()));
            return None;
        };
        Some(self.open_inner(key, entries, at))
    }

    pub(super) fn word_or_table(&self, name: &str) -> Option<Located<WordOrTable<'r>>> {
        let (key, at, value) = self.entry(name)?;
        let located = |value| Located {
            value,
            span: at.clone(),
        };
        if let Some(entries) = value.get_ref().as_table() {
            let table = self.open_inner(key, entries, at.clone());
            return Some(located(WordOrTable::Table(table)));
        }
        match (&key.form, value.get_ref().as_str()) {
            (Form::WordOrTable { word, .. }, Some(text)) if *word == text => {
                Some(located(WordOrTable::Word))
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
        match endpoint_address(&Form::AddressOrName, item.get_ref()) {
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
        let (kind, written) = (key.name, shown(name.get_ref()));
        let at = self.span(name.span());
        if let Err(advice) = check_name(name.get_ref()) {
            let problem = Problem::at(&at, format!("`{written}` is no name for a {kind}"));
            self.problems.report(problem.help(advice));
        }
        let Some(entries) = value.get_ref().as_table() else {
            let problem = Problem::at(&at, format!("`{kind}.{written}` must be a table"));
            let advice = format!("write `[{kind}.NAME]`, with the keys below it");
            self.problems.report(problem.help(advice));
            return None;
        };
        let subject = format!("{kind} `{written}`");
        let name = Located {
            value: name.get_ref().clone().into_owned(),
            span: at.clone(),
        };
        let table = Self::open(table, entries, subject, at, self.problems);
        Some(NamedTable { name, table })
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
            let message = format!("{} has no `{}`", self.subject, key.name);
            let advice = format!("add `{}`: {}", key.name, as_clause(key.about));
            self.problems
                .report(Problem::at(&self.at, message).help(advice));
        }
    }

    fn report_unknown_keys(&self) {
        for (written, _) in in_file_order(self.entries) {
            let name: &str = written.get_ref();
            if self.table.key(name).is_none() {
                let message = format!("unknown key `{}`", shown(name));
                let problem = Problem::at(&self.span(written.span()), message);
                let advice = advise_key(self.table, name);
                self.problems.report(problem.help(advice));
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
    if let Some(stem) = timeout_stem(table, written) {
        return format!("write `timeouts = {{ {stem} = … }}`");
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

/// `connect_timeout` is what others call `connect` in `timeouts`.
fn timeout_stem<'w>(table: &Table, written: &'w str) -> Option<&'w str> {
    let stem = written.strip_suffix("_timeout")?;
    let timeouts = table.key("timeouts")?.form.inner()?;
    timeouts.key(stem).map(|_| stem)
}

/// What to say of a plain value where a table is wanted: how the table is written, by its first key.
fn as_a_table(key: &Key, value: &DeValue<'_>) -> Advice {
    let found = found(value);
    let Form::Table(table) = key.form else {
        return found;
    };
    let first = table.keys.first();
    first.map_or_else(
        || found.clone(),
        |first| format!("{found}; write `{} = {{ {} = … }}`", key.name, first.name),
    )
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
