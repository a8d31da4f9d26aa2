//! What packages bring along: the configuration they install, and the unit that systemd runs.

use std::fs;
use std::process::Command;

use crate::support::binary;
use crate::support::evenkeel::evenkeel_command;

/// The files that a package installs as they are have to be right, or the first start fails.
#[test]
fn packaged_configurations_are_valid() {
    for file in ["packaging/evenkeel.toml", "packaging/docker/evenkeel.toml"] {
        let mut check = evenkeel_command(&["check"]);
        let output = check.arg(binary::root().join(file)).output();
        let output = output.expect("evenkeel can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{file}:\n{said}");
    }
}

/// systemd finds nothing unknown or wrong in the unit. (The program is where it was built, not where a package puts it.)
#[test]
fn systemd_understands_the_unit() {
    let unit = fs::read_to_string(binary::root().join("packaging/evenkeel.service"));
    let unit = unit.expect("the unit can be read");
    let program = binary::evenkeel().display().to_string();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("evenkeel.service");
    fs::write(&path, unit.replace("/usr/bin/evenkeel", &program)).expect("it is ours");

    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .expect("systemd-analyze can be started");

    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("evenkeel.service"))
        .collect();
    assert!(output.status.success() && about_ours.is_empty(), "{said}");
}
