//! The certificate that proxies show in one measurement: ECDSA on P-256, made for it, and trusted by its load alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The name that it is for.
const NAME: &str = "bench.example";

/// Where it lies, as PEM.
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Both in one file.
    pub(crate) bundle: PathBuf,
}

impl Certificate {
    /// Makes one, and writes it into the folder.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let files = Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            bundle: folder.join("bundle.pem"),
        };
        fs::write(&files.certificate, &certificate)?;
        fs::write(&files.key, &key)?;
        fs::write(&files.bundle, certificate + &key)?;
        Ok(files)
    }
}
