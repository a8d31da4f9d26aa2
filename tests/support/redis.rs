//! A real Redis server without files, and its own tools.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::process::{self, Process};
use super::{client, ports, wait};

/// A running server; killed when dropped.
pub(crate) struct Redis {
    pub(crate) address: SocketAddr,
    directory: TempDir,
    _process: Process,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With options of the server beside those that it always gets.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let address = ports::free();
        let directory = TempDir::new().expect("a temporary directory");
        let mut command = process::command("redis-server");
        command
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args([
                "--bind",
                &address.ip().to_string(),
                "--port",
                &address.port().to_string(),
            ])
            .arg("--unixsocket")
            .arg(socket_in(&directory))
            .arg("--dir")
            .arg(directory.path())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(command);
        wait::until_so("Redis listens", || client::try_connect(address).is_ok());
        Self {
            address,
            directory,
            _process: process,
        }
    }
    /// Where local clients connect.
    pub(crate) fn socket_path(&self) -> PathBuf {
        socket_in(&self.directory)
    }
}

fn socket_in(directory: &TempDir) -> PathBuf {
    directory.path().join("redis.sock")
}

/// One of Redis's own tools, pointed at `address`; what it printed. Panics if it failed.
pub(crate) fn run_tool(tool: &str, address: SocketAddr, words: &[&str]) -> String {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    run(tool, &[&["-h", &ip, "-p", &port], words].concat())
}

/// The same, without being pointed anywhere.
pub(crate) fn run(tool: &str, words: &[&str]) -> String {
    let mut command: Command = process::command(tool);
    command.args(words).stdin(Stdio::null());
    let output = command
        .output()
        .expect("the tool is installed: cargo xtask test");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {words:?}: {error}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}
