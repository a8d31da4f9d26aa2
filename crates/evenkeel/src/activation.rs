//! Listening sockets that a service manager has opened before it started this process. See sd_listen_fds(3).
//!
//! What it says in the environment is read here; whether its descriptors are what they should be is judged by whoever takes them.
//! The variables stay where they are, since only whoever has the process id in them may believe them; a program that this one
//! starts does not get them.

use std::env;

/// The names of the sockets that this process was started with, in the order of their descriptors, from the third on.
/// None if they are another process's, or if there are none.
pub(crate) fn announced() -> Vec<Option<String>> {
    let variable = |name| env::var(name).ok();
    let announcement = Announcement {
        pid: variable("LISTEN_PID")
            .as_deref()
            .and_then(|pid| pid.parse().ok()),
        count: variable("LISTEN_FDS")
            .as_deref()
            .and_then(|count| count.parse().ok()),
        names: variable("LISTEN_FDNAMES").unwrap_or_default(),
    };
    announcement.names_for(std::process::id())
}

/// What stands in the environment.
struct Announcement {
    /// For whom the sockets are.
    pid: Option<u32>,
    /// How many there are.
    count: Option<usize>,
    /// Their names, with colons between them.
    names: String,
}

impl Announcement {
    fn names_for(&self, pid: u32) -> Vec<Option<String>> {
        let count = self.count.filter(|_| self.pid == Some(pid)).unwrap_or(0);
        let names = self.names.split(':').map(|name| Some(name.to_owned()));
        let named = names.map(|name| name.filter(|name| !name.is_empty()));
        named
            .chain(std::iter::repeat(None))
            .take(count.min(SOCKETS_MAX))
            .collect()
    }
}

/// More than that is a mistake.
const SOCKETS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(names: &str) -> Announcement {
        Announcement {
            pid: Some(7),
            count: Some(3),
            names: names.to_owned(),
        }
    }

    /// Names go with the descriptors in their order; those that are missing are none.
    #[test]
    fn names_go_by_their_place() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(
            announcement("web:mysql:x").names_for(7),
            [some("web"), some("mysql"), some("x")]
        );
        assert_eq!(announcement("web").names_for(7), [some("web"), None, None]);
        assert_eq!(announcement("").names_for(7), [None, None, None]);
    }

    /// What is meant for another process, or for nobody, is left alone.
    #[test]
    fn others_sockets_are_left_alone() {
        assert!(announcement("web").names_for(8).is_empty());
        let nobodys = Announcement {
            pid: None,
            ..announcement("web")
        };
        assert!(nobodys.names_for(7).is_empty());
        let absurd = Announcement {
            count: Some(usize::MAX),
            ..announcement("web")
        };
        assert_eq!(absurd.names_for(7).len(), SOCKETS_MAX);
    }
}
