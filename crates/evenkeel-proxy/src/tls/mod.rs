//! TLS: what the settings say of it as what the TLS library needs. The library is rustls, its cryptography aws-lc.
//!
//! `files` reads certificates and keys; `client` makes connections to endpoints out of them, `server` ends those of clients. Bytes are
//! moved elsewhere.
//! No key is ever printed: nothing here that holds one shows it.

pub(crate) mod client;
mod files;
#[cfg(test)]
mod handshakes;
pub mod server;
#[cfg(test)]
mod tests;
mod unverified;

use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

pub use files::TlsFileError;

/// The algorithms, the same everywhere in the process.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider())))
}
