//! Telling systemd how far the process is, where it asks to be told (`Type=notify`). See sd_notify(3).

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Where to tell it; to nobody, where nobody asked.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    socket: Option<OsString>,
    watches: Watches,
}

/// Whether the supervisor ends a process that gives no sign of life (`WatchdogSec=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watches {
    Yes,
    No,
}

impl Supervisor {
    /// The one named by `NOTIFY_SOCKET`. `WATCHDOG_PID` is not looked at: after an upgrade it still names the process before.
    pub(crate) fn from_environment() -> Self {
        let watches = match std::env::var_os("WATCHDOG_USEC") {
            Some(_) => Watches::Yes,
            None => Watches::No,
        };
        Self::at(std::env::var_os("NOTIFY_SOCKET"), watches)
    }

    /// One that is told nothing: another process speaks for the service.
    pub(crate) fn nobody() -> Self {
        Self::at(None, Watches::No)
    }

    fn at(socket: Option<OsString>, watches: Watches) -> Self {
        Self {
            socket: socket.filter(|socket| !socket.is_empty()),
            watches,
        }
    }

    /// The process is alive; to be told every second or so.
    pub(crate) fn alive(&self) {
        if self.watches == Watches::Yes {
            self.send("WATCHDOG=1");
        }
    }

    /// The process accepts connections; `status` says more in words.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Another process is the service's main one from now on. It is asked about nothing more here.
    pub(crate) fn main_process(&self, pid: u32) {
        self.send(&format!("MAINPID={pid}"));
    }

    /// The process goes over to another configuration, and will say that it is ready again. systemd wants to know when that
    /// began (`Type=notify-reload`).
    pub(crate) fn reloading(&self) {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
        self.send(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}",
            tv_sec * 1_000_000 + tv_nsec / 1000
        ));
    }

    /// The process is ending.
    pub(crate) fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={}", one_line(status)));
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else {
            return;
        };
        if let Err(error) = send_to(socket.as_bytes(), message) {
            tracing::warn!(%error, "cannot tell the service manager");
        }
    }
}

/// A leading `@` stands for a name in the abstract namespace. Never waits: a supervisor that does not read is left behind.
fn send_to(socket: &[u8], message: &str) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

/// A line feed would begin another variable.
fn one_line(status: &str) -> String {
    status.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let count = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    }

    /// systemd gets the two variables of a start, in one message, at a path.
    #[test]
    fn ready_reaches_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();

        Supervisor::at(Some(path.into()), Watches::No).ready("2 listeners\nX=1");

        assert_eq!(received(&socket), "READY=1\nSTATUS=2 listeners X=1");
    }

    /// An abstract name works as well.
    #[test]
    fn stopping_reaches_an_abstract_name() {
        let name = format!("evenkeel-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();

        Supervisor::at(Some(format!("@{name}").into()), Watches::No).stopping("3 sessions");

        assert_eq!(received(&socket), "STOPPING=1\nSTATUS=3 sessions");
    }

    /// The next process is named by its id.
    #[test]
    fn the_next_process_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();

        Supervisor::at(Some(path.into()), Watches::No).main_process(4712);

        assert_eq!(received(&socket), "MAINPID=4712");
    }

    /// A reload tells when it began, on the clock that systemd reads.
    #[test]
    fn a_reload_tells_its_moment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();

        Supervisor::at(Some(path.into()), Watches::No).reloading();

        let told = received(&socket);
        let moment = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        assert!(moment.unwrap().parse::<u64>().unwrap() > 0, "{told}");
    }

    /// Only a supervisor that watches is given signs of life.
    #[test]
    fn signs_of_life_are_for_who_watches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();

        Supervisor::at(Some(path.clone().into()), Watches::No).alive();
        Supervisor::at(Some(path.into()), Watches::Yes).alive();

        assert_eq!(received(&socket), "WATCHDOG=1");
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0]).is_err());
    }

    /// Without a supervisor, and with one that is gone, nothing happens.
    #[test]
    fn nobody_to_tell_is_no_fault() {
        Supervisor::at(None, Watches::Yes).alive();
        Supervisor::at(Some("/nonexistent/notify".into()), Watches::Yes).ready("up");
    }
}
