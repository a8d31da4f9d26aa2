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

/// How the TLS of a listener's clients is ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Chosen by the name that a client asks for; the first one is for all others. At least one.
    pub certificates: Vec<CertificateFiles>,
    /// What is spoken.
    pub versions: TlsVersions,
    /// Which certificates clients show; `None` asks for none.
    pub clients: Option<ClientCertificates>,
}

/// Versions of TLS. Older ones are not spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.3, and 1.2 with clients that know no better.
    #[default]
    Both,
    /// 1.2.
    Only12,
    /// 1.3.
    Only13,
}

/// The certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The authorities that are believed, in PEM.
    pub authorities: PathBuf,
    /// Whether a client may do without.
    pub demand: Demand,
}

/// Whether a client may do without a certificate. One that shows a wrong one may never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It may not.
    Required,
    /// It may.
    Optional,
}
