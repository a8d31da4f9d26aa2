//! The PROXY protocol in and out: who is believed, what is refused, and what an endpoint is told.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Balance;
use evenkeel_core::HashPolicy;
use evenkeel_core::units::Address;
use evenkeel_proxy::settings::{ProxyVersion, Settings};
use evenkeel_proxy::telemetry::reason::Reason;
use evenkeel_proxy::{Origin, Sender};
use evenkeel_wire::proxy_protocol::{Ends, Header, encode};

use crate::world::{
    Endpoint, World, exchange, patient, read_all, read_exactly, read_to_reset, reset,
};

/// The client that is announced in these tests, and where it connected to.
fn announced() -> Ends<SocketAddr> {
    Ends {
        source: SocketAddr::from(([192, 0, 2, 7], 50312)),
        destination: SocketAddr::from(([198, 51, 100, 1], 3306)),
    }
}

fn header(version: ProxyVersion) -> Vec<u8> {
    encode(version, &Header::Tcp(announced()))
}

/// Headers are believed from loopback.
fn trusting(settings: &mut Settings) {
    trust(settings, &["127.0.0.0/8"]);
}

fn trust(settings: &mut Settings, networks: &[&str]) {
    let network = |text: &&str| Sender::Network(text.parse().expect("a network"));
    settings.listeners[0].proxy_protocol = Some(networks.iter().map(network).collect());
}

fn telling(version: ProxyVersion) -> impl FnOnce(&mut Settings) {
    move |settings| settings.clusters[0].proxy_protocol = Some(version)
}

const BOTH: [ProxyVersion; 2] = [ProxyVersion::V1, ProxyVersion::V2];

/// However the header comes, in pieces or together with what follows, the endpoint gets exactly what follows, and the session is
/// the announced client's.
#[test]
fn a_header_is_taken_out_however_it_comes() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], trusting);
    for version in BOTH {
        let bytes = [header(version), b"hello".to_vec()].concat();
        for piece in [1, 7, bytes.len()] {
            let mut client = world.connect();
            client.set_nodelay(true).unwrap();
            let peer = client.local_addr().unwrap();
            for piece in bytes.chunks(piece) {
                client.write_all(piece).unwrap();
                // So that it goes by itself, most of the time: whether it does changes nothing.
                std::thread::yield_now();
            }
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(read_all(&mut client), b"hello");
            let record = world.next_record();
            assert_eq!(record.reason, Reason::Done);
            assert_eq!(record.client, Origin::Ip(announced().source));
            assert_eq!(record.peer, Some(Origin::Ip(peer)));
            assert_eq!((record.bytes_up, record.bytes_down), (5, 5));
        }
    }
}

/// Behind a header a server may speak first, and a client that ends its stream right away is answered.
#[test]
fn nothing_need_follow_a_header() {
    let endpoint = Endpoint::naming("first");
    let world = World::with(&[&endpoint], trusting);
    for version in BOTH {
        let mut client = world.connect();
        client.write_all(&header(version)).unwrap();
        assert_eq!(read_exactly(&mut client, 5), b"first");
        assert_eq!(exchange(&mut client, b""), b"");

        let mut client = world.connect();
        assert_eq!(exchange(&mut client, &header(version)), b"first");
    }
}

/// A sender that speaks for itself is the client.
#[test]
fn a_sender_that_announces_nobody_is_the_client() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], trusting);
    for version in BOTH {
        let mut client = world.connect();
        let peer = client.local_addr().unwrap();
        let bytes = [encode(version, &Header::Local), b"hello".to_vec()].concat();
        assert_eq!(exchange(&mut client, &bytes), b"hello");
        let record = world.next_record();
        assert_eq!((record.client, record.peer), (Origin::Ip(peer), None));
    }
}

