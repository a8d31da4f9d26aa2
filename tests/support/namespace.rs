//! A network of a test's own, in which an address has a name both ways. Takes root.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::process;

/// The one address, beside the loopback ones.
pub(crate) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
/// The address's name.
pub(crate) const NAME: &str = "probe.test";

/// A network namespace; removed when dropped.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// `None`, with a word about it, where this process may not make one.
    pub(crate) fn make() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: a network namespace takes root");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("evenkeel-test-{}-{number}", std::process::id());
        let namespace = Self { name };
        namespace.write_names();
        run("ip", &["netns", "add", &namespace.name]);
        let address = format!("{ADDRESS}/32");
        namespace.run(&["ip", "link", "set", "lo", "up"]);
        namespace.run(&["ip", "address", "add", &address, "dev", "lo"]);
        Some(namespace)
    }

    /// A command that runs inside.
    pub(crate) fn command(&self, program: &str) -> Command {
        command_in(&self.name, program)
    }

    /// Under which the kernel knows it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, words: &[&str]) {
        run("ip", &[&["netns", "exec", &self.name], words].concat());
    }

    /// `ip netns exec` lays these files over those in `/etc`, for its own command alone.
    fn write_names(&self) {
        let folder = self.folder();
        fs::create_dir_all(&folder).expect("we are root");
        let hosts = format!("127.0.0.1 localhost\n{ADDRESS} {NAME}\n");
        fs::write(folder.join("hosts"), hosts).expect("we are root");
        fs::write(folder.join("nsswitch.conf"), "hosts: files\n").expect("we are root");
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.name])
            .status();
        let _ = fs::remove_dir_all(self.folder());
    }
}

/// A command that runs inside the namespace of that name.
pub(crate) fn command_in(namespace: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = process::command("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn run(program: &str, words: &[&str]) {
    let done = Command::new(program).args(words).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "{program} {words:?}"
    );
}
