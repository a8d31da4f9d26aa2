//! Each load over TLS, through a relay that ends it: with the certificate that is trusted, and with another.

mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use evenkeel_bench::{Course, Figures, HttpLoad, Load, Plan, Request, Transport, run};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use support::free;

fn certified() -> CertifiedKey<KeyPair> {
    let names = ["bench.example".to_owned()];
    generate_simple_self_signed(names).expect("a certificate")
}

/// Shows this certificate, and passes a request on when it has come, then the answer: both come in one piece.
fn relay(certified: &CertifiedKey<KeyPair>, endpoint: SocketAddr) -> SocketAddr {
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("they belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for client in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            let client = StreamOwned::new(session, client.expect("a connection"));
            let upstream = TcpStream::connect(endpoint).expect("the endpoint listens");
            thread::spawn(move || pass(client, upstream));
        }
    });
    address
}

fn pass(mut client: StreamOwned<ServerConnection, TcpStream>, mut upstream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(asked @ 1..) = client.read(&mut buffer) {
        upstream.write_all(&buffer[..asked]).expect("it is there");
        let answered = upstream.read(&mut buffer).expect("it answers");
        let sent = client.write_all(&buffer[..answered]);
        if sent.and_then(|()| client.flush()).is_err() {
            break;
        }
    }
}

/// A short load over two connections, which trusts one certificate and is shown another or the same.
fn through(
    trusted: &CertifiedKey<KeyPair>,
    shown: &CertifiedKey<KeyPair>,
    course: Course,
) -> anyhow::Result<Figures> {
    let endpoint = free();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.pem", endpoint.port()));
    std::fs::write(&file, trusted.cert.pem()).expect("a folder of the tests");
    run(&Plan {
        load: Load::Http(HttpLoad {
            request: Request::Get,
            answer_bytes: 128,
            course,
            transport: Transport::Tls,
        }),
        connections: 2,
        target: relay(shown, endpoint),
        endpoints: vec![endpoint],
        warm_up_millis: 10,
        window_millis: 50,
        trusted: Some(file),
        watched: Vec::new(),
    })
}

/// Over TLS, a load comes to its end with work done, whatever a connection does with its exchanges.
#[test]
fn a_load_over_tls_ends_with_figures() {
    let certified = certified();
    for course in [Course::KeepAlive, Course::Connect, Course::Idle] {
        let figures = through(&certified, &certified, course).expect("the relay is faithful");
        assert!(figures.work > 0, "{course:?}: {figures:?}");
        assert!(figures.exchanges >= figures.work, "{course:?}: {figures:?}");
    }
}

/// A certificate that nobody trusts is noticed: the load verifies what it is shown.
#[test]
fn another_certificate_is_noticed() {
    let fault = through(&certified(), &certified(), Course::KeepAlive);
    let fault = format!("{:#}", fault.expect_err("it is another"));
    assert!(fault.contains("invalid peer certificate"), "{fault}");
}
