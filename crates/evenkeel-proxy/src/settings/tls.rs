//! How TLS is spoken: whom to believe, and as whom.

use std::path::PathBuf;

use crate::discovery::DnsName;

/// How TLS is spoken to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointTls {
    /// Who is believed.
    pub trust: Trust,
    /// The name that is asked for, and that the endpoint's certificate must have; `None` is the address that is connected to.
    pub server_name: Option<DnsName>,
    /// What is shown to an endpoint that asks for a certificate.
    pub identity: Option<CertificateFiles>,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Those of the authorities that the system knows.
    System,
    /// Those of the authorities in this file.
    Authorities(PathBuf),
    /// Anybody's: nothing is verified, and so nothing is safe from whoever is in between.
    Anybody,
}

/// The files of a certificate, with all that leads to its authority, and of its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// The certificate, and those in between, in their order.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}
