//! Making and removing the control socket: who may own the path, what may be replaced there, and which mode it has.
//!
//! The order is what makes it safe. First the lock: from then on no other evenkeel touches the path. Then whatever lies
//! there is judged: a socket that nobody answers on is a dead process's and is replaced; anything else is left alone.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use evenkeel_reactor::{BoundAddress, Inherited};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use super::lock::{self, Charge, ControlLock, Locked};
use super::peer;

/// The longest path of a Unix socket: `sun_path` has 108 bytes, one of them for the final zero.
pub const PATH_BYTES_MAX: usize = 107;
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 16;
/// How long whoever listens on the path may take to let us connect, only to see that it is there.
const FOREIGN_PATIENCE: Duration = Duration::from_millis(100);
/// How often a lock that is held is looked at again: a start that fails gives it up within milliseconds, and half a second is
/// long even on a machine where many start at once.
const START_LOOKS_MAX: u32 = 50;
/// The time between two of these looks.
const START_LOOK_EVERY: Duration = Duration::from_millis(10);

/// A listening control socket that belongs to this process; dropping it removes it, unless another process has charge of it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// What was made, so that nothing else is removed.
    identity: (u64, u64),
    charge: Charge,
    /// Last, so that it is given up last.
    lock: ControlLock,
}

/// A control socket on its way from one process to the next: duplicates of what the first one goes on using.
#[derive(Debug)]
pub struct HandedSocket {
    /// The locked file beside the socket.
    pub lock: OwnedFd,
    /// The listening socket.
    pub listener: OwnedFd,
}

