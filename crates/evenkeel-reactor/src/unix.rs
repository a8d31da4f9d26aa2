//! Listening on a path: who may have it, what is replaced there, which permissions it has, and when it is removed.
//!
//! A directory is locked while a path in it is taken, so that of several starts at one moment each sees what the one before it
//! has made. Whatever lies there is judged then: a socket that nobody answers on is a dead process's and is replaced;
//! anything else is left alone. What is accepted on the socket is not known here.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};

use crate::socket::{BACKLOG_MAX, NEW_SOCKET};

/// The longest path of a Unix socket: `sun_path` has 108 bytes, one of them for the final zero.
pub const PATH_BYTES_MAX: usize = 107;

/// How often a directory that another process has locked is looked at again: nobody holds it for longer than a few system calls.
const LOCK_LOOKS_MAX: u32 = 100;

/// The time between two of these looks.
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why a path cannot be listened on. Nothing was changed.
#[derive(Debug)]
pub enum PathError {
    /// Somebody listens there.
    InUse,
    /// Something lies there that is no socket, and is not ours to remove.
    NotASocket,
    /// What the system says.
    Io(io::Error),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for PathError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The file of a listening socket: where it lies, and what tells it from another one that lies there later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// As the socket is bound.
    pub path: PathBuf,
    /// The file system's number.
    pub device: u64,
    /// The file's number in it.
    pub inode: u64,
}

impl FileMark {
    /// What lies there now.
    ///
    /// # Errors
    ///
    /// Nothing does, or it cannot be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Whether it is still this file that lies there, as far as can be seen.
    pub fn is_there(&self) -> bool {
        match Self::of(&self.path) {
            Ok(found) => found == *self,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Gives the file these permissions, if it is still this one.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn set_permissions(&self, permissions: u32) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        fs::set_permissions(&self.path, Permissions::from_mode(permissions))
    }

    /// Removes the file, if it is still this one.
    pub fn remove(&self) {
        if Self::of(&self.path).is_ok_and(|found| found == *self) {
            // If it cannot be removed, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The charge of a listening socket's file; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile(Option<FileMark>);

impl SocketFile {
    pub(crate) const fn of(mark: FileMark) -> Self {
        Self(Some(mark))
    }

    pub(crate) const fn mark(&self) -> Option<&FileMark> {
        self.0.as_ref()
    }

    /// Does not remove it.
    pub(crate) fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(mark) = &self.0 {
            mark.remove();
        }
    }
}

/// Takes a path and listens on it. Nobody can connect before the permissions are as they should be: only then it listens.
pub(crate) fn listen(path: &Path, permissions: u32) -> Result<(OwnedFd, SocketFile), PathError> {
    let address = SocketAddrUnix::new(path)?;
    let descriptor = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, NEW_SOCKET, None)?;
    let _locked = lock(directory_of(path))?;
    clear_the_way(path, &address)?;
    net::bind(&descriptor, &address)?;
    let file = SocketFile::of(FileMark::of(path)?);
    fs::set_permissions(path, Permissions::from_mode(permissions))?;
    net::listen(&descriptor, BACKLOG_MAX)?;
    Ok((descriptor, file))
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
}

/// Locks a directory until the file is closed.
fn lock(directory: &Path) -> Result<File, PathError> {
    let file = File::open(directory)?;
    let mut looks_left = LOCK_LOOKS_MAX;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if looks_left > 0 => {}
            Err(error) => return Err(error.into()),
        }
        looks_left -= 1;
        thread::sleep(LOCK_LOOK_EVERY);
    }
}

/// Removes a socket that nobody listens on any more; refuses everything else that lies there.
fn clear_the_way(path: &Path, address: &SocketAddrUnix) -> Result<(), PathError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(PathError::NotASocket),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let probe = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, NEW_SOCKET, None)?;
    match net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => Ok(fs::remove_file(path)?),
        // `EAGAIN` is a full backlog: listened on, though nobody accepts. `EPROTOTYPE` is a socket for datagrams.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(PathError::InUse),
        Err(error) => Err(error.into()),
    }
}