/// What is no header, or ends in the middle of one, is reset and reaches no endpoint.
#[test]
fn without_a_header_a_trusted_sender_is_refused() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], trusting);
    let whole = header(ProxyVersion::V2);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PROXY TCP4 192.0.2.7 198.51.100.1 50312 65536\r\n",
        b"PROXY TCP4 192.0.2.7 198.51.100.1 50312 3306\n",
        b"PROXY TCP4",
        &whole[..whole.len() - 1],
        &[&whole[..12], b"\x31"].concat(),
    ] {
        let mut client = world.connect();
        client.write_all(bytes).unwrap();
        let _ = client.shutdown(Shutdown::Write);
        assert_eq!(read_to_reset(&mut client), b"");
        let record = world.next_record();
        assert_eq!(
            (record.reason, record.attempts),
            (Reason::ProxyProtocolError, 0)
        );
    }
}

/// Whoever is in front may look whether we are there: to connect and to go is no fault, nor is a reset.
#[test]
fn to_connect_and_go_is_no_fault() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], trusting);
    drop(world.connect());
    assert_eq!(world.next_record().reason, Reason::ClientClosed);
    reset(world.connect());
    assert_eq!(world.next_record().reason, Reason::ClientClosed);
}

/// A header that does not come in time is none, and the time is for header and first line together.
#[test]
fn a_header_has_the_time_of_the_preread() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| {
        trusting(settings);
        settings.listeners[0].timeouts.preread = Duration::from_millis(50);
        settings.listeners[0].empty_reply = Some(b"what?".as_slice().into());
    });
    let mut silent = world.connect();
    assert_eq!(read_to_reset(&mut silent), b"");
    assert_eq!(world.next_record().reason, Reason::ProxyProtocolError);

    let mut mute = world.connect();
    mute.write_all(&header(ProxyVersion::V1)).unwrap();
    assert_eq!(read_all(&mut mute), b"what?");
}

/// Everybody else's first bytes are their own, even if they are a header: nobody gets another address by it.
#[test]
fn others_headers_are_not_read() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| {
        trust(settings, &["10.0.0.0/8", "::1", "127.0.0.2/32"]);
    });
    for bytes in [header(ProxyVersion::V1), header(ProxyVersion::V2)] {
        let mut client = world.connect();
        let peer = client.local_addr().unwrap();
        assert_eq!(exchange(&mut client, &bytes), bytes);
        let record = world.next_record();
        assert_eq!((record.client, record.peer), (Origin::Ip(peer), None));
    }
}

/// The announced client is what a hash goes by, not the proxy in front.
#[test]
fn the_announced_client_decides_placement() {
    let endpoints: Vec<_> = ["a", "b", "c", "d"].map(Endpoint::naming).into();
    let listed: Vec<_> = endpoints.iter().collect();
    let world = World::with(&listed, |settings| {
        trusting(settings);
        let policy = HashPolicy {
            bounded_load_percent: None,
        };
        settings.clusters[0].spec.balance = Balance::SourceHash(policy);
    });
    let mut seen = std::collections::HashSet::new();
    for number in 0..32 {
        let source = SocketAddr::from(([192, 0, 2, number], 1));
        let said = Header::Tcp(Ends {
            source,
            ..announced()
        });
        let name = exchange(&mut world.connect(), &encode(ProxyVersion::V2, &said));
        let chosen = world.chosen(source, b"").expect("a hash always chooses");
        assert_eq!(world.endpoint(str::from_utf8(&name).unwrap()).id, chosen);
        seen.insert(name);
    }
    assert_eq!(seen.len(), 4);
}

/// An endpoint that a test plays itself.
struct Played {
    listener: TcpListener,
    endpoint: Endpoint,
}

impl Played {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::at("played", listener.local_addr().unwrap());
        Self { listener, endpoint }
    }

    fn accept(&self) -> TcpStream {
        patient(self.listener.accept().unwrap().0)
    }
}

/// What an endpoint is told of a client that connected directly.
fn own_header(version: ProxyVersion, world: &World, client: &TcpStream) -> Vec<u8> {
    let ends = Ends {
        source: client.local_addr().unwrap(),
        destination: world.address(),
    };
    encode(version, &Header::Tcp(ends))
}

