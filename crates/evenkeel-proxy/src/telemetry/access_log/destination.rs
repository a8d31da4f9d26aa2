//! Where the access log's bytes go: a standard stream or a file, written past every buffer of the program's own.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use evenkeel_reactor::FileMark;

use crate::settings::LogDestination;

/// Only the owner may change the log, its group may read it.
pub(super) const FILE_MODE: u32 = 0o640;

/// Where bytes go. A trait so that tests can have a disk that hangs or is full.
pub(super) trait Destination: Send + 'static {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn reopen(&mut self) -> io::Result<()>;
}

/// The real destinations.
#[derive(Debug)]
pub(super) struct Target {
    file: File,
    /// Where to open it again; `None` for a standard stream.
    path: Option<PathBuf>,
    /// The file, if it was not there before.
    made: Option<FileMark>,
}

impl Target {
    /// `None` where the log is off.
    pub(super) fn open(destination: &LogDestination) -> io::Result<Option<Self>> {
        match destination {
            LogDestination::Off => return Ok(None),
            LogDestination::Stdout => Self::stream(io::stdout().as_fd()),
            LogDestination::Stderr => Self::stream(io::stderr().as_fd()),
            LogDestination::File(path) => Self::file(path),
        }
        .map(Some)
    }

    /// A descriptor of its own, past the buffer of the standard library: each write is one system call.
    pub(super) fn stream(stream: impl AsFd) -> io::Result<Self> {
        Ok(Self {
            file: File::from(stream.as_fd().try_clone_to_owned()?),
            path: None,
            made: None,
        })
    }

    fn file(path: &Path) -> io::Result<Self> {
        let (file, made) = match append_to(path, OpenOptions::create_new) {
            Ok(file) => {
                let made = FileMark::of(path).ok();
                (file, made)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (append_to(path, OpenOptions::create)?, None)
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            file,
            path: Some(path.to_owned()),
            made,
        })
    }

    /// The file, if it was not there before.
    pub(super) fn made(&self) -> Option<FileMark> {
        self.made.clone()
    }
}

/// Not blocking, so that a named pipe that nobody reads is an error at the start instead of a start that hangs.
fn append_to(
    path: &Path,
    create: fn(&mut OpenOptions, bool) -> &mut OpenOptions,
) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options
        .append(true)
        .mode(FILE_MODE)
        .custom_flags(nonblocking);
    create(&mut options, true).open(path)
}

impl Destination for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_writable(&self.file)?,
                result => return result,
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = append_to(path, OpenOptions::create)?;
        }
        Ok(())
    }
}

/// For a pipe or terminal that someone has made non-blocking: only this thread waits.
fn wait_writable(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
    Ok(())
}
