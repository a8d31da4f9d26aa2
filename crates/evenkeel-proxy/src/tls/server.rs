//! TLS of clients that is ended here: which certificate is shown to whom, which versions are spoken, who has to show one.
//!
//! What is read here is kept until the next reload makes another one; tickets for resumption are good for as long, so no session of an older
//! configuration is resumed under a newer one that demands more.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use evenkeel_wire::certificate::{self, Facts};
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::{TlsFileError, files, provider};
use crate::host_pattern::{HostPattern, HostTable};
use crate::settings::{ClientCertificates, Demand, ListenerTls, TlsVersions};

/// Why a listener's TLS cannot be had as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// One of the files is of no use.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// Clients would refuse it.
    #[error("the certificate in {} is not valid {when}", path.display())]
    OutOfDate {
        /// Where it is.
        path: PathBuf,
        /// Whether its time is over or yet to come.
        when: When,
    },
    /// The library refuses the whole.
    #[error("{0}")]
    Other(String),
}

/// On which side of its time a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After its last second.
    AnyMore,
    /// Before its first one.
    Yet,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnyMore => "any more",
            Self::Yet => "yet",
        })
    }
}

/// What all connections of a listener have in common. `protocols` are offered by ALPN; with none the client's are not looked at. Reads
/// files, so not for a worker's thread.
///
/// # Errors
///
/// See [`ServerError`]; nothing has changed then.
pub fn config(
    settings: &ListenerTls,
    protocols: &[&[u8]],
) -> Result<Arc<ServerConfig>, ServerError> {
    let certificates = Certificates::read(settings)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(settings.versions))
        .map_err(other)?;
    let mut config = builder
        .with_client_cert_verifier(verifier(settings.clients.as_ref())?)
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.ticketer = Ticketer::new().map_err(other)?;
    Ok(Arc::new(config))
}

fn versions(versions: TlsVersions) -> Vec<&'static SupportedProtocolVersion> {
    match versions {
        TlsVersions::Both => vec![&TLS13, &TLS12],
        TlsVersions::Only12 => vec![&TLS12],
        TlsVersions::Only13 => vec![&TLS13],
    }
}

fn verifier(
    clients: Option<&ClientCertificates>,
) -> Result<Arc<dyn ClientCertVerifier>, ServerError> {
    let Some(clients) = clients else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let roots = Arc::new(files::authorities(&clients.authorities)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let builder = match clients.demand {
        Demand::Required => builder,
        Demand::Optional => builder.allow_unauthenticated(),
    };
    builder.build().map_err(other)
}

fn other(error: impl fmt::Display) -> ServerError {
    ServerError::Other(error.to_string())
}

/// The certificates of a listener, by the names that they are for.
struct Certificates {
    by_name: HostTable<Arc<CertifiedKey>>,
    /// For a client that asks for another name, or for none.
    first: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    fn read(settings: &ListenerTls) -> Result<Self, ServerError> {
        let mut named = Vec::new();
        let mut first = None;
        for files in &settings.certificates {
            let identity = files::identity(files)?;
            let facts = facts(&identity, &files.certificate)?;
            check_time(&facts, &files.certificate)?;
            first.get_or_insert_with(|| Arc::clone(&identity));
            // A name that no host can have is for nobody.
            let names = facts.dns_names.iter().filter_map(|name| name.parse().ok());
            named.extend(names.map(|name: HostPattern| (name, Arc::clone(&identity))));
        }
        Ok(Self {
            by_name: named.into_iter().collect(),
            first,
        })
    }
}

fn facts(identity: &CertifiedKey, path: &Path) -> Result<Facts, TlsFileError> {
    let bad = |why: String| TlsFileError::BadCertificate {
        path: path.to_owned(),
        why,
    };
    let own = identity
        .end_entity_cert()
        .map_err(|error| bad(error.to_string()))?;
    certificate::read(own).map_err(|unreadable| bad(unreadable.to_string()))
}

fn check_time(facts: &Facts, path: &Path) -> Result<(), ServerError> {
    let now = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_secs());
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let when = if now < facts.not_before {
        When::Yet
    } else if now > facts.not_after {
        When::AnyMore
    } else {
        return Ok(());
    };
    Err(ServerError::OutOfDate {
        path: path.to_owned(),
        when,
    })
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let named = name.and_then(|name| self.by_name.find(name.trim_end_matches('.')));
        named.or(self.first.as_ref()).cloned()
    }
}

/// Without the keys.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}
