//! A configuration is checked whole, and what is wrong with it is said at its place.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::support::binary;
use crate::support::evenkeel::evenkeel_command;

fn check(path: &std::path::Path) -> Output {
    let mut command = evenkeel_command(&["check"]);
    command.arg(path).output().expect("evenkeel can be started")
}

/// What we ship as an example has to be right.
#[test]
fn every_example_is_valid() {
    let examples = binary::root().join("examples");
    let files = fs::read_dir(&examples).expect("there are examples");
    let files: Vec<PathBuf> = files
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let output = check(&file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{said}", file.display());
    }
}

/// Two mistakes on two lines are both reported, each at its line and column, with the name that was meant.
#[test]
fn every_mistake_is_reported_at_its_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("broken.toml");
    let text = "\
[listener.front]
bind = \"127.0.0.1:5555\"
to = \"lettres\"

[cluster.letters]
endpoints = [{ address = \"127.0.0.1:6666\", wieght = 3 }]
";
    fs::write(&path, text).expect("it is ours");

    let output = check(&path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in ["broken.toml:3:6", "letters", "broken.toml:6:44", "weight"] {
        assert!(said.contains(part), "no {part} in:\n{said}");
    }
}

/// The starter file that `init` writes is valid as it is.
#[test]
fn the_starter_file_is_valid() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("evenkeel.toml");
    let mut init = evenkeel_command(&["init"]);
    let output = init.arg(&path).output().expect("evenkeel can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let output = check(&path);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Each line is right, and yet the cluster could never serve anybody.
#[test]
fn what_could_never_serve_is_a_mistake() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("idle.toml");
    let text = "\
[listener.front]
bind = \"127.0.0.1:5555\"
to = \"letters\"

[cluster.letters]
endpoints = [{ address = \"127.0.0.1:6666\", disabled = true }]
";
    fs::write(&path, text).expect("it is ours");

    let output = check(&path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("idle.toml:5:10"), "{said}");
}
