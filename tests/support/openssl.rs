//! OpenSSL's own client and server: what they say of a TLS handshake, and what they send.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::certificates::Issued;
use super::process::{self, Process};
use super::{client, ports, wait};

/// `openssl s_server`, which answers each line with the line reversed; killed when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl Server {
    pub(crate) fn reversing(issued: &Issued) -> Self {
        Self::start(issued, &["-rev"])
    }

    pub(crate) fn start(issued: &Issued, words: &[&str]) -> Self {
        let address = ports::free();
        let mut command = process::command("openssl");
        command
            .args(["s_server", "-quiet", "-naccept", "1000", "-accept"])
            .arg(address.to_string())
            .arg("-cert")
            .arg(&issued.certificate)
            .arg("-key")
            .arg(&issued.key)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start(command);
        wait::until_so("openssl listens", || client::try_connect(address).is_ok());
        Self {
            address,
            _process: process,
        }
    }
}

/// What `openssl s_client` saw.
pub(crate) struct Seen {
    /// All that it printed: the chain, the handshake, what the server sent.
    pub(crate) text: String,
}

impl Seen {
    /// The subject's common name in the certificate that the server showed.
    pub(crate) fn subject(&self) -> Option<&str> {
        let line = self
            .text
            .lines()
            .find_map(|line| line.strip_prefix("subject="))?;
        line.rsplit_once("CN = ").map(|(_, name)| name.trim())
    }
}

/// Connects, sends the text, and reads until the server ends.
pub(crate) fn talk(to: SocketAddr, authority: &Path, words: &[&str], text: &str) -> Seen {
    let mut command = Command::new("openssl");
    command
        .args([
            "s_client",
            "-ign_eof",
            "-connect",
            &to.to_string(),
            "-verify_return_error",
        ])
        .arg("-CAfile")
        .arg(authority)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("openssl can be started");
    let mut input = child.stdin.take().expect("it is piped");
    // One that has failed already reads nothing more.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    let mut errors = child.stderr.take().expect("it is piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = errors.read_to_string(&mut text);
        text
    });
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Seen {
        text: said + &errors.join().unwrap_or_default(),
    }
}
