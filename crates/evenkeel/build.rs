//! Tells the program which commit it was built from, for `--version`. Without git, or outside a repository, it does without.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Git writes one line here whenever the checked-out commit changes, on a branch or not.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!(
        "cargo::rustc-env=EVENKEEL_VERSION={}{commit}",
        env!("CARGO_PKG_VERSION")
    );
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
