//! The files of a configuration: reading them, and finding the included ones.
//!
//! One level of `include` and no more: an included file that includes others is an error, so there are no circles.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::diagnostics::{Diagnostics, Located, Problem, Problems, Sources};
use super::document::{self, Document, Syntax};
use super::file::{File, Role};
use super::keys::INCLUDE_PATTERNS_MAX;

/// The most bytes of one file. 4096 endpoints, each a table of its own, take less than a tenth of it.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// The most files that one configuration may include.
pub const INCLUDED_FILES_MAX: usize = 256;

/// Files that have been read, and what was wrong with them so far.
pub(super) struct Reading {
    pub(super) sources: Sources,
    pub(super) problems: Problems,
    pub(super) file: File,
    pub(super) syntax: Syntax,
}

impl Reading {
    fn new() -> Self {
        Self {
            sources: Sources::default(),
            problems: Problems::default(),
            file: File::default(),
            syntax: Syntax::Sound,
        }
    }

    /// A text alone: its `include` is an error, because there is no folder to look in.
    pub(super) fn of_text(name: &str, text: String) -> Self {
        let mut reading = Self::new();
        reading.file = reading.read(name.to_owned(), text, Role::Main);
        if let Some(pattern) = reading.file.include.first() {
            let problem = Problem::at(&pattern.span, "`include` needs a file on disk");
            reading
                .problems
                .report(problem.help("check the file by its path"));
        }
        reading
    }

    /// A file and all it includes. What cannot be read at all ends it at once.
    pub(super) fn of_files(path: &Path) -> Result<Self, Diagnostics> {
        let mut reading = Self::new();
        match read_bytes(path) {
            Ok(bytes) => reading.file = reading.read_bytes(path, bytes, Role::Main),
            Err(error) => {
                reading.problems.report(unreadable(path, &error));
                return Err(reading.problems.into_diagnostics(reading.sources));
            }
        }
        reading.include(path);
        Ok(reading)
    }

    fn include(&mut self, main: &Path) {
        let patterns = std::mem::take(&mut self.file.include);
        if let Some(first_beyond) = patterns.get(INCLUDE_PATTERNS_MAX) {
            let problem = Problem::at(
                &first_beyond.span,
                format!("`include` has at most {INCLUDE_PATTERNS_MAX} items"),
            );
            self.problems
                .report(problem.help("use patterns such as \"conf.d/*.toml\""));
        }
        let mut seen = vec![identity(main)];
        for pattern in patterns.iter().take(INCLUDE_PATTERNS_MAX) {
            for path in self.matches(folder_of(main), pattern) {
                self.include_file(&path, pattern, &mut seen);
            }
        }
    }

    fn include_file(&mut self, path: &Path, pattern: &Located<String>, seen: &mut Vec<PathBuf>) {
        let identity = identity(path);
        if seen.contains(&identity) {
            // `*.toml` beside the main file matches that as well, and patterns may overlap: only a path by name is a mistake.
            if !has_wildcard(&pattern.value) {
                self.problems.report(
                    Problem::at(
                        &pattern.span,
                        "this file is already part of the configuration",
                    )
                    .help("leave it out"),
                );
            }
            return;
        }
        if seen.len() > INCLUDED_FILES_MAX {
            return;
        }
        seen.push(identity);
        if seen.len() > INCLUDED_FILES_MAX {
            let message = format!("more than {INCLUDED_FILES_MAX} files are included");
            self.problems.report(
                Problem::at(&pattern.span, message).help("put several clusters into one file"),
            );
            return;
        }
        match read_bytes(path) {
            Ok(bytes) => {
                let included = self.read_bytes(path, bytes, Role::Included);
                self.file.merge(included);
            }
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", path.display());
                let problem = Problem::at(&pattern.span, message);
                self.problems
                    .report(problem.help("correct the path, or leave it out"));
            }
        }
    }

    /// The files that a pattern names, sorted.
    fn matches(&self, folder: &Path, pattern: &Located<String>) -> Vec<PathBuf> {
        let whole = folder.join(&pattern.value);
        if !has_wildcard(&pattern.value) {
            return vec![whole];
        }
        match matching_files(&whole) {
            Ok(paths) => paths,
            Err(advice) => {
                self.problems.report(
                    Problem::at(&pattern.span, "this pattern cannot be followed").help(advice),
                );
                Vec::new()
            }
        }
    }

    fn read_bytes(&mut self, path: &Path, bytes: Vec<u8>, role: Role) -> File {
        let name = path.display().to_string();
        match document::text_of(bytes) {
            Ok(text) => self.read(name, text, role),
            Err(not_text) => {
                let id = self.sources.add(name, not_text.text.clone());
                self.problems.report(not_text.problem(id));
                self.syntax = Syntax::Broken;
                File::default()
            }
        }
    }

    fn read(&mut self, name: String, text: String, role: Role) -> File {
        let too_large = text.len() as u64 > FILE_BYTES_MAX;
        if too_large {
            self.problems.report(Problem::anywhere(format!(
                "`{name}` is larger than {FILE_BYTES_MAX} bytes"
            )));
            self.syntax = Syntax::Broken;
            return File::default();
        }
        let id = self.sources.add(name, text);
        let Document { file, syntax } =
            document::read(self.sources.text(id), role, id, &self.problems);
        if syntax == Syntax::Broken {
            self.syntax = Syntax::Broken;
        }
        file
    }
}

/// One byte more than is allowed is read, to tell a file of exactly that size from a larger one.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {FILE_BYTES_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let problem = Problem::anywhere(format!("cannot read `{}`: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => problem.help(format!(
            "`evenkeel init {}` writes a file to start from",
            path.display()
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

fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// A folder that is not there holds no file: a package may ship the pattern without the folder.
fn matching_files(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder_of(pattern);
    let Some(name) = pattern
        .file_name()
        .and_then(OsStr::to_str)
        .filter(|_| !has_wildcard(&folder.to_string_lossy()))
    else {
        return Err(
            "wildcards are for the file's name, not for its folder: \"conf.d/*.toml\"".to_owned(),
        );
    };
    let listed = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = match fs::read_dir(listed) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot list `{}`: {error}", listed.display())),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut paths: Vec<PathBuf> = names
        .filter(|file| wildcard_match(name, file))
        .map(|file| folder.join(file))
        .collect();
    paths.sort();
    Ok(paths)
}

/// As a shell does it: `*` is any characters, `?` is one, and neither takes the dot of a hidden file.
fn wildcard_match(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    matches_from(
        &pattern.chars().collect::<Vec<_>>(),
        &name.chars().collect::<Vec<_>>(),
    )
}

/// Remembers the last `*` alone and retries from there: linear in memory, and at worst the product of both lengths in time.
fn matches_from(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, position));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((after_star, taken)) = retry else {
                    return false;
                };
                retry = Some((after_star, taken + 1));
                (at, position) = (after_star, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    // A pattern matches as in a shell.
    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, name, matches) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", false),
            ("*.toml", ".a.toml", false),
            (".*", ".a", true),
            ("*.toml", "a.toml~", false),
            ("a?c*", "abcdef", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*ab", "aab", true),
            ("*", "", true),
        ] {
            assert_eq!(wildcard_match(pattern, name), matches, "{pattern} {name}");
        }
    }
}
