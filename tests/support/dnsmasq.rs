//! A real name server: dnsmasq on a port of loopback, whose records a test changes.
//!
//! It answers for everything under `.test`, and knows no other name.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::{self, Process, Signal};
use super::{client, ports, wait};

/// A running name server; killed when dropped.
pub(crate) struct Dnsmasq {
    address: SocketAddr,
    directory: TempDir,
    process: Process,
}

/// How it treats what it has no record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// There is no such name.
    NoSuchName,
    /// It refuses to say.
    Refused,
}

impl Dnsmasq {
    /// `hosts` are lines of a hosts file; `settings` are lines of its own configuration, for other records.
    pub(crate) fn start(hosts: &str, settings: &str) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let address = ports::free();
        fs::write(directory.path().join("hosts"), hosts).expect("it is ours");
        let process = spawn(&directory, address, settings, Unknown::NoSuchName);
        let server = Self {
            address,
            directory,
            process,
        };
        server.wait_until_ready();
        server
    }

    /// As `servers` of `[dns]` takes it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Other hosts from now on.
    pub(crate) fn change(&self, hosts: &str) {
        fs::write(self.hosts_file(), hosts).expect("it is ours");
        self.process.signal(Signal::HUP);
    }

    /// The same hosts, and other settings.
    pub(crate) fn restart(&mut self, settings: &str, unknown: Unknown) {
        self.kill();
        self.process = spawn(&self.directory, self.address, settings, unknown);
        self.wait_until_ready();
    }

    /// Nobody answers any more.
    pub(crate) fn kill(&mut self) {
        if self.process.exited().is_none() {
            self.process.kill();
        }
    }

    fn hosts_file(&self) -> PathBuf {
        self.directory.path().join("hosts")
    }

    fn wait_until_ready(&self) {
        wait::until_so("dnsmasq listens", || {
            client::try_connect(self.address).is_ok()
        });
    }
}

fn spawn(directory: &TempDir, address: SocketAddr, settings: &str, unknown: Unknown) -> Process {
    let file = directory.path().join("dnsmasq.conf");
    let local = match unknown {
        Unknown::NoSuchName => "local=/test/",
        Unknown::Refused => "",
    };
    let text = format!(
        "no-resolv\nno-hosts\nno-poll\n{local}\nlisten-address={}\nport={}\nbind-interfaces\naddn-hosts={}\nlocal-ttl=0\n{settings}\n",
        address.ip(),
        address.port(),
        directory.path().join("hosts").display(),
    );
    fs::write(&file, text).expect("it is ours");
    let mut command = process::command("dnsmasq");
    command
        .args([
            "--keep-in-foreground",
            "--log-facility=-",
            "--user=",
            "--group=",
        ])
        .arg(format!("--conf-file={}", file.display()))
        .arg(format!(
            "--pid-file={}",
            directory.path().join("pid").display()
        ))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    Process::start(command)
}
