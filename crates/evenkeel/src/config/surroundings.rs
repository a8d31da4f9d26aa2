//! What defaults depend on beside the file: the machine's cores and the user's runtime folder.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

/// Facts about the process and its machine, read once.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// How many cores the process may use.
    pub cores: usize,
    /// Whose process it is; 0 is root.
    pub user_id: u32,
    /// `$XDG_RUNTIME_DIR`, where it is set to what the XDG specification allows: an absolute path.
    pub runtime_folder: Option<OsString>,
    /// `$RUNTIME_DIRECTORY`, the folder that a service manager has made for this process; the first one, if absolute.
    pub service_folder: Option<OsString>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            user_id: rustix::process::getuid().as_raw(),
            runtime_folder: std::env::var_os("XDG_RUNTIME_DIR").filter(is_absolute),
            service_folder: std::env::var_os("RUNTIME_DIRECTORY")
                .map(|folders| first_of(&folders))
                .filter(is_absolute),
        }
    }

    /// Where the control socket is unless configured: a folder that only this user can write to, if there is one.
    pub fn control_socket(&self) -> PathBuf {
        if let Some(folder) = &self.service_folder {
            return PathBuf::from(folder).join("control.sock");
        }
        let folder = match (&self.runtime_folder, self.user_id) {
            (_, 0) => PathBuf::from("/run/evenkeel"),
            (Some(runtime), _) => PathBuf::from(runtime).join("evenkeel"),
            (None, user_id) => PathBuf::from(format!("/tmp/evenkeel-{user_id}")),
        };
        folder.join("control.sock")
    }
}

/// Several folders are separated by colons.
fn first_of(folders: &OsString) -> OsString {
    let mut each = folders.as_bytes().split(|byte| *byte == b':');
    OsStr::from_bytes(each.next().unwrap_or_default()).to_owned()
}

/// "All paths set in these environment variables must be absolute. If an implementation encounters a relative path … it should
/// consider the path invalid and ignore it" (XDG Base Directory Specification). The empty one is relative, too.
fn is_absolute(folder: &OsString) -> bool {
    Path::new(folder).is_absolute()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Where a relative folder is depends on who looks: `run` and `status` in two folders would not meet.
    #[test]
    fn a_relative_runtime_folder_is_ignored() {
        assert!(is_absolute(&OsString::from("/run/user/1000")));
        for folder in ["", "tmp", "./tmp", "~/run"] {
            assert!(!is_absolute(&OsString::from(folder)), "{folder}");
        }
    }

    fn control_socket(user_id: u32, runtime_folder: Option<&str>) -> PathBuf {
        let surroundings = Surroundings {
            cores: 1,
            user_id,
            runtime_folder: runtime_folder.map(OsString::from),
            service_folder: None,
        };
        surroundings.control_socket()
    }

    // Root and every user have a control socket of their own, so that one cannot be mistaken for the other.
    #[test]
    fn each_user_has_a_control_socket() {
        assert_eq!(
            control_socket(0, Some("/run/user/0")),
            PathBuf::from("/run/evenkeel/control.sock")
        );
        assert_eq!(
            control_socket(1000, Some("/run/user/1000")),
            PathBuf::from("/run/user/1000/evenkeel/control.sock")
        );
        assert_eq!(
            control_socket(1000, None),
            PathBuf::from("/tmp/evenkeel-1000/control.sock")
        );
    }

    // systemd makes the folder for the service, under which no other program has one; only the first of several counts.
    #[test]
    fn a_service_has_its_socket_in_its_own_folder() {
        let surroundings = Surroundings {
            cores: 1,
            user_id: 0,
            runtime_folder: None,
            service_folder: Some(first_of(&OsString::from("/run/front:/run/other"))),
        };
        let expected = PathBuf::from("/run/front/control.sock");
        assert_eq!(surroundings.control_socket(), expected);
    }
}