/// The control socket could not be made. Nothing was changed.
#[derive(Debug, Error)]
pub enum ControlSocketError {
    /// Another process has it.
    #[error(
        "evenkeel is running already{}, with the control socket {path}; stop it, or give this one another `control_socket`",
        of_pid(*.pid)
    )]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
        /// Its owner, unless it is only just starting.
        pid: Option<u32>,
    },
    /// Some other program listens there.
    #[error(
        "{path}: another program listens on this socket; give evenkeel another `control_socket`"
    )]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is not ours to remove.
    #[error(
        "{path} is {what}, not a socket; it is left alone: remove it, or choose another `control_socket`"
    )]
    NotASocket {
        /// Where.
        path: PathBuf,
        /// What lies there.
        what: &'static str,
    },
    /// Its directory is someone else's, who could put anything in its place.
    #[error("{directory} belongs to another user (id {owner}); choose another `control_socket`")]
    ForeignDirectory {
        /// The directory.
        directory: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Longer than the kernel's limit.
    #[error(
        "{path}: the path of a socket has at most {PATH_BYTES_MAX} bytes, this one has {bytes}"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// The system refused something.
    #[error("cannot {act} {path}: {source}")]
    Io {
        /// What was to be done.
        act: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn of_pid(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl ControlSocket {
    /// Takes the path, replaces a dead process's socket, and listens. The directory is made (mode 0700) if it is missing.
    ///
    /// # Errors
    ///
    /// See [`ControlSocketError`].
    pub fn open(path: &Path) -> Result<Self, ControlSocketError> {
        check_length(path)?;
        make_directory(path)?;
        let lock = take_lock(path)?;
        clear_the_way(path)?;
        let listener = listen(path).map_err(io_error("listen on", path))?;
        let made = fs::symlink_metadata(path).map_err(io_error("look at", path))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            identity: identity(&made),
            charge: Charge::Ours,
            lock,
        })
    }

    /// Shares the socket of the process that has handed it over, which has charge of it until [`take_charge`](Self::take_charge).
    /// `None` if it is not what it should be.
    ///
    /// # Errors
    ///
    /// The files cannot be looked at.
    pub fn share(handed: HandedSocket) -> io::Result<Option<Self>> {
        let Ok(found) = Inherited::examine(handed.listener) else {
            return Ok(None);
        };
        let BoundAddress::Path(path) = found.address().clone() else {
            return Ok(None);
        };
        let Some(lock) = ControlLock::share(lock::beside(&path), handed.lock)? else {
            return Ok(None);
        };
        let made = fs::symlink_metadata(&path)?;
        Ok(made.file_type().is_socket().then(|| Self {
            listener: OwnedFd::from(found).into(),
            path,
            identity: identity(&made),
            charge: Charge::Theirs,
            lock,
        }))
    }

    /// Duplicates for the process that is to follow this one.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn duplicate(&self) -> io::Result<HandedSocket> {
        Ok(HandedSocket {
            lock: self.lock.duplicate()?,
            listener: self.listener.try_clone()?.into(),
        })
    }

    /// The path is this process's from now on.
    ///
    /// # Errors
    ///
    /// The process id cannot be written beside it; the socket is ours all the same.
    pub fn take_charge(&mut self) -> io::Result<()> {
        self.charge = Charge::Ours;
        self.lock.take_charge()
    }

    /// The path is another process's from now on. This one only stops listening.
    pub fn leave(mut self) {
        self.charge = Charge::Theirs;
        self.lock.give_up_charge();
    }

    /// Whether it can be reached, as far as can be seen.
    pub fn is_there(&self) -> bool {
        match fs::symlink_metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Makes it again after somebody has removed it, with its lock and its directory if those went with it.
    ///
    /// # Errors
    ///
    /// As in [`open`](Self::open): another process may have the path by now.
    pub fn restore(&mut self) -> Result<(), ControlSocketError> {
        make_directory(&self.path)?;
        if !self.lock.is_there() {
            let anew = lock_now(&self.path)?;
            // The file that the lock before would remove is the new one's.
            self.lock.give_up_charge();
            self.lock = anew;
        }
        clear_the_way(&self.path)?;
        self.listener = listen(&self.path).map_err(io_error("listen on", &self.path))?;
        let made = fs::symlink_metadata(&self.path).map_err(io_error("look at", &self.path))?;
        self.identity = identity(&made);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another handle of the listening socket, not blocking.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if self.charge == Charge::Theirs {
            return;
        }
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| identity(&found) == self.identity) {
            // If it cannot be removed, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a path fits a socket address at all.
pub(super) fn check_length(path: &Path) -> Result<(), ControlSocketError> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes <= PATH_BYTES_MAX {
        return Ok(());
    }
    Err(ControlSocketError::PathTooLong {
        path: path.to_owned(),
        bytes,
    })
}

/// Only the last directory: one that is missing further up is more likely a mistake than a wish.
fn make_directory(path: &Path) -> Result<(), ControlSocketError> {
    let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_owner(directory),
        made => made.map_err(io_error("make the control socket's directory", directory)),
    }
}

/// Whether the directory that a socket is in, where there is one, is ours or root's; root may use everybody's.
///
/// # Errors
///
/// [`ControlSocketError::ForeignDirectory`]: whoever listens there may be anybody.
pub fn check_directory(path: &Path) -> Result<(), ControlSocketError> {
    match path.parent() {
        Some(directory) if directory.exists() => check_owner(directory),
        _ => Ok(()),
    }
}

fn check_owner(directory: &Path) -> Result<(), ControlSocketError> {
    let found = fs::metadata(directory).map_err(io_error("look at", directory))?;
    let owner = found.uid();
    if may_use(rustix::process::geteuid().as_raw(), owner) {
        return Ok(());
    }
    Err(ControlSocketError::ForeignDirectory {
        directory: directory.to_owned(),
        owner,
    })
}

const fn may_use(user: u32, owner: u32) -> bool {
    owner == user || owner == 0 || user == 0
}

/// Who holds the lock runs, or is only starting and may give up in a moment: then it is our turn to find out why.
fn take_lock(path: &Path) -> Result<ControlLock, ControlSocketError> {
    let lock_path = lock::beside(path);
    let mut looks_left = START_LOOKS_MAX;
    loop {
        let locked = ControlLock::acquire(lock_path.clone());
        let pid = match locked.map_err(io_error("lock", &lock_path))? {
            Locked::Ours(lock) => return Ok(lock),
            Locked::Held(pid) => pid,
        };
        if looks_left == 0 {
            return Err(ControlSocketError::AlreadyRunning {
                path: path.to_owned(),
                pid,
            });
        }
        looks_left -= 1;
        thread::sleep(START_LOOK_EVERY);
    }
}

/// Whoever holds the lock has the path.
fn lock_now(path: &Path) -> Result<ControlLock, ControlSocketError> {
    let lock_path = lock::beside(path);
    let locked = ControlLock::acquire(lock_path.clone());
    match locked.map_err(io_error("lock", &lock_path))? {
        Locked::Ours(lock) => Ok(lock),
        Locked::Held(pid) => Err(ControlSocketError::AlreadyRunning {
            path: path.to_owned(),
            pid,
        }),
    }
}

/// Removes a socket that nobody listens on any more; refuses everything else that lies there.
fn clear_the_way(path: &Path) -> Result<(), ControlSocketError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(io_error("look at", path))?,
    };
    if !found.file_type().is_socket() {
        return Err(ControlSocketError::NotASocket {
            path: path.to_owned(),
            what: kind_of(&found),
        });
    }
    let in_use = || ControlSocketError::InUse {
        path: path.to_owned(),
    };
    match peer::connect(path, FOREIGN_PATIENCE) {
        Ok(_) => Err(in_use()),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(io_error("replace", path))
            }
            // Listened on, though nobody accepts.
            io::ErrorKind::WouldBlock => Err(in_use()),
            _ => Err(io_error("replace", path)(error)),
        },
    }
}

