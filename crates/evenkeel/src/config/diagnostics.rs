//! What is wrong with a configuration, and where: collected, sorted, and shown the way a compiler would.
//!
//! Nothing here knows a key or a rule of the configuration. A [`Problem`] points at a [`Span`] of one of the
//! [`Sources`]; [`Diagnostics`] owns both, and can be rendered for people or handed out as plain values for JSON.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

/// The most problems that are shown, to people or as plain values; beyond them only their number is told.
pub const PROBLEMS_SHOWN_MAX: usize = 100;

/// The most problems that are kept, to show the first of them in the order of the files; beyond them they are counted.
pub const PROBLEMS_KEPT_MAX: usize = 10_000;

/// The most characters of the user's own words that are repeated in a message.
const SHOWN_CHARS_MAX: usize = 80;

/// A help text is put beside its caret while both end before this column, and on a line of its own otherwise.
const BESIDE_CARET_COLUMN_MAX: usize = 110;

/// One of the files of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(usize);

/// A piece of one file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Which file.
    pub(super) file: FileId,
    /// Which of its bytes.
    pub(super) bytes: Range<usize>,
}

/// A value, and where the user wrote it.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    /// What was written.
    pub(super) value: T,
    /// Where.
    pub(super) span: Span,
}

impl<T> Located<T> {
    /// The same place, another value.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Located<U> {
        Located {
            value: change(self.value),
            span: self.span,
        }
    }
}

/// The files of a configuration: the main one first, then the included ones in the order they were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources(Vec<Source>);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    lines: LineIndex,
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub(super) struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(super) fn of(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Self(std::iter::once(0).chain(after_newlines).collect())
    }

    /// The line that a byte is on, from 0.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        // The first line begins at 0, so at least one begins at or before any byte.
        self.0.partition_point(|start| *start <= byte) - 1
    }

    /// Where the line that a byte is on begins.
    fn start_of_line(&self, byte: usize) -> usize {
        self.0[self.line_of(byte)]
    }
}

/// The user's own words in a message: on one line, without control characters, and not too many.
pub(super) fn shown(words: &str) -> String {
    let escaped = |text: &str| text.escape_debug().to_string();
    match words.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => escaped(&words[..end]) + "…",
        None => escaped(words),
    }
}

impl Sources {
    /// Adds a file.
    pub(super) fn add(&mut self, name: String, text: String) -> FileId {
        let lines = LineIndex::of(&text);
        self.0.push(Source { name, text, lines });
        FileId(self.0.len() - 1)
    }

    /// A file's content.
    pub(super) fn text(&self, file: FileId) -> &str {
        &self.0[file.0].text
    }

    /// Where a span begins, as people count.
    fn place(&self, span: &Span) -> Place {
        let source = &self.0[span.file.0];
        let start = source.floor(span.bytes.start);
        let line_start = source.lines.start_of_line(start);
        Place {
            file: source.name.clone(),
            line: source.lines.line_of(start) + 1,
            column: source.text[line_start..start].chars().count() + 1,
        }
    }
}

impl Source {
    /// The nearest character boundary at or before `byte`.
    fn floor(&self, byte: usize) -> usize {
        self.text.floor_char_boundary(byte)
    }

    /// The whole lines that a span touches: a renderer given these alone does not depend on the size of the file.
    fn lines_around(&self, bytes: &Range<usize>) -> Range<usize> {
        let start = self.floor(bytes.start);
        let end = self.floor(bytes.end).max(start);
        let first = self.lines.start_of_line(start);
        let last = self.text[end..]
            .find('\n')
            .map_or(self.text.len(), |newline| end + newline);
        first..last
    }
}

/// A position as people count: from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    file: String,
    line: usize,
    column: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    message: String,
    at: Option<Span>,
    help: Option<String>,
    related: Option<(Span, &'static str)>,
}

impl Problem {
    /// Something wrong at a place in a file.
    pub(super) fn at(span: &Span, message: impl Into<String>) -> Self {
        Self {
            at: Some(span.clone()),
            ..Self::anywhere(message)
        }
    }

    /// Something wrong with the files as a whole.
    pub(super) fn anywhere(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: None,
            help: None,
            related: None,
        }
    }

    /// Adds what to do about it.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the other place that makes this one wrong.
    pub(super) fn related(mut self, span: &Span, what: &'static str) -> Self {
        self.related = Some((span.clone(), what));
        self
    }

    fn starts_at(&self) -> Option<(FileId, usize)> {
        self.at.as_ref().map(|span| (span.file, span.bytes.start))
    }
}

/// Collects problems while a configuration is read, so that the first one stops nothing.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Collected>);

#[derive(Debug, Default)]
struct Collected {
    kept: Vec<Problem>,
    count: usize,
}

