//! The files of a configuration: reading them, and the ones they include.
//!
//! One level of `include` and no more: an included file that includes others is an error, so there are no circles.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::diagnostics::{Diagnostics, Located, Problem, Problems, Sources, Span};
use super::document::{self, Document, Understood};
use super::file::{File, Role};
use super::tables::INCLUDE_PATTERNS_MAX;
use super::wildcard::{has_wildcard, matching_files};
use crate::regular_file;

/// The most bytes of one file. 4096 endpoints, each a table of its own, take less than a tenth of it.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// The most bytes of a file and all it includes.
pub const CONFIGURATION_BYTES_MAX: u64 = 16 << 20;
/// The most files that one configuration may include.
pub const INCLUDED_FILES_MAX: usize = 256;

/// Files that have been read, and what was wrong with them so far.
pub(super) struct Reading {
    pub(super) sources: Sources,
    pub(super) problems: Problems,
    pub(super) file: File,
    pub(super) understood: Understood,
    bytes_left: u64,
}

/// A file to include, and the item of `include` that names it.
struct Included {
    path: PathBuf,
    named_at: Span,
}

impl Reading {
    fn new() -> Self {
        Self {
            sources: Sources::default(),
            problems: Problems::default(),
            file: File::default(),
            understood: Understood::Wholly,
            bytes_left: CONFIGURATION_BYTES_MAX,
        }
    }

    /// A text alone: its `include` is an error, because there is no folder to look in.
    pub(super) fn of_text(name: &str, text: &str) -> Self {
        let mut reading = Self::new();
        reading.file = reading.read_text(name.to_owned(), text.to_owned(), Role::Main);
        if let Some(pattern) = reading.file.include.first() {
            let problem = Problem::at(&pattern.span, "`include` needs a file on disk");
            let problem = problem.help("check the file by its path");
            reading.problems.report(problem);
        }
        reading
    }

    /// A file and all it includes.
    pub(super) fn of_files(path: &Path) -> Result<Self, Diagnostics> {
        let mut reading = Self::new();
        match reading.read_file(path, Role::Main) {
            Ok(file) => reading.file = file,
            Err(error) => {
                reading.problems.report(unreadable(path, &error));
                return Err(reading.problems.into_diagnostics(reading.sources));
            }
        }
        for included in reading.included_files(path) {
            reading.include(&included);
        }
        Ok(reading)
    }

    fn include(&mut self, included: &Included) {
        match self.read_file(&included.path, Role::Included) {
            Ok(file) => self.file.merge(file),
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", included.path.display());
                let problem = Problem::at(&included.named_at, message);
                self.problems
                    .report(problem.help("correct the path, or leave it out"));
                self.understood = Understood::Partly;
            }
        }
    }

    /// Every file that `include` names, once, in the order in which they are read.
    fn included_files(&self, main: &Path) -> Vec<Included> {
        let mut seen = vec![identity(main)];
        let mut files = Vec::new();
        for pattern in self.bounded_patterns() {
            for path in self.matches(folder_of(main), pattern) {
                let identity = identity(&path);
                if seen.contains(&identity) {
                    self.report_named_twice(pattern);
                    continue;
                }
                if files.len() == INCLUDED_FILES_MAX {
                    let message = format!("more than {INCLUDED_FILES_MAX} files are included");
                    let problem = Problem::at(&pattern.span, message);
                    self.problems
                        .report(problem.help("put several clusters into one file"));
                    return files;
                }
                seen.push(identity);
                files.push(Included {
                    path,
                    named_at: pattern.span.clone(),
                });
            }
        }
        files
    }

    fn bounded_patterns(&self) -> &[Located<String>] {
        let patterns = &self.file.include;
        if let Some(beyond) = patterns.get(INCLUDE_PATTERNS_MAX) {
            let message = format!("`include` has at most {INCLUDE_PATTERNS_MAX} items");
            let problem = Problem::at(&beyond.span, message);
            self.problems
                .report(problem.help("use patterns such as \"conf.d/*.toml\""));
        }
        &patterns[..patterns.len().min(INCLUDE_PATTERNS_MAX)]
    }

    /// The files that a pattern names.
    fn matches(&self, folder: &Path, pattern: &Located<String>) -> Vec<PathBuf> {
        let whole = folder.join(&pattern.value);
        if !has_wildcard(&pattern.value) {
            return vec![whole];
        }
        matching_files(&whole).unwrap_or_else(|advice| {
            let problem = Problem::at(&pattern.span, "this pattern cannot be followed");
            self.problems.report(problem.help(advice));
            Vec::new()
        })
    }

    /// `*.toml` beside the main file matches that as well, and patterns may overlap: only a path by name is a mistake.
    fn report_named_twice(&self, pattern: &Located<String>) {
        if !has_wildcard(&pattern.value) {
            let message = "this file is already part of the configuration";
            self.problems
                .report(Problem::at(&pattern.span, message).help("leave it out"));
        }
    }

    /// Only what keeps a file from being read at all is an error here.
    fn read_file(&mut self, path: &Path, role: Role) -> io::Result<File> {
        let bytes = read_bytes(path, FILE_BYTES_MAX.min(self.bytes_left))?;
        self.bytes_left -= bytes.len() as u64;
        let name = path.display().to_string();
        match document::text_of(bytes) {
            Ok(text) => Ok(self.read_text(name, text, role)),
            Err(not_text) => {
                let file = self.sources.add(name, not_text.text.clone());
                self.problems.report(not_text.problem(file));
                self.understood = Understood::Partly;
                Ok(File::default())
            }
        }
    }

    fn read_text(&mut self, name: String, text: String, role: Role) -> File {
        let id = self.sources.add(name, text);
        let text = self.sources.text(id);
        let Document { file, understood } = document::read(text, role, id, &self.problems);
        if understood == Understood::Partly {
            self.understood = Understood::Partly;
        }
        file
    }
}

/// One byte more than is allowed is read, to tell a file of exactly that size from a larger one.
pub(super) fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = regular_file::open(path)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!(
            "a file has at most {FILE_BYTES_MAX} bytes, and all of them {CONFIGURATION_BYTES_MAX}"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let path = path.display();
    let problem = Problem::anywhere(format!("cannot read `{path}`: {error}"));
    match error.kind() {
        io::ErrorKind::NotFound => problem.help(format!(
            "`evenkeel init {path}` writes a file to start from"
        )),
        io::ErrorKind::PermissionDenied => problem.help("run as a user who may read it"),
        _ => problem,
    }
}

/// What makes two paths the same file.
fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Where a file's relative paths start from.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new(""))
}
