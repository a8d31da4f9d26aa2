//! A real HAProxy, with a configuration of the test's own.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::{self, Process};
use super::{client, wait};

/// A running HAProxy; killed when dropped.
pub(crate) struct HaProxy {
    _directory: TempDir,
    _process: Process,
}

impl HaProxy {
    /// Starts it in TCP mode with these sections, and waits until it listens on all these addresses.
    pub(crate) fn start(sections: &str, addresses: &[SocketAddr]) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let config = directory.path().join("haproxy.cfg");
        let text = format!(
            "global\n maxconn 100\ndefaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n{sections}\n"
        );
        fs::write(&config, text).expect("the directory is ours");
        let mut command = process::command("/usr/sbin/haproxy");
        command
            .args(["-db", "-f"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(command);
        for address in addresses {
            wait::until_so("HAProxy listens", || client::try_connect(*address).is_ok());
        }
        Self {
            _directory: directory,
            _process: process,
        }
    }
}
