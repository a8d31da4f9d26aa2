//! Which program follows this one: the file that this process was started from, as it is now, with the same arguments.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};

/// What the kernel writes after the name of a program's file that has been removed or replaced.
const REPLACED: &[u8] = b" (deleted)";

/// Variables that are meant for one process alone.
const FOR_THIS_PROCESS: [&str; 5] = [
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "WATCHDOG_PID",
];

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// The one that runs, or whatever lies at its path by now; or the one that is named.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(crate) fn of_this_process(instead: Option<PathBuf>) -> io::Result<Self> {
        let path = instead.map_or_else(|| fs::read_link("/proc/self/exe").map(as_it_is_now), Ok)?;
        Ok(Self {
            path,
            arguments: std::env::args_os().skip(1).collect(),
        })
    }

    /// How it is started. Whatever else is set in the environment, it keeps.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        for variable in FOR_THIS_PROCESS {
            command.env_remove(variable);
        }
        command
    }
}

/// A file that was replaced is still called by its name, with a note; a file may also really be called so.
fn as_it_is_now(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(REPLACED) {
        Some(name) if !path.exists() => PathBuf::from(OsString::from_vec(name.to_vec())),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The kernel's note is taken off, and a name that ends like it is left whole.
    #[test]
    fn a_replaced_file_is_found_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let (gone, odd) = (
            dir.path().join("gone (deleted)"),
            dir.path().join("odd (deleted)"),
        );
        fs::write(&odd, "").unwrap();

        assert_eq!(as_it_is_now(gone), dir.path().join("gone"));
        assert_eq!(as_it_is_now(odd.clone()), odd);
    }

    /// Without a note, it is this very program.
    #[test]
    fn this_process_is_its_own_successor() {
        let program = Program::of_this_process(None).unwrap();
        assert_eq!(program.path, std::env::current_exe().unwrap());
        let named = Program::of_this_process(Some("/opt/next".into())).unwrap();
        assert_eq!(named.path, Path::new("/opt/next"));
    }
}