impl Problems {
    pub(super) fn report(&self, problem: Problem) {
        let mut collected = self.0.borrow_mut();
        collected.count += 1;
        if collected.kept.len() < PROBLEMS_KEPT_MAX {
            collected.kept.push(problem);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().count == 0
    }

    /// Adds another collection's problems, except those whose place `keep` refuses.
    pub(super) fn absorb(&self, others: Self, keep: impl Fn(&Span) -> bool) {
        let others = others.0.into_inner();
        self.0.borrow_mut().count += others.count - others.kept.len();
        let kept = others.kept.into_iter();
        kept.filter(|problem| problem.at.as_ref().is_none_or(&keep))
            .for_each(|problem| self.report(problem));
    }

    /// In the order of the files, with those of the files as a whole at the end.
    pub(super) fn into_diagnostics(self, sources: Sources) -> Diagnostics {
        let Collected {
            kept: mut problems,
            count,
        } = self.0.into_inner();
        problems.sort_by_key(|problem| (problem.at.is_none(), problem.starts_at()));
        Diagnostics {
            sources,
            problems,
            count,
        }
    }
}

/// Whether a terminal reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appearance {
    /// No escape sequences.
    Plain,
    /// Coloured by ANSI escape sequences.
    Coloured,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    sources: Sources,
    problems: Vec<Problem>,
    count: usize,
}

/// One problem as plain values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemRecord {
    /// The file's name; `null` where no one file is to blame.
    pub file: Option<String>,
    /// From 1.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostics {
    /// How many problems there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What the first problem is, without its place.
    pub fn first_message(&self) -> &str {
        let first = self.problems.first();
        first.map_or("", |problem| &problem.message)
    }

    /// The problems as plain values, in the order of the files; at most [`PROBLEMS_SHOWN_MAX`].
    pub fn records(&self) -> Vec<ProblemRecord> {
        self.problems
            .iter()
            .take(PROBLEMS_SHOWN_MAX)
            .map(|problem| self.record(problem))
            .collect()
    }

    /// The problems for people: each with its place, its lines and a caret, and their number at the end.
    pub fn render(&self, appearance: Appearance) -> String {
        let renderer = match appearance {
            Appearance::Plain => Renderer::plain(),
            Appearance::Coloured => Renderer::styled(),
        };
        let mut text = String::new();
        for problem in self.problems.iter().take(PROBLEMS_SHOWN_MAX) {
            text.push_str(&renderer.render(&[self.group(problem)]));
            text.push_str("\n\n");
        }
        text.push_str(&self.summary());
        text.push('\n');
        text
    }

    fn summary(&self) -> String {
        let hidden = self.count.saturating_sub(PROBLEMS_SHOWN_MAX);
        let errors = if self.count() == 1 { "error" } else { "errors" };
        match hidden {
            0 => format!("{} {errors}; nothing was started or changed", self.count()),
            _ => format!(
                "{} {errors}, {hidden} of them not shown; nothing was started or changed",
                self.count()
            ),
        }
    }

    fn record(&self, problem: &Problem) -> ProblemRecord {
        let place = problem.at.as_ref().map(|span| self.sources.place(span));
        ProblemRecord {
            line: place.as_ref().map(|place| place.line),
            column: place.as_ref().map(|place| place.column),
            file: place.map(|place| place.file),
            message: problem.message.clone(),
            help: problem.help.clone(),
        }
    }

    fn group<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let title = Group::with_title(Level::ERROR.primary_title(&problem.message));
        let help = problem.help.as_deref();
        let Some(at) = &problem.at else {
            return title.elements(help.map(|help| Level::HELP.message(help)));
        };
        let beside = help.filter(|help| self.fits_beside_caret(at, help));
        let below = help.filter(|_| beside.is_none());
        let mut marks = vec![Mark {
            span: at,
            label: beside,
            kind: AnnotationKind::Primary,
        }];
        marks.extend(problem.related.as_ref().map(|(span, what)| Mark {
            span,
            label: Some(what),
            kind: AnnotationKind::Context,
        }));
        // Marks in one file are shown together, and those in two files one after the other.
        let snippets = marks
            .chunk_by(|one, other| one.span.file == other.span.file)
            .map(|marks| self.snippet(marks));
        title
            .elements(snippets)
            .elements(below.map(|help| Level::HELP.message(help)))
    }

    fn fits_beside_caret(&self, at: &Span, help: &str) -> bool {
        let text = self.sources.text(at.file);
        let marked = text.get(at.bytes.clone()).unwrap_or_default();
        let end = self.sources.place(at).column + marked.chars().count();
        !marked.contains('\n') && end + help.chars().count() < BESIDE_CARET_COLUMN_MAX
    }

    /// Shows marks of one file, the first of which is the problem's own.
    fn snippet<'a>(&'a self, marks: &[Mark<'a>]) -> Snippet<'a, Annotation<'a>> {
        let file = marks[0].span.file;
        let source = &self.sources.0[file.0];
        let bytes = marks
            .iter()
            .map(|mark| mark.span.bytes.clone())
            .reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
            .unwrap_or_default();
        let lines = source.lines_around(&bytes);
        let annotations = marks.iter().map(|mark| {
            let start = source.floor(mark.span.bytes.start);
            let end = source.floor(mark.span.bytes.end).max(start);
            mark.kind
                .span(start - lines.start..end - lines.start)
                .label(mark.label)
        });
        Snippet::source(&source.text[lines.clone()])
            .line_start(self.sources.place(&Span { file, bytes }).line)
            .path(source.name.as_str())
            .annotations(annotations)
    }
}

/// A piece of a file that is shown with something underneath.
struct Mark<'a> {
    span: &'a Span,
    label: Option<&'a str>,
    kind: AnnotationKind,
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Appearance::Plain))
    }
}

impl std::error::Error for Diagnostics {}
