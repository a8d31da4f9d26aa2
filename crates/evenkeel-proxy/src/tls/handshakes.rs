//! Handshakes of both ends in memory: who is shown which certificate, and who is refused.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, Connection, ProtocolVersion, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::client;
use super::server::{ServerError, When, config};
use crate::settings::{
    CertificateFiles, ClientCertificates, Demand, EndpointTls, ListenerTls, TlsVersions, Trust,
};

/// An authority, and a folder for what it issues.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca")
    }

    /// A certificate for that name, valid in these years.
    fn issue(&self, name: &str, years: (i32, i32)) -> CertificateFiles {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = CertificateFiles {
            certificate: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}.key")),
        };
        fs::write(&files.certificate, certificate.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    /// A listener with a certificate for each of the names.
    fn listener(&self, names: &[&str]) -> ListenerTls {
        let certificates = names.iter().map(|name| self.issue(name, (2020, 2090)));
        ListenerTls {
            certificates: certificates.collect(),
            versions: TlsVersions::Both,
            clients: None,
        }
    }

    /// How a handshake ends with a client that asks for this name: both ends, or what one of them says against it.
    fn shake_hands(
        &self,
        server: &Arc<ServerConfig>,
        name: &str,
        identity: Option<CertificateFiles>,
    ) -> Result<(Connection, Connection), String> {
        let settings = EndpointTls {
            trust: Trust::Authorities(self.ca()),
            server_name: None,
            identity,
        };
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let client = client::config(&settings).unwrap();
        let mut client = Connection::from(ClientConnection::new(client, name).unwrap());
        let mut server = Connection::from(ServerConnection::new(Arc::clone(server)).unwrap());
        while client.wants_write() || server.wants_write() {
            carry(&mut client, &mut server)?;
            carry(&mut server, &mut client)?;
        }
        Ok((client, server))
    }
}

/// Brings what one end has to say to the other.
fn carry(from: &mut Connection, to: &mut Connection) -> Result<(), String> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What the certificate says that an end was shown.
fn shown(to: &Connection) -> Option<Vec<u8>> {
    let first = to.peer_certificates()?.first()?;
    Some(first.to_vec())
}

fn der(files: &CertificateFiles) -> Vec<u8> {
    CertificateDer::from_pem_file(&files.certificate)
        .unwrap()
        .to_vec()
}

/// Each name has its own certificate, exact or by its wildcard, whatever its spelling; every other name gets the first one.
#[test]
fn a_certificate_is_chosen_by_name() {
    let authority = Authority::new();
    let listener = authority.listener(&["a.example.com", "*.example.org", "b.example.org"]);
    let server = config(&listener, &[]).unwrap();
    for (name, number) in [
        ("a.example.com", 0),
        ("A.Example.com", 0),
        ("x.example.org", 1),
        ("b.example.org", 2),
    ] {
        let (client, _) = authority.shake_hands(&server, name, None).unwrap();
        assert_eq!(
            shown(&client),
            Some(der(&listener.certificates[number])),
            "{name}"
        );
    }
    let refused = authority
        .shake_hands(&server, "elsewhere.net", None)
        .unwrap_err();
    assert!(
        refused.contains("a.example.com"),
        "the first one was shown: {refused}"
    );
}

/// A client that has to show a certificate is refused without one, one that may is not; a wrong one is refused by both, and what
/// nobody asks for is not looked at.
#[test]
fn clients_show_certificates_as_demanded() {
    let authority = Authority::new();
    let own = authority.issue("client", (2020, 2090));
    let other = Authority::new();
    let foreign = other.issue("client", (2020, 2090));
    for (demand, without) in [(Demand::Required, false), (Demand::Optional, true)] {
        let mut listener = authority.listener(&["a"]);
        listener.clients = Some(ClientCertificates {
            authorities: authority.ca(),
            demand,
        });
        let server = config(&listener, &[]).unwrap();
        let shake_hands = |identity| authority.shake_hands(&server, "a", identity);
        assert_eq!(shake_hands(None).is_ok(), without);
        let (_, server_end) = shake_hands(Some(own.clone())).unwrap();
        assert_eq!(shown(&server_end), Some(der(&own)));
        assert!(shake_hands(Some(foreign.clone())).is_err());
    }
    let server = config(&authority.listener(&["a"]), &[]).unwrap();
    let (_, unasked) = authority.shake_hands(&server, "a", Some(foreign)).unwrap();
    assert_eq!(shown(&unasked), None);
}

/// The version is the highest that is allowed.
#[test]
fn versions_are_those_of_the_settings() {
    let authority = Authority::new();
    for (versions, spoken) in [
        (TlsVersions::Both, ProtocolVersion::TLSv1_3),
        (TlsVersions::Only13, ProtocolVersion::TLSv1_3),
        (TlsVersions::Only12, ProtocolVersion::TLSv1_2),
    ] {
        let mut listener = authority.listener(&["a"]);
        listener.versions = versions;
        let server = config(&listener, &[]).unwrap();
        let (client, _) = authority.shake_hands(&server, "a", None).unwrap();
        assert_eq!(client.protocol_version(), Some(spoken));
    }
}

/// A certificate whose time is over, or yet to come, is refused by the name of its file.
#[test]
fn a_certificate_out_of_date_is_refused() {
    let authority = Authority::new();
    for (years, expected) in [((2020, 2021), When::AnyMore), ((2090, 2091), When::Yet)] {
        let mut listener = authority.listener(&["a"]);
        listener.certificates.push(authority.issue("late", years));
        let refused = config(&listener, &[]).unwrap_err();
        assert!(matches!(refused, ServerError::OutOfDate { when, .. } if when == expected));
        assert!(refused.to_string().contains("late.pem"));
    }
}

/// Whatever holds a key shows nothing of it.
#[test]
fn no_key_is_shown() {
    let authority = Authority::new();
    let listener = authority.listener(&["a"]);
    let server = config(&listener, &[]).unwrap();
    let shown = format!("{server:?}{listener:?}");
    assert!(shown.contains("Certificates"));
    let key = fs::read_to_string(&listener.certificates[0].key).unwrap();
    let secret = key.lines().nth(1).unwrap();
    assert!(!shown.contains(secret));
}
