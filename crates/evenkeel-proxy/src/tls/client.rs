//! TLS to endpoints: whom to believe, the name to ask for, what to show.

use std::net::IpAddr;
use std::sync::Arc;

use evenkeel_core::units::Address;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::unverified::Anybody;
use super::{TlsFileError, files, provider};
use crate::settings::{EndpointTls, Trust};

/// Why TLS cannot be spoken to an endpoint.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(transparent)]
    File(#[from] TlsFileError),
    #[error(
        "the system's authorities cannot be found{0}: install ca-certificates, or name a file with `ca`"
    )]
    NoSystemAuthorities(String),
    #[error("{0}")]
    Other(String),
}

/// What all connections under these settings have in common. Reads files, so not for a worker's thread.
///
/// # Errors
///
/// A file is of no use, or the system knows no authorities.
pub(crate) fn config(settings: &EndpointTls) -> Result<Arc<ClientConfig>, ClientError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(&settings.trust)?);
    Ok(Arc::new(match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let identity = SingleCertAndKey::from(files::identity(identity)?);
            builder.with_client_cert_resolver(Arc::new(identity))
        }
    }))
}

/// The name that an endpoint's certificate must have; `None` for a Unix socket, which has none of its own.
pub(crate) fn server_name(
    settings: &EndpointTls,
    address: &Address,
) -> Option<ServerName<'static>> {
    match &settings.server_name {
        Some(name) => ServerName::try_from(name.as_str().to_owned()).ok(),
        None => address.ip().map(|address| IpAddr::into(address.ip())),
    }
}

fn verifier(trust: &Trust) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    let roots = match trust {
        Trust::Anybody => return Ok(Arc::new(Anybody::new(provider()))),
        Trust::Authorities(file) => files::authorities(file)?,
        Trust::System => system_authorities()?,
    };
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    Ok(builder.build().map_err(other)?)
}

/// Some that cannot be read are no fault: systems keep old ones.
fn system_authorities() -> Result<RootCertStore, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first();
        let why = why.map_or_else(String::new, |error| format!(" ({error})"));
        return Err(ClientError::NoSystemAuthorities(why));
    }
    Ok(roots)
}

fn other(error: impl std::fmt::Display) -> ClientError {
    ClientError::Other(error.to_string())
}
