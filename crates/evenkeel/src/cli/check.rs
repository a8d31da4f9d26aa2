//! `evenkeel check`: says whether a configuration is right, and if not, all that is wrong with it.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::config::{self, Appearance, DEFAULT_PATH, Diagnostics, Loaded, ProblemRecord};
use crate::exit::Exit;
use crate::notes::notes;
use crate::output;

/// What `check` takes.
#[derive(Args, Clone, Debug)]
pub struct CheckArguments {
    /// The configuration file
    #[arg(default_value = DEFAULT_PATH)]
    file: PathBuf,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Verdict {
    Right {
        valid: bool,
        listeners: usize,
        clusters: usize,
        endpoints: usize,
        /// That stand for endpoints.
        names: usize,
        /// Worth a second look; nothing is wrong.
        notes: Vec<String>,
    },
    Wrong {
        valid: bool,
        /// Of all errors, also of those that are not listed.
        error_count: usize,
        errors: Vec<ProblemRecord>,
    },
}

/// Reads the file and prints the verdict.
pub fn check(arguments: &CheckArguments) -> Exit {
    match (config::load(&arguments.file), arguments.json) {
        (Ok(loaded), false) => output::print(&summary(&arguments.file, &loaded)),
        (Ok(loaded), true) => output::print_json(&right(&loaded)),
        (Err(diagnostics), false) => complain(&diagnostics),
        (Err(diagnostics), true) => match output::print_json(&wrong(&diagnostics)) {
            Exit::Done => Exit::ConfigInvalid,
            failed => failed,
        },
    }
}

/// Prints everything that is wrong on standard error: what every command does that needs a configuration.
pub fn complain(diagnostics: &Diagnostics) -> Exit {
    let text = diagnostics.render(appearance());
    // With standard error gone, there is nobody left to tell; the exit code says it all the same.
    let _ = io::stderr().lock().write_all(text.as_bytes());
    Exit::ConfigInvalid
}

/// Colour is for a terminal, unless `NO_COLOR` is set (no-color.org).
pub(super) fn appearance() -> Appearance {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stderr().is_terminal() && !unwanted {
        Appearance::Coloured
    } else {
        Appearance::Plain
    }
}

fn summary(file: &Path, loaded: &Loaded) -> String {
    format!(
        "{}: ok ({}, {}, {}{})\n{}",
        output::shown_path(file),
        counted(loaded.settings.listeners.len(), "listener"),
        counted(loaded.settings.clusters.len(), "cluster"),
        counted(loaded.endpoint_count(), "endpoint"),
        match loaded.name_count() {
            0 => String::new(),
            count => format!(
                ", {} that {} for more",
                counted(count, "name"),
                if count == 1 { "stands" } else { "stand" }
            ),
        },
        notes(&loaded.settings)
            .iter()
            .map(|note| format!("note: {note}\n"))
            .collect::<String>()
    )
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

fn right(loaded: &Loaded) -> Verdict {
    Verdict::Right {
        valid: true,
        listeners: loaded.settings.listeners.len(),
        clusters: loaded.settings.clusters.len(),
        endpoints: loaded.endpoint_count(),
        names: loaded.name_count(),
        notes: notes(&loaded.settings),
    }
}

fn wrong(diagnostics: &Diagnostics) -> Verdict {
    Verdict::Wrong {
        valid: false,
        error_count: diagnostics.count(),
        errors: diagnostics.records(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        [listener.web]
        bind = "127.0.0.1:8080"
        to = "web"
        [cluster.web]
        endpoints = ["10.0.0.1:80", "10.0.0.2:80"]
    "#;

    /// However many errors there are, the JSON lists as many as the words do, and counts all.
    #[test]
    fn the_json_is_bounded() {
        let unknown: String = (0..1000).map(|key| format!("key{key} = 1\n")).collect();
        let text = format!("{unknown}{SMALL}");
        let diagnostics = config::parse_text("long.toml", &text).unwrap_err();

        let json = serde_json::to_value(wrong(&diagnostics)).unwrap();

        assert_eq!(json["error_count"], 1000);
        let listed = json["errors"].as_array().unwrap().len();
        assert_eq!(listed, config::PROBLEMS_SHOWN_MAX);
    }

    /// One listener, one cluster, two endpoints: the summary counts them, and knows one from many.
    #[test]
    fn a_right_file_is_counted() {
        let loaded = config::parse_text("small.toml", SMALL).unwrap();

        let summary = summary(Path::new("small.toml"), &loaded);

        assert_eq!(
            summary,
            "small.toml: ok (1 listener, 1 cluster, 2 endpoints)\n"
        );
    }

    /// A program that reads the JSON finds the place, the fault and the advice in fields of their own.
    #[test]
    fn a_wrong_file_is_an_object_for_each_error() {
        let text = SMALL.replace("to = \"web\"", "to = \"wbe\"");
        let diagnostics = config::parse_text("small.toml", &text).unwrap_err();

        let json = serde_json::to_value(wrong(&diagnostics)).unwrap();

        let expected = serde_json::json!({
            "valid": false,
            "error_count": 1,
            "errors": [{
                "file": "small.toml",
                "line": 4,
                "column": 14,
                "message": "there is no cluster `wbe`",
                "help": "did you mean \"web\"?",
            }],
        });
        assert_eq!(json, expected);
    }
}
