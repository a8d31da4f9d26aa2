//! Certificates and keys from files in PEM. What is wrong with a file is told by its path, and never by what is in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};

use super::provider;
use crate::settings::CertificateFiles;

/// The most bytes of a file: the system's own authorities take a fifth of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How the sections of keys begin that a password is needed for.
const ENCRYPTED: [&str; 2] = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the fields are the files, and what is said of them"
)]
pub enum TlsFileError {
    /// It is not there, or may not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// It holds sections that cannot be decoded.
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    /// There is no section with a certificate in it.
    #[error("{} has no certificate in PEM (\"-----BEGIN CERTIFICATE-----\")", path.display())]
    NoCertificate { path: PathBuf },
    /// There is no section with a private key in it.
    #[error("{} has no private key in PEM (\"-----BEGIN PRIVATE KEY-----\")", path.display())]
    NoKey { path: PathBuf },
    /// A password would be needed.
    #[error("the key in {} is encrypted: decrypt it, and let nobody else read the file", path.display())]
    Encrypted { path: PathBuf },
    /// The key is of a kind that cannot be used.
    #[error("the key in {} cannot be used: {why}", path.display())]
    BadKey { path: PathBuf, why: String },
    /// The certificate is none that can be used.
    #[error("the certificate in {} cannot be used: {why}", path.display())]
    BadCertificate { path: PathBuf, why: String },
    /// They do not belong together.
    #[error("the key in {} is not that of the certificate in {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
}

/// A certificate, with those in between, and its key.
///
/// # Errors
///
/// One of the files is of no use, or they do not belong together.
pub(super) fn identity(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, TlsFileError> {
    let CertificateFiles { certificate, key } = files;
    let chain = certificates(certificate)?;
    let secret = private_key(key)?;
    let signing = provider().key_provider.load_private_key(secret);
    let signing = signing.map_err(|error| TlsFileError::BadKey {
        path: key.clone(),
        why: error.to_string(),
    })?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // Some kinds of keys do not tell; then the first handshake will.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Ok(Arc::new(certified))
        }
        Err(rustls::Error::InconsistentKeys(_)) => Err(TlsFileError::Mismatch {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        Err(error) => Err(TlsFileError::BadCertificate {
            path: certificate.clone(),
            why: error.to_string(),
        }),
    }
}

/// The authorities in a file.
///
/// # Errors
///
/// The file is of no use, or one of them is none.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| TlsFileError::BadCertificate {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// Those in the file, in their order; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| TlsFileError::Damaged {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    if found.is_empty() {
        return Err(TlsFileError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(found)
}

/// The first one in the file. Why it cannot be decoded is not told: it might tell of the key.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let pem = read(path)?;
    let text = String::from_utf8_lossy(&pem);
    let path = path.to_owned();
    if ENCRYPTED.iter().any(|mark| text.contains(mark)) {
        return Err(TlsFileError::Encrypted { path });
    }
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(key) => Ok(key),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => Err(TlsFileError::NoKey { path }),
        Err(_) => Err(TlsFileError::Damaged {
            path,
            why: "its PEM cannot be decoded".to_owned(),
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let read = || {
        let mut bytes = Vec::new();
        let most = FILE_BYTES_MAX + 1;
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other("it is longer than 1 MiB"));
        }
        Ok(bytes)
    };
    read().map_err(|source| TlsFileError::Unreadable {
        path: path.to_owned(),
        source,
    })
}
