//! TLS for probes. What the files hold is kept for a while, so that not every probe reads them; who replaces a file waits no longer
//! than that for it to count.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Address;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::verdict::Verdict;
use crate::settings::EndpointTls;
use crate::tls::client;

/// How long what was read is used.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// What was read for the clusters that are probed, and when. What is old is thrown away whenever something is added, so there is
/// at most one for each cluster.
#[derive(Default)]
pub(super) struct Credentials(Mutex<HashMap<EndpointTls, (Instant, Arc<ClientConfig>)>>);

impl Credentials {
    /// What a connection under these settings is made with.
    ///
    /// # Errors
    ///
    /// There are no such files; nobody was asked anything.
    pub(super) async fn of(
        &self,
        settings: &EndpointTls,
        address: &Address,
    ) -> Result<Credential, Verdict> {
        let name = client::server_name(settings, address);
        let name =
            name.ok_or_else(|| Verdict::not_asked("TLS over a Unix socket needs a `server_name`"))?;
        let config = match self.kept(settings) {
            Some(config) => config,
            None => self.read(settings.clone()).await?,
        };
        Ok(Credential { config, name })
    }

    fn kept(&self, settings: &EndpointTls) -> Option<Arc<ClientConfig>> {
        let known = self.0.lock();
        let (read_at, config) = known.get(settings)?;
        (read_at.elapsed() < KEPT_FOR).then(|| Arc::clone(config))
    }

    async fn read(&self, settings: EndpointTls) -> Result<Arc<ClientConfig>, Verdict> {
        let wanted = settings.clone();
        let read = spawn_blocking(move || client::config(&wanted)).await;
        let config = match read {
            Ok(Ok(config)) => config,
            Ok(Err(error)) => return Err(Verdict::not_asked(error)),
            Err(_) => {
                return Err(Verdict::not_asked(
                    "the reading of certificates was broken off",
                ));
            }
        };
        let mut known = self.0.lock();
        known.retain(|_, (read_at, _)| read_at.elapsed() < KEPT_FOR);
        known.insert(settings, (Instant::now(), Arc::clone(&config)));
        Ok(config)
    }
}

/// What one connection is made with.
pub(super) struct Credential {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Credential {
    /// The handshake.
    ///
    /// # Errors
    ///
    /// It failed, and the endpoint with it.
    pub(super) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        stream: S,
    ) -> Result<TlsStream<S>, Verdict> {
        let connected = TlsConnector::from(self.config)
            .connect(self.name, stream)
            .await;
        connected.map_err(|error| Verdict::failed(format_args!("no TLS handshake: {error}")))
    }
}
