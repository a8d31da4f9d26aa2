//! Writing to standard output and standard error, when the reader may be gone or want no colour.

use std::error::Error;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::exit::Exit;
use crate::table::printable;

/// Prints text as it is. A reader that has seen enough (`status | head`) is no fault.
#[must_use = "an answer that could not be written was not given"]
pub(crate) fn print(text: &str) -> Exit {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("cannot write the answer: {error}"))
        }
        _ => Exit::Done,
    }
}

/// Prints a value as indented JSON.
#[must_use = "an answer that could not be written was not given"]
pub(crate) fn print_json(value: &impl Serialize) -> Exit {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => complain(&format!("cannot write the answer as JSON: {error}")),
    }
}

/// Says on standard error what went wrong.
pub(crate) fn complain(message: &str) -> Exit {
    // With standard error gone as well, there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "evenkeel: {message}");
    Exit::Failed
}

/// An error, and what lies under it where its own words do not say so already.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let under = error.to_string();
        if !text.contains(&under) {
            text = format!("{text}: {under}");
        }
        cause = error.source();
    }
    text
}

/// A path in a message: on one line, without commands to the terminal.
pub(crate) fn shown_path(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Whether standard output is for eyes that see colour: a terminal, and nobody has set `NO_COLOR` (no-color.org).
pub(crate) fn stdout_has_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
