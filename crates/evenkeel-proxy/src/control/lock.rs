//! One process per control socket: a lock file beside it, held for as long as the process runs.
//!
//! The kernel drops the lock with the process, however that ends, so a lock that can be taken means that whoever left a
//! socket behind is gone. The file also holds the owner's process id, for the error message of a second start.
//!
//! The lock belongs to the open file, not to the process: whoever is handed a duplicate of its descriptor shares it, and it is
//! held until both have closed theirs. So it passes from one process to the next without ever being free.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// How often a start looks again when the file was replaced under it, each time by a process that came and went.
const TRIES_MAX: usize = 16;
/// More digits than a process id has.
const PID_BYTES_MAX: u64 = 16;

/// The lock; dropping it removes the file and lets the next process in, unless another one has charge of it.
#[derive(Debug)]
pub(super) struct ControlLock {
    path: PathBuf,
    /// Holds the lock for as long as it is open.
    file: File,
    charge: Charge,
}

/// Whether a file is this process's to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// It is.
    Ours,
    /// Another process has it, which shares what is behind it.
    Theirs,
}

/// What came of trying to take it.
#[derive(Debug)]
pub(super) enum Locked {
    /// It is ours.
    Ours(ControlLock),
    /// Another process has it; its id, unless it has not written it yet.
    Held(Option<u32>),
}

/// Where the lock of a control socket is.
pub(super) fn beside(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

/// Who has it, as far as the file says; the file of a process that was killed still names that.
pub(super) fn owner(path: &Path) -> Option<u32> {
    read_pid(&mut open_existing(path).ok()?)
}

impl ControlLock {
    /// Takes the lock if it is free. Does not wait.
    ///
    /// A file that its owner removes between our opening and our locking it is locked in vain: nobody else would ever see
    /// it. So the lock counts only if the path still leads to the locked file.
    pub(super) fn acquire(path: PathBuf) -> io::Result<Locked> {
        for _ in 0..TRIES_MAX {
            let mut file = open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if leads_to(&path, &file)? => {
                    write_pid(&mut file)?;
                    return Ok(Locked::Ours(Self {
                        path,
                        file,
                        charge: Charge::Ours,
                    }));
                }
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Locked::Held(read_pid(&mut file))),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Locked::Held(None))
    }

    /// Shares the lock of the process that handed the descriptor over, which has charge of the file. `None` if it is not the
    /// locked file of that path.
    pub(super) fn share(path: PathBuf, handed: OwnedFd) -> io::Result<Option<Self>> {
        let file = File::from(handed);
        Ok(leads_to(&path, &file)?.then_some(Self {
            path,
            file,
            charge: Charge::Theirs,
        }))
    }

    /// Whether others who look for it find it.
    pub(super) fn is_there(&self) -> bool {
        leads_to(&self.path, &self.file).unwrap_or(true)
    }

    /// A descriptor for whoever is to share the lock.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// The file is this process's from now on, and has its id.
    pub(super) fn take_charge(&mut self) -> io::Result<()> {
        self.charge = Charge::Ours;
        write_pid(&mut self.file)
    }

    /// The file is another process's from now on.
    pub(super) const fn give_up_charge(&mut self) {
        self.charge = Charge::Theirs;
    }
}

impl Drop for ControlLock {
    fn drop(&mut self) {
        if self.charge == Charge::Ours {
            // Removed while it is still locked: see `acquire`. A file that stays behind does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Not blocking, in case it is a named pipe.
fn open_existing(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn open(path: &Path) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    // The place in the file is shared with whoever has a duplicate.
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn ours(locked: Locked) -> ControlLock {
        match locked {
            Locked::Ours(lock) => lock,
            Locked::Held(pid) => panic!("held by {pid:?}"),
        }
    }

    /// A second one is told who has it; after the first is gone, so is its file, and the next one gets it.
    #[test]
    fn the_second_learns_the_first_ones_pid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");

        let first = ours(ControlLock::acquire(path.clone()).unwrap());
        let second = ControlLock::acquire(path.clone()).unwrap();

        assert!(matches!(second, Locked::Held(Some(pid)) if pid == std::process::id()));
        drop(first);
        assert!(!path.exists());
        ours(ControlLock::acquire(path).unwrap());
    }

    /// A file that a killed process left behind, with its id in it, stops nobody.
    #[test]
    fn a_leftover_file_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");
        fs::write(&path, "1234567890\n").unwrap();

        let _lock = ours(ControlLock::acquire(path.clone()).unwrap());

        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }

    /// A lock that is shared is held until both have let go, and only who has charge of the file removes it.
    #[test]
    fn a_shared_lock_is_never_free_in_between() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");
        let mut old = ours(ControlLock::acquire(path.clone()).unwrap());
        let handed = old.duplicate().unwrap();
        let mut new = ControlLock::share(path.clone(), handed).unwrap().unwrap();

        old.give_up_charge();
        new.take_charge().unwrap();
        drop(old);

        assert!(matches!(
            ControlLock::acquire(path.clone()).unwrap(),
            Locked::Held(Some(_))
        ));
        drop(new);
        assert!(!path.exists());
    }

    /// Whoever shares a lock but never takes charge leaves the file alone; and another file's descriptor shares nothing.
    #[test]
    fn who_has_no_charge_leaves_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");
        let old = ours(ControlLock::acquire(path.clone()).unwrap());

        drop(ControlLock::share(path.clone(), old.duplicate().unwrap()).unwrap());

        assert!(path.exists());
        assert!(matches!(
            ControlLock::acquire(path.clone()).unwrap(),
            Locked::Held(_)
        ));
        let other = File::create(dir.path().join("other")).unwrap();
        assert!(ControlLock::share(path, other.into()).unwrap().is_none());
    }

    /// Of many that start, stop and start again at once, never two hold the lock at one time.
    #[test]
    fn racing_starts_never_both_win() {
        use std::sync::atomic::{AtomicU32, Ordering};
        const THREADS: usize = 4;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");
        let start = Barrier::new(THREADS);
        let (holders, wins) = (AtomicU32::new(0), AtomicU32::new(0));

        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..500 {
                        let Locked::Ours(lock) = ControlLock::acquire(path.clone()).unwrap() else {
                            continue;
                        };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        wins.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });

        assert!(wins.load(Ordering::SeqCst) > 0);
    }

    /// A symbolic link in its place is not followed.
    #[test]
    fn a_symlink_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.lock");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();

        assert!(ControlLock::acquire(path).is_err());
    }
}
