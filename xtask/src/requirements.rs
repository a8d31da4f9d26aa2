//! What a machine needs beyond Rust: Debian packages for the tests, cargo's own tools for the checks.
//!
//! Only what is missing is installed. Packages are installed by root alone; anybody else is shown the one command to run.

use anyhow::{Result, bail};

use crate::command;

/// A program the tests run (or the path of a file they need), and the Debian package that has it.
///
/// The `-core` packages of MariaDB have the programs without the system service, which nobody wants started by a test.
const PROGRAMS: &[(&str, &str)] = &[
    ("g++", "g++"), // links the fuzzers' runtime
    ("curl", "curl"),
    ("dnsmasq", "dnsmasq-base"),
    ("haproxy", "haproxy"),
    ("mariadb", "mariadb-client-core"),
    ("mariadb-install-db", "mariadb-server-core"),
    ("mariadbd", "mariadb-server-core"),
    ("nginx", "nginx"),
    (
        "/usr/lib/nginx/modules/ngx_stream_module.so",
        "libnginx-mod-stream",
    ),
    ("openssl", "openssl"),
    ("redis-benchmark", "redis-tools"),
    ("redis-cli", "redis-tools"),
    ("redis-server", "redis-server"),
    ("sysbench", "sysbench"),
    ("systemd-analyze", "systemd"),
];

/// Subcommands of cargo.
const CARGO_TOOLS: &[&str] = &["cargo-deny", "cargo-fuzz"];

/// Installs the Debian packages that the tests miss, or says how.
pub(crate) fn install_packages() -> Result<()> {
    install(PROGRAMS)
}

/// Installs those of these Debian packages that are missing, or says how.
pub(crate) fn install(programs: &[(&str, &str)]) -> Result<()> {
    let packages = missing_packages(programs);
    if packages.is_empty() {
        return Ok(());
    }
    let install = format!(
        "apt-get install --yes --no-install-recommends {}",
        packages.join(" ")
    );
    if !is_root() {
        bail!(
            "programs are needed that are not installed; run\n\n    sudo sh -c 'apt-get update && {install}'\n"
        );
    }
    apt_get(&["update"])?;
    let arguments: Vec<&str> = install.split(' ').skip(1).collect();
    apt_get(&arguments)
}

fn missing_packages<'a>(programs: &[(&str, &'a str)]) -> Vec<&'a str> {
    let mut packages: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !command::is_installed(program))
        .map(|&(_, package)| package)
        .collect();
    packages.dedup();
    packages
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut apt_get = command::program_in_root("apt-get");
    apt_get
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(std::process::Stdio::null());
    command::run(apt_get)
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|itself| itself.uid() == 0)
}

/// Installs cargo's tools that are missing.
pub(crate) fn install_cargo_tools() -> Result<()> {
    CARGO_TOOLS
        .iter()
        .filter(|tool| !command::is_installed(tool))
        .try_for_each(|tool| install_cargo_tool(tool))
}

/// Unoptimised: that takes half the time to build, and the tools have little to do here.
fn install_cargo_tool(tool: &str) -> Result<()> {
    command::run(command::cargo(["install", "--locked", "--debug", tool]))
}