fn kind_of(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a directory"
    } else {
        "a file"
    }
}

/// The mode is set on the socket before it has a name: Linux makes the name with it, so at no moment can others connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn io_error(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ControlSocketError {
    move |source| ControlSocketError::Io {
        act,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Only the owner may connect, and only the owner may look into a directory that was made for it.
    #[test]
    fn it_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/control.sock");

        let _socket = ControlSocket::open(&path).unwrap();

        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    /// The path passes from one process to the next and answers all the time; the first leaves nothing undone, the second all clean.
    #[test]
    fn a_handed_socket_is_never_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let old = ControlSocket::open(&path).unwrap();
        let mut new = ControlSocket::share(old.duplicate().unwrap())
            .unwrap()
            .unwrap();
        assert_eq!(new.path(), path);

        old.leave();
        UnixStream::connect(&path).unwrap();
        new.take_charge().unwrap();

        drop(new);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// A process that was handed the socket and fails before it serves leaves it to the one that has it.
    #[test]
    fn a_failed_heir_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let old = ControlSocket::open(&path).unwrap();

        drop(ControlSocket::share(old.duplicate().unwrap()).unwrap());

        UnixStream::connect(&path).unwrap();
        assert!(lock::beside(&path).exists());
    }

    /// An orderly end leaves nothing behind.
    #[test]
    fn it_is_removed_with_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");

        drop(ControlSocket::open(&path).unwrap());

        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// What a killed process left behind is replaced: here a socket whose listener is closed.
    #[test]
    fn a_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());

        let socket = ControlSocket::open(&path).unwrap();

        UnixStream::connect(&path).unwrap();
        drop(socket);
    }

    /// A second start names the first, and takes nothing from it.
    #[test]
    fn a_live_socket_refuses_a_second_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let _first = ControlSocket::open(&path).unwrap();

        let error = ControlSocket::open(&path).unwrap_err().to_string();

        let pid = std::process::id();
        assert!(error.contains(&format!("(pid {pid})")), "{error}");
        UnixStream::connect(&path).unwrap();
    }

    /// Of several that start at once over a dead one's socket, exactly one gets it, and it stays reachable.
    #[test]
    fn of_racing_starts_one_wins() {
        const STARTS: usize = 8;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        let all_ready = std::sync::Barrier::new(STARTS);

        let winners: Vec<ControlSocket> = thread::scope(|scope| {
            let start = || {
                all_ready.wait();
                ControlSocket::open(&path)
            };
            let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
            let ended = starts.into_iter().map(|start| start.join().unwrap());
            ended.filter_map(Result::ok).collect()
        });

        assert_eq!(winners.len(), 1);
        UnixStream::connect(&path).unwrap();
    }

    /// Another program's socket is not taken away from it, though it holds no lock.
    #[test]
    fn a_foreign_listener_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let _foreign = UnixListener::bind(&path).unwrap();

        let error = ControlSocket::open(&path).unwrap_err();

        assert!(matches!(error, ControlSocketError::InUse { .. }), "{error}");
        UnixStream::connect(&path).unwrap();
    }

    /// A file, a directory or a symbolic link (even one to a stale socket) is refused and stays.
    #[test]
    fn nothing_but_a_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let stale = dir.path().join("stale");
        drop(UnixListener::bind(&stale).unwrap());
        let [file, directory, link] =
            ["file", "directory", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "precious").unwrap();
        fs::create_dir(&directory).unwrap();
        std::os::unix::fs::symlink(&stale, &link).unwrap();

        for path in [&file, &directory, &link] {
            let error = ControlSocket::open(path).unwrap_err();
            assert!(
                matches!(error, ControlSocketError::NotASocket { .. }),
                "{error}"
            );
            assert!(fs::symlink_metadata(path).is_ok());
        }
        assert!(stale.exists());
    }

    /// Of several that start at once where something foreign lies, each is told of that, and none that evenkeel runs: none does.
    #[test]
    fn racing_starts_are_told_of_the_foreign_file() {
        const STARTS: usize = 4;
        const ROUNDS: usize = 50;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        fs::write(&path, "precious").unwrap();
        let all_ready = std::sync::Barrier::new(STARTS);

        thread::scope(|scope| {
            for _ in 0..STARTS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        all_ready.wait();
                        let error = ControlSocket::open(&path).unwrap_err();
                        assert!(
                            matches!(error, ControlSocketError::NotASocket { .. }),
                            "{error}"
                        );
                    }
                });
            }
        });
    }

    /// A foreign listener that accepts nothing and whose backlog is full does not hold up a start.
    #[test]
    fn a_foreign_listener_with_a_full_backlog_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let _foreign = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = peer::connect(&path, Duration::from_millis(1)) {
            waiting.push(stream);
        }

        let error = ControlSocket::open(&path).unwrap_err();

        assert!(matches!(error, ControlSocketError::InUse { .. }), "{error}");
    }

    /// A directory of another user is not used, and not talked to: that user could listen there in our place.
    #[test]
    fn only_ones_own_directory_and_roots_are_used() {
        let dir = tempfile::tempdir().unwrap();
        check_directory(&dir.path().join("control.sock")).unwrap();
        check_directory(&dir.path().join("missing/control.sock")).unwrap();

        assert!(may_use(1000, 1000) && may_use(1000, 0) && may_use(0, 1000));
        assert!(!may_use(1000, 1001));
    }

    /// The kernel would cut or refuse a path this long; the error says how long it may be.
    #[test]
    fn a_path_too_long_is_explained() {
        let path = PathBuf::from(format!("/tmp/{}", "x".repeat(PATH_BYTES_MAX)));

        let error = ControlSocket::open(&path).unwrap_err().to_string();

        assert!(
            error.contains("at most 107 bytes, this one has 112"),
            "{error}"
        );
    }

    /// A path of exactly the longest length works.
    #[test]
    fn the_longest_path_works() {
        let dir = tempfile::tempdir().unwrap();
        let used = dir.path().as_os_str().len() + 1;
        let path = dir.path().join("x".repeat(PATH_BYTES_MAX - used));

        let _socket = ControlSocket::open(&path).unwrap();

        UnixStream::connect(&path).unwrap();
    }
}
