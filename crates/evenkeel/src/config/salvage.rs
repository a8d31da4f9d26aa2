//! Where the process of a configuration has its control socket, told even by one that is wrong elsewhere.
//!
//! Whoever asks how a process does, or wants to end it, needs no more of the file than that. Whether the file is right is for
//! `load` to say.

use std::path::{Path, PathBuf};

use super::build;
use super::diagnostics::Diagnostics;
use super::document::text_of;
use super::file::{File, Process};
use super::load::{FILE_BYTES_MAX, Reading, folder_of, read_bytes};
use super::surroundings::Surroundings;

const KEY: &str = "control_socket";

/// The control socket of a configuration; `None` if it is turned off.
///
/// # Errors
///
/// Everything that is wrong with the configuration, if that leaves open where the socket is.
pub fn control_socket_of(path: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    let diagnostics = match super::load(path) {
        Ok(loaded) => return Ok(loaded.settings.process.control_socket),
        Err(diagnostics) => diagnostics,
    };
    let bytes = read_bytes(path, FILE_BYTES_MAX).ok();
    let text = bytes.map(|bytes| text_of(bytes).unwrap_or_else(|not_text| not_text.text));
    let process = text.and_then(|text| process_in(&text)).ok_or(diagnostics)?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let surroundings = Surroundings::of_this_process();
    Ok(build::control_socket(
        &process,
        folder_of(&absolute),
        &surroundings,
    ))
}

/// What a text says of its process as far as the socket goes. A text that has a socket which cannot be made out says nothing:
/// the default would lead to another process.
fn process_in(text: &str) -> Option<Process> {
    let process = understood(text).process;
    let mut mentions = text.lines().filter(|line| mentions_key(line)).peekable();
    if process.control_socket.is_some() || mentions.peek().is_none() {
        return Some(process);
    }
    mentions.find_map(alone)
}

fn mentions_key(line: &str) -> bool {
    let written = line.split('#').next();
    written.is_some_and(|written| written.contains(KEY))
}

/// A line by itself, with the table in it or above it.
fn alone(line: &str) -> Option<Process> {
    let texts = [line.to_owned(), format!("[process]\n{line}")];
    let mut processes = texts.iter().map(|text| understood(text).process);
    processes.find(|process| process.control_socket.is_some())
}

/// As much of a text as can be understood.
fn understood(text: &str) -> File {
    Reading::of_text("", text).file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::values::WordOrPath;

    fn socket_in(text: &str) -> Option<Option<String>> {
        let process = process_in(text)?;
        Some(process.control_socket.map(|socket| match socket.value {
            WordOrPath::Word(word) => word.to_owned(),
            WordOrPath::Path(path) => path,
        }))
    }

    /// Wrong content, wrong syntax before and behind, the table in the line: the socket is told.
    #[test]
    fn a_socket_is_found_in_a_wrong_file() {
        for text in [
            "[process]\ncontrol_socket = \"/x.sock\"\nworkers = \"many\"\n[clutser.x]\n",
            "[process]\ncontrol_socket = \"/x.sock\" # here\n[[[\n",
            "{\n[process\ncontrol_socket = '/x.sock'\n",
            "= =\nprocess.control_socket = \"/x.sock\"\n",
            "= =\nprocess = { workers = 1, control_socket = \"/x.sock\" }\n",
        ] {
            assert_eq!(socket_in(text), Some(Some("/x.sock".to_owned())), "{text}");
        }
    }

    /// It is nowhere, or only in a comment: the default counts.
    #[test]
    fn a_file_without_a_socket_has_the_default() {
        for text in ["= =\n", "= =\n# control_socket = \"/x.sock\"\n"] {
            assert_eq!(socket_in(text), Some(None), "{text}");
        }
    }

    /// The default would be another process's socket.
    #[test]
    fn a_socket_that_cannot_be_made_out_is_not_guessed() {
        for text in [
            "[process]\ncontrol_socket = 5\n",
            "[process]\ncontrol_socket \"/x.sock\"\n",
        ] {
            assert_eq!(socket_in(text), None, "{text}");
        }
    }
}
