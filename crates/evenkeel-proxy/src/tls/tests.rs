//! Files that are wrong are told apart, and no error shows what is in them.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::TlsFileError;
use super::client::{ClientError, config};
use crate::settings::{CertificateFiles, EndpointTls, Trust};

/// A folder with the files of a certificate `a` and of another one, `b`.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(TempDir::new().unwrap());
        for name in ["a", "b"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            let certificate = params.self_signed(&key).unwrap();
            fs::write(folder.path(&format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(folder.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes what a file holds, changed.
    fn change(&self, name: &str, to: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(to), change(text)).unwrap();
    }

    /// What is said of these two files.
    fn fault(&self, certificate: &str, key: &str) -> Option<TlsFileError> {
        let settings = EndpointTls {
            trust: Trust::Anybody,
            server_name: None,
            identity: Some(CertificateFiles {
                certificate: self.path(certificate),
                key: self.path(key),
            }),
        };
        match config(&settings) {
            Ok(_) => None,
            Err(ClientError::File(error)) => Some(error),
            Err(other) => panic!("{other}"),
        }
    }
}

fn trusting(path: &Path) -> Result<(), String> {
    let settings = EndpointTls {
        trust: Trust::Authorities(path.to_owned()),
        server_name: None,
        identity: None,
    };
    config(&settings)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// A certificate with its key is taken, with whatever else lies in the same file.
#[test]
fn a_pair_is_taken() {
    let folder = Folder::new();
    assert!(folder.fault("a.pem", "a.key").is_none());
    let key = fs::read_to_string(folder.path("a.key")).unwrap();
    folder.change("a.pem", "both.pem", |certificate| {
        format!("a comment\n{certificate}{key}")
    });
    assert!(folder.fault("both.pem", "both.pem").is_none());
}

/// Each way to be wrong has its own words, with the file's name in them.
#[test]
fn what_is_wrong_with_a_file_is_told() {
    use TlsFileError::*;
    let folder = Folder::new();
    folder.change("a.pem", "cut.pem", |text| text[..text.len() / 2].to_owned());
    folder.change("a.key", "cut.key", |text| text[..text.len() / 2].to_owned());
    folder.change("a.key", "secret.key", |text| {
        text.replace("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE")
    });
    let fault = |certificate, key| folder.fault(certificate, key).expect("a fault");
    assert!(matches!(fault("none.pem", "a.key"), Unreadable { .. }));
    assert!(matches!(fault("a.pem", "none.key"), Unreadable { .. }));
    assert!(matches!(fault("a.key", "a.key"), NoCertificate { .. }));
    assert!(matches!(fault("a.pem", "a.pem"), NoKey { .. }));
    assert!(matches!(fault("cut.pem", "a.key"), Damaged { .. }));
    assert!(matches!(fault("a.pem", "cut.key"), Damaged { .. }));
    assert!(matches!(fault("a.pem", "secret.key"), Encrypted { .. }));
    assert!(matches!(fault("a.pem", "b.key"), Mismatch { .. }));
    assert!(fault("a.pem", "b.key").to_string().contains("b.key"));
}

/// A file of authorities is read whole; one without any is refused.
#[test]
fn authorities_are_taken_from_a_file() {
    let folder = Folder::new();
    assert_eq!(trusting(&folder.path("a.pem")), Ok(()));
    assert!(
        trusting(&folder.path("a.key"))
            .unwrap_err()
            .contains("no certificate")
    );
    let endless = folder.path("endless.pem");
    fs::write(&endless, vec![b'x'; 2 << 20]).unwrap();
    assert!(
        trusting(&endless)
            .unwrap_err()
            .contains("longer than 1 MiB")
    );
}