/// An endpoint is told at once, before the client has said a word, and nothing else comes with it.
#[test]
fn an_endpoint_is_told_at_once() {
    for version in BOTH {
        let played = Played::new();
        let world = World::with(&[&played.endpoint], telling(version));
        let mut client = world.connect();
        let mut accepted = played.accept();
        let told = own_header(version, &world, &client);
        assert_eq!(read_exactly(&mut accepted, told.len()), told);

        accepted.write_all(b"greeting").unwrap();
        assert_eq!(read_exactly(&mut client, 8), b"greeting");
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut accepted), b"hello");
        drop(accepted);
        let record = world.next_record();
        assert_eq!(record.reason, Reason::Done);
        assert_eq!((record.bytes_up, record.bytes_down), (5, 8));
    }
}

/// What was announced to us goes on as it came, into the other version, too.
#[test]
fn an_announced_client_is_passed_on() {
    for (came, goes) in BOTH
        .into_iter()
        .flat_map(|came| BOTH.map(|goes| (came, goes)))
    {
        let played = Played::new();
        let world = World::with(&[&played.endpoint], |settings| {
            trusting(settings);
            telling(goes)(settings);
        });
        let mut client = world.connect();
        let bytes = [header(came), b"hello".to_vec()].concat();
        client.write_all(&bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let expected = [header(goes), b"hello".to_vec()].concat();
        assert_eq!(read_all(&mut played.accept()), expected);
    }
}

/// Every attempt has a header of its own: an endpoint that is given a replay is told as the first one was.
#[test]
fn a_replay_has_a_header_of_its_own() {
    let played = Played::new();
    let world = World::with(&[&played.endpoint], |settings| {
        telling(ProxyVersion::V1)(settings);
        settings.clusters[0].replay = 64;
    });
    let mut client = world.connect();
    client.write_all(b"hello").unwrap();
    let expected = [
        own_header(ProxyVersion::V1, &world, &client),
        b"hello".to_vec(),
    ]
    .concat();
    let mut first = played.accept();
    assert_eq!(read_exactly(&mut first, expected.len()), expected);
    reset(first);

    let mut second = played.accept();
    assert_eq!(read_exactly(&mut second, expected.len()), expected);
    second.write_all(b"answer").unwrap();
    assert_eq!(read_exactly(&mut client, 6), b"answer");
    drop((client, second));
    assert_eq!(world.next_record().attempts, 2);
}

/// An endpoint that was told, and goes before the client has said a word, has done nothing: another one is tried.
#[test]
fn a_header_alone_can_be_sent_again_without_a_replay() {
    let (played, naming) = (Played::new(), Endpoint::naming("second"));
    let world = World::with(&[&played.endpoint, &naming], telling(ProxyVersion::V2));
    let mut clients: Vec<_> = (0..2).map(|_| world.connect()).collect();
    let mut accepted = played.accept();
    accepted.read_exact(&mut [0; 28]).unwrap();
    drop(accepted);
    for client in &mut clients {
        assert_eq!(read_exactly(client, 6), b"second");
    }
}

/// A Unix client has no address: version 2 says that, with the path it connected to, and version 1 has no words for it.
#[test]
fn a_unix_client_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("front.sock");
    for version in BOTH {
        let played = Played::new();
        let _world = World::with(&[&played.endpoint], |settings| {
            settings.listeners[0].bind = Address::Unix(Arc::from(path.as_path()));
            telling(version)(settings);
        });
        let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let told = read_all(&mut played.accept());
        match version {
            ProxyVersion::V1 => assert_eq!(told, b"PROXY UNKNOWN\r\n"),
            ProxyVersion::V2 => {
                let destination = path.to_str().unwrap().as_bytes();
                assert_eq!(told[12..16], [0x21, 0x31, 0, 216]);
                assert_eq!(told[16..124], [0; 108]);
                assert!(told[124..].starts_with(destination));
            }
        }
    }
}

/// A Unix socket's clients may be trusted as a whole.
#[test]
fn a_unix_client_may_announce() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("front.sock");
    let endpoint = Endpoint::naming("name");
    let world = World::with(&[&endpoint], |settings| {
        settings.listeners[0].bind = Address::Unix(Arc::from(path.as_path()));
        settings.listeners[0].proxy_protocol = Some([Sender::Unix].into());
    });
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.write_all(&header(ProxyVersion::V2)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "name");
    let record = world.next_record();
    assert_eq!(record.client, Origin::Ip(announced().source));
    assert_eq!(record.peer, Some(Origin::Unix));
}
