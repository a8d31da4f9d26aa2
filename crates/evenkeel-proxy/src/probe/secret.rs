//! Passwords that are in files. They are read for each probe, off the control plane's thread: a file may be on a disk that hangs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use crate::settings::Secret;

/// The most bytes of a file that holds a password.
const FILE_BYTES_MAX: u64 = 4096;

/// The password itself; the error names the file and never what is in it.
pub(super) async fn reveal(secret: &Secret) -> Result<String, String> {
    match secret {
        Secret::Text(text) => Ok(text.to_string()),
        Secret::File(path) => read_off_thread(path.clone()).await,
    }
}

async fn read_off_thread(path: PathBuf) -> Result<String, String> {
    let shown = path.display().to_string();
    let read = spawn_blocking(move || read(&path)).await;
    let read = read.unwrap_or_else(|_| Err(io::Error::other("the reading was broken off")));
    read.map_err(|error| format!("cannot read the password in {shown}: {error}"))
}

/// One line end is the editor's, not the password's.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is longer than any password"));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file's last line end goes, everything else stays; a file that is none is named.
    #[tokio::test]
    async fn a_password_is_the_file_without_its_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, " open sesame \r\n").unwrap();
        let revealed = reveal(&Secret::File(path)).await;
        assert_eq!(revealed.as_deref(), Ok(" open sesame "));

        let missing = reveal(&Secret::File(folder.path().join("none"))).await;
        assert!(missing.unwrap_err().contains("none"));
    }
}
