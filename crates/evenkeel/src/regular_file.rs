//! Opening what should be a regular file and may be something else: nothing is waited for, and nothing is done to a device.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// A pipe, a terminal or a log of the kernel would be waited for, or be emptied by being read. It is looked at before it is opened,
/// because opening a device can have effects; and afterwards, in case it was exchanged.
pub(crate) fn open(path: &Path) -> io::Result<fs::File> {
    check_regular(&fs::metadata(path)?)?;
    let not_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(not_waiting)
        .open(path)?;
    check_regular(&file.metadata()?)?;
    if file_system(&file)? == rustix::fs::PROC_SUPER_MAGIC {
        return Err(not_regular("a file of the kernel"));
    }
    Ok(file)
}

/// Whether a file may be put at this path: nothing is there, or a regular file is.
pub(crate) fn may_be_replaced(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        found => check_regular(&found?),
    }
}

/// Files under `/proc` call themselves regular, though `/proc/kmsg` is read like a pipe.
fn file_system(file: &fs::File) -> io::Result<rustix::fs::FsWord> {
    Ok(rustix::fs::fstatfs(file)?.f_type)
}

fn check_regular(found: &fs::Metadata) -> io::Result<()> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => Ok(()),
        () if kind.is_dir() => Err(not_regular("a folder")),
        () if kind.is_fifo() => Err(not_regular("a pipe")),
        () if kind.is_socket() => Err(not_regular("a socket")),
        () => Err(not_regular("a device")),
    }
}

fn not_regular(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}, not a regular file"),
    )
}
