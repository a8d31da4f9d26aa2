//! What a process and the one that follows it say to each other. Values only, no IO.
//!
//! ```text
//! old → new   {"hello":{"version":1,"pid":4711,"program":"0.1.0","parcels":["stderr","control-lock", …],"sockets":4}}
//! old → new   {"sockets":["mysql","mysql","web","web"]}        as often as it takes
//! new → old   "ready"                                          it accepts connections
//! old → new   "go"                                             it does not any more, and has given up the control socket
//! old → new   "called-off"                                   instead: it is stopping, and the new one must end
//! old → new   {"sessions":17}                                  what it still has, now and then
//! ```
//!
//! The two may be of different versions. The first packet says which version the old one speaks; whoever does not know it ends,
//! and the old one stays. The version changes when a word changes its meaning, not when one is added that may be missing.

use std::path::PathBuf;

use evenkeel_proxy::FileMark;
use serde::{Deserialize, Serialize};

/// The version that this program speaks.
pub(super) const VERSION: u32 = 1;

/// From the old process to the new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromOld {
    /// The first packet.
    Hello(Hello),
    /// The listeners of the sockets that come with this packet.
    Sockets(Vec<String>),
    /// The process that serves is you.
    Go,
    /// The process that serves is stopping: end. Without this word, its end is an accident, and the new process stays.
    CalledOff,
    /// Sessions that still have to end.
    Sessions(u64),
}

/// Who the old process is, and what it hands over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version it speaks.
    pub(super) version: u32,
    /// Its id.
    pub(super) pid: u32,
    /// Its program's version.
    pub(super) program: String,
    /// What the descriptors that come with this packet are.
    pub(super) parcels: Vec<Parcel>,
    /// How many listening sockets follow, in packets of their own.
    pub(super) sockets: usize,
    /// The files of those on paths that are the new one's to remove, once it serves alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<SocketFile>,
}

/// The file of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl From<FileMark> for SocketFile {
    fn from(mark: FileMark) -> Self {
        let FileMark {
            path,
            device,
            inode,
        } = mark;
        Self {
            path,
            device,
            inode,
        }
    }
}

impl From<SocketFile> for FileMark {
    fn from(file: SocketFile) -> Self {
        let SocketFile {
            path,
            device,
            inode,
        } = file;
        Self {
            path,
            device,
            inode,
        }
    }
}

/// What a descriptor of the first packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Parcel {
    /// Where the old process's own log goes; the new one's first goes to the old one.
    Stderr,
    /// The locked file beside the control socket.
    ControlLock,
    /// The control socket.
    ControlSocket,
    /// What is known of endpoints, as a file.
    State,
    /// Of a later version; closed.
    #[serde(other)]
    Unknown,
}

/// From the new process to the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromNew {
    /// It accepts connections.
    Ready,
}

/// As much of the first packet as every version has.
#[derive(Debug, Deserialize)]
pub(super) struct AnyHello {
    pub(super) hello: AnyVersion,
}

/// See [`AnyHello`].
#[derive(Debug, Deserialize)]
pub(super) struct AnyVersion {
    pub(super) version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words as they stand in this file's opening paragraph: another version of the program must understand them.
    #[test]
    fn the_words_are_fixed() {
        let hello = FromOld::Hello(Hello {
            version: 1,
            pid: 4711,
            program: "0.1.0".to_owned(),
            parcels: vec![Parcel::Stderr, Parcel::ControlLock],
            sockets: 4,
            files: Vec::new(),
        });
        let line = r#"{"hello":{"version":1,"pid":4711,"program":"0.1.0","parcels":["stderr","control-lock"],"sockets":4}}"#;
        assert_eq!(serde_json::to_string(&hello).unwrap(), line);
        assert_eq!(serde_json::from_str::<FromOld>(line).unwrap(), hello);
        assert_eq!(serde_json::to_string(&FromOld::Go).unwrap(), r#""go""#);
        assert_eq!(
            serde_json::to_string(&FromOld::CalledOff).unwrap(),
            r#""called-off""#
        );
        assert_eq!(
            serde_json::to_string(&FromNew::Ready).unwrap(),
            r#""ready""#
        );
    }

    /// A parcel of a later version is no reason to fail.
    #[test]
    fn an_unknown_parcel_is_borne() {
        assert_eq!(
            serde_json::from_str::<Parcel>(r#""kitchen-sink""#).unwrap(),
            Parcel::Unknown
        );
    }

    /// The version can be told from a first packet that is otherwise of another shape.
    #[test]
    fn the_version_comes_first() {
        let line = r#"{"hello":{"version":7,"cargo":true}}"#;
        assert_eq!(
            serde_json::from_str::<AnyHello>(line)
                .unwrap()
                .hello
                .version,
            7
        );
    }
}
