//! The connection of a client, plain or with TLS: what is read and written is HTTP either way.
//!
//! TLS is rustls. Nothing is resumed, so that every handshake is a full one; and only those groups are offered for the exchange of keys
//! that every peer has, so that none asks for another and all do the same work.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, X25519};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};

/// The name that is asked for, and that the certificate must have.
const NAME: &str = "bench.example";

/// How connections are secured.
#[derive(Clone)]
pub(super) enum Security {
    Plain,
    Tls(Arc<ClientConfig>),
}

impl Security {
    /// With TLS if there is a certificate to be trusted, the proxy's own.
    pub(super) fn new(trusted: Option<&Path>) -> Result<Self> {
        let Some(file) = trusted else {
            return Ok(Self::Plain);
        };
        let certificate = CertificateDer::from_pem_file(file).context("no certificate")?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let provider = CryptoProvider {
            kx_groups: vec![X25519, SECP256R1],
            ..aws_lc_rs::default_provider()
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self::Tls(Arc::new(config)))
    }

    /// The handshake takes place when something is first written.
    pub(super) fn over(&self, stream: TcpStream) -> Result<Channel> {
        Ok(match self {
            Self::Plain => Channel::Plain(stream),
            Self::Tls(config) => {
                let name = ServerName::try_from(NAME)?;
                let session = ClientConnection::new(Arc::clone(config), name)?;
                Channel::Tls(Box::new(Tls { stream, session }))
            }
        })
    }
}

/// A connection.
pub(super) enum Channel {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// A connection with TLS.
pub(super) struct Tls {
    stream: TcpStream,
    session: ClientConnection,
}

impl Channel {
    pub(super) const fn stream(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => &tls.stream,
        }
    }

    /// Takes leave as a client does. An error if the handshake was not a full one.
    pub(super) fn close(self) -> Result<()> {
        let Self::Tls(mut tls) = self else {
            return Ok(());
        };
        if tls.session.handshake_kind() != Some(HandshakeKind::Full) {
            bail!("the handshake was {:?}", tls.session.handshake_kind());
        }
        tls.session.send_close_notify();
        tls.push().context("cannot take leave")
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(parts),
            Self::Tls(tls) => tls.write(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.push()?;
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.session.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            let processed = self.session.process_new_packets();
            processed.map_err(io::Error::other)?;
            self.push()?;
        }
    }

    /// What is taken may be sent only with the next read: during the handshake nothing else is possible.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.session.writer().write_vectored(parts)?;
        self.push()?;
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }

    /// Sends what is ready to be sent, as far as the socket takes it.
    fn push(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
