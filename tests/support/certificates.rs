//! Certificates of the test's own: an authority, and what it issues, as PEM files.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// An authority with a folder for its certificate and for those that it issues.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validity {
    Now,
    Over,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let directory = TempDir::new().expect("a temporary directory");
        let authority = Self { issuer, directory };
        fs::write(authority.certificate(), authority.issuer.pem()).expect("it is ours");
        authority
    }

    /// The file of its own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("authority.pem")
    }

    /// A certificate for these names, the first of which names its subject and its files.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_valid(names, Validity::Now)
    }

    pub(crate) fn issue_valid(&self, names: &[&str], validity: Validity) -> Issued {
        let label = names[0].replace('*', "any");
        let issued = Issued {
            certificate: self.file(&format!("{label}.pem")),
            key: self.file(&format!("{label}.key")),
        };
        self.write(&issued, names, validity);
        issued
    }

    /// Writes a new certificate and a new key into these files.
    pub(crate) fn write(&self, into: &Issued, names: &[&str], validity: Validity) {
        let key = KeyPair::generate().expect("a key");
        let params = params(names, validity);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        fs::write(&into.certificate, certificate.pem()).expect("it is ours");
        fs::write(&into.key, key.serialize_pem()).expect("it is ours");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn params(names: &[&str], validity: Validity) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let subject = names[0].clone();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, subject);
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let last = match validity {
        Validity::Now => 2090,
        Validity::Over => 2021,
    };
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(last, 1, 1);
    params
}
