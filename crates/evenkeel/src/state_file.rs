//! The state file: what the operator has said, for the next process. Its text, and how it gets onto the disk and back.
//!
//! Each override stands there beside the configured value that it was set over, so that a configuration that was changed
//! meanwhile beats it. When it is written is decided elsewhere (`keeper.rs`).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_core::units::Weight;
use evenkeel_core::{Duty, EndpointOverrides, KeptCluster, Overridden};
use evenkeel_proxy::control::operator::{OverrideReport, OverridesReport, duty_code, service_of};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::regular_file;

/// The version of the schema. A file of another one is not read.
const VERSION: u32 = 1;
/// The longest file that is read: overrides on about 200,000 endpoints.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Whoever can write it decides who gets work.
const MODE: u32 = 0o600;

/// Why a state file says nothing.
#[derive(Debug, Error)]
pub(crate) enum StateFileError {
    /// The disk.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not what this program writes.
    #[error("it is not a state file: {0}")]
    NotState(#[from] serde_json::Error),
    /// From another release.
    #[error("it has schema version {0}, and this program knows {VERSION}")]
    OtherVersion(u32),
    /// Too long to be one.
    #[error("it is longer than {BYTES_MAX} bytes")]
    TooLong,
}

#[derive(Debug, Serialize, Deserialize)]
struct StateText {
    version: u32,
    clusters: BTreeMap<String, ClusterText>,
}

#[derive(Debug, Deserialize)]
struct VersionText {
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClusterText {
    on_duty: String,
    overrides: BTreeMap<String, OverridesReport>,
}

/// The file's text. The same state is the same text.
pub(crate) fn encode(clusters: &[KeptCluster]) -> Vec<u8> {
    let text = StateText {
        version: VERSION,
        clusters: clusters.iter().map(cluster_text).collect(),
    };
    // Maps with strings for keys, strings and numbers: there is nothing in it that JSON cannot say.
    let mut bytes = serde_json::to_vec_pretty(&text).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn cluster_text(kept: &KeptCluster) -> (String, ClusterText) {
    let overrides = kept.overrides.iter();
    let text = ClusterText {
        on_duty: duty_code(kept.duty).to_owned(),
        overrides: overrides
            .map(|(name, overrides)| (name.to_string(), OverridesReport::from(overrides)))
            .collect(),
    };
    (kept.name.to_string(), text)
}

/// Reads the text back. Values that mean nothing are left out, one by one.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<KeptCluster>, StateFileError> {
    let VersionText { version } = serde_json::from_slice(bytes)?;
    if version != VERSION {
        return Err(StateFileError::OtherVersion(version));
    }
    let text: StateText = serde_json::from_slice(bytes)?;
    Ok(text.clusters.into_iter().map(kept_cluster).collect())
}

fn kept_cluster((name, text): (String, ClusterText)) -> KeptCluster {
    let overrides = text.overrides.into_iter();
    KeptCluster {
        name: Arc::from(name),
        duty: if text.on_duty == duty_code(Duty::Backups) {
            Duty::Backups
        } else {
            Duty::Primaries
        },
        overrides: overrides
            .map(|(name, overrides)| (Arc::from(name), kept_overrides(&overrides)))
            .collect(),
        endpoints: Vec::new(),
    }
}

fn kept_overrides(text: &OverridesReport) -> EndpointOverrides {
    EndpointOverrides {
        weight: text
            .weight
            .as_ref()
            .and_then(|over| pair(over, |weight| Weight::new(*weight))),
        service: text
            .service
            .as_ref()
            .and_then(|over| pair(over, |code: &String| service_of(code))),
    }
}

fn pair<T, V>(over: &OverrideReport<T>, read: impl Fn(&T) -> Option<V>) -> Option<Overridden<V>> {
    Some(Overridden {
        configured: read(&over.configured)?,
        value: read(&over.value)?,
    })
}

/// Reads the file; there need not be one.
pub(crate) fn read(path: &Path) -> Result<Vec<KeptCluster>, StateFileError> {
    let file = match regular_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    let length = file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if length as u64 > BYTES_MAX {
        return Err(StateFileError::TooLong);
    }
    decode(&bytes)
}

/// Writes the file whole or not at all: beside it first, onto the disk, then in its place.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A rename would put the file in the place of a device, say, for everybody on this machine.
    regular_file::may_be_replaced(path)?;
    let beside = beside(path);
    let written = write_beside(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not even be there; what stands in its own place is whole.
        let _ = fs::remove_file(&beside);
    }
    written?;
    // A directory that cannot be synced (some file systems) has the rename all the same.
    let _ = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
    Ok(())
}

/// What lies there is from a process that was cut off, or somebody's trap: a pipe would be waited for, and a link lead elsewhere.
/// A file that is made anew is neither.
fn write_beside(beside: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(beside)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Service;
    use evenkeel_proxy::control::operator::service_code;

    use super::*;

    fn world() -> Vec<KeptCluster> {
        let overrides = EndpointOverrides {
            weight: Some(Overridden {
                configured: Weight::ONE,
                value: Weight::ZERO,
            }),
            service: Some(Overridden {
                configured: Service::InService,
                value: Service::Draining,
            }),
        };
        vec![KeptCluster {
            name: Arc::from("mysql"),
            overrides: vec![(Arc::from("db1"), overrides)],
            duty: Duty::Backups,
            endpoints: Vec::new(),
        }]
    }

    /// A pipe that lies there stays one, and the way to it is the reason that is told.
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        make_pipe(&path);

        let error = write(&path, b"state").unwrap_err();

        assert!(error.to_string().contains("a pipe"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// What is written is read again, and nothing else lies beside it.
    #[test]
    fn a_state_survives_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(read(&path).unwrap(), []);

        write(&path, &encode(&world())).unwrap();
        write(&path, &encode(&world())).unwrap();

        assert_eq!(read(&path).unwrap(), world());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A file cut short, of another kind or of another release is an error with a reason, never half a state.
    #[test]
    fn what_is_no_state_is_not_read() {
        let whole = encode(&world());
        for end in 0..whole.len() - 2 {
            assert!(decode(&whole[..end]).is_err(), "{end} bytes");
        }
        for text in ["", "[]", "\u{0}", r#"{"version":1}"#] {
            assert!(decode(text.as_bytes()).is_err(), "{text:?}");
        }
        let newer = decode(br#"{"version":2,"whatever":[]}"#).unwrap_err();
        assert!(newer.to_string().contains("schema version 2"), "{newer}");
    }

    /// A word that nobody knows takes itself out, not the others.
    #[test]
    fn values_that_mean_nothing_are_left_out() {
        let text = String::from_utf8(encode(&world())).unwrap();
        let strange = text.replace("draining", service_code(Service::Disabled));
        let stranger = text.replace("\"draining\"", "\"asleep\"");

        let service = |text: &str| decode(text.as_bytes()).unwrap()[0].overrides[0].1.service;
        assert!(service(&strange).is_some());
        assert_eq!(service(&stranger), None);
        assert!(
            decode(stranger.as_bytes()).unwrap()[0].overrides[0]
                .1
                .weight
                .is_some()
        );
    }

    /// Where it cannot be written, the old one stays as it is.
    #[test]
    fn a_write_that_fails_harms_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        write(&path, b"old").unwrap();
        fs::create_dir(beside(&path)).unwrap();

        assert!(write(&path, b"new").is_err());

        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    /// A pipe is not waited for, neither in its place to be read nor beside it to be written.
    #[test]
    fn a_pipe_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        make_pipe(&path);
        let refused = read(&path).unwrap_err();
        assert!(refused.to_string().contains("a pipe"), "{refused}");

        fs::remove_file(&path).unwrap();
        make_pipe(&beside(&path));
        write(&path, &encode(&world())).unwrap();

        assert_eq!(read(&path).unwrap(), world());
    }

    /// A link beside it is not followed: what it leads to stays as it is.
    #[test]
    fn a_link_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let other = folder.path().join("other");
        fs::write(&other, b"precious").unwrap();
        std::os::unix::fs::symlink(&other, beside(&path)).unwrap();

        write(&path, &encode(&world())).unwrap();

        assert_eq!(read(&path).unwrap(), world());
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&other).unwrap(), b"precious");
    }

    fn make_pipe(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
}
