//! What packages bring along: the configuration they install, and the unit that systemd runs.

use std::fs;
use std::process::Command;

use crate::support::evenkeel::evenkeel_command;
use crate::support::process::{self, Process};
use crate::support::{binary, ports, wait};

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

/// Without a `control_socket` in its file, a service has it in the folder that systemd has made for it; its own commands, such as
/// `ExecReload=`, find it there without being told.
#[test]
fn a_service_has_its_control_socket_in_its_own_folder() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (config, folder) = (
        directory.path().join("evenkeel.toml"),
        directory.path().join("run"),
    );
    fs::create_dir(&folder).expect("it is ours");
    let text = format!(
        "[listener.front]\nbind = \"{}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"{}\"]\n",
        ports::free(),
        ports::free(),
    );
    fs::write(&config, text).expect("it is ours");
    let mut run = process::command(binary::evenkeel());
    run.arg("run")
        .arg(&config)
        .env("RUNTIME_DIRECTORY", &folder);
    let _service = Process::start(run);
    let socket = folder.join("control.sock");
    wait::until_so("its control socket", || socket.exists());

    let mut reload = evenkeel_command(&["reload"]);
    let reloaded = reload.env("RUNTIME_DIRECTORY", &folder).output();

    let reloaded = reloaded.expect("evenkeel can be started");
    let said = String::from_utf8_lossy(&reloaded.stderr);
    assert!(reloaded.status.success(), "{said}");
}
