//! Probers against sockets of the tests' own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{EndpointId, Weight};
use evenkeel_core::{EndpointSpec, EndpointState, HealthPolicy};
use evenkeel_wire::proxy_protocol::{Ends, Header, Parsed, parse};
use tokio::time::{Instant, sleep};

use super::{OPEN_MAX, Prober, Verdict, visit};
use crate::settings::{
    Check, ExpectAt, HttpCheck, HttpMethod, MysqlCheck, ProbeSettings, ProbeTarget, ProxyVersion,
    SendExpectCheck, Settings, StatusRange, sample,
};
use crate::telemetry::record::SessionRecord;
use crate::{Inheritance, Proxy, SessionSink};

/// Far longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// What MariaDB 10.11 greets with.
const GREETING: &[u8] = b"d\x00\x00\x00\n5.5.5-10.11.19-MariaDB-0+deb12u1\x00\x06\x00\x00\x00Fc?PV@zf\x00\xfe\xf7\x08\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00r*t11DAWt`fa\x00mysql_native_password\x00";
const LOGIN_OK: &[u8] = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00";
const PONG: &[u8] = b"\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00";
const QUIT: &[u8] = b"\x01\x00\x00\x00\x01";

struct Nobody;

impl SessionSink for Nobody {
    fn session_ended(&self, _: SessionRecord) {}
}

/// A prober of a cluster of so many endpoints, all at one address, asked often and with patience.
struct World {
    proxy: Arc<Proxy>,
    prober: Prober,
}

fn world(address: SocketAddr, endpoints: usize, check: Check, timeout: Duration) -> World {
    world_of(settings(address, endpoints, check, timeout))
}

fn world_of(settings: Settings) -> World {
    let inheritance = Inheritance::default();
    let directory = Arc::default();
    let proxy = Proxy::prepare(inheritance, settings, directory, Arc::new(Nobody)).unwrap();
    let proxy = Arc::new(proxy);
    World {
        prober: Prober::new(Arc::clone(&proxy)),
        proxy,
    }
}

impl World {
    /// Waits for the first endpoint's state, and gives what its last probe came to.
    async fn verdict_when(&self, state: EndpointState) -> Verdict {
        let endpoint = self.until("the state", || self.endpoint_in(state)).await;
        let ledger = self.prober.ledger();
        let finding = self.until("the finding", || ledger.last(endpoint)).await;
        finding.verdict.clone()
    }

    fn endpoint_in(&self, state: EndpointState) -> Option<EndpointId> {
        let status = self.proxy.clusters()[0].status(self.proxy.now());
        let endpoint = status.endpoints.first()?;
        (endpoint.state == state).then_some(endpoint.id)
    }

    async fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed() < DEADLINE, "waited in vain: {what}");
            sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Asked every 20 ms.
fn settings(address: SocketAddr, endpoints: usize, check: Check, timeout: Duration) -> Settings {
    let named = |number: usize| EndpointSpec {
        address: address.into(),
        ..sample::endpoint(&format!("e{number}"), 1)
    };
    let mut cluster = sample::cluster("web", (0..endpoints).map(named).collect());
    cluster.spec.health = Some(HealthPolicy { rise: 2, fall: 3 });
    cluster.probe = Some(Arc::new(ProbeSettings {
        check,
        every: Duration::from_millis(20),
        timeout,
        target: ProbeTarget::Endpoint,
        tls: None,
    }));
    Settings {
        listeners: Vec::new(),
        clusters: vec![cluster],
        ..sample::world()
    }
}

fn mysql() -> Check {
    Check::Mysql(MysqlCheck {
        user: Arc::from("check"),
        password: None,
        query: None,
    })
}

/// Waits for a greeting that never comes.
fn silent() -> Check {
    Check::SendExpect(SendExpectCheck {
        send: None,
        expect: Arc::from(&b"hello"[..]),
        at: ExpectAt::Start,
    })
}

fn http() -> Check {
    Check::Http(HttpCheck {
        method: HttpMethod::Get,
        path: Arc::from("/"),
        host: None,
        status: vec![StatusRange {
            first: 200,
            last: 200,
        }],
    })
}

/// Plays a server of MySQL to one client, and gives what the client says last.
fn serve_mysql(client: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    for answer in [GREETING, LOGIN_OK, PONG] {
        client.write_all(answer).unwrap();
        let mut heard = [0; 1024];
        let count = client.read(&mut heard).unwrap();
        said = heard[..count].to_vec();
    }
    said
}

/// A server that hangs before its greeting is found down, on one connection; when it speaks at last, it hears the whole
/// handshake and a goodbye, and is asked anew. Nowhere is a handshake broken off, which such servers count.
#[tokio::test]
async fn a_late_greeting_is_answered_all_the_same() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(address, 1, mysql(), Duration::from_millis(20));
    world.prober.follow();

    let verdict = world.verdict_when(EndpointState::Down).await;
    let reason = verdict.reason().unwrap().to_string();
    assert!(reason.contains("no greeting"), "{reason}");

    server.set_nonblocking(true).unwrap();
    let (mut late, _) = server.accept().unwrap();
    assert!(server.accept().is_err(), "a second connection was made");
    late.set_nonblocking(false).unwrap();
    let served = tokio::task::spawn_blocking(move || {
        let goodbye = serve_mysql(&mut late);
        server.set_nonblocking(false).unwrap();
        // Once down, two in a row bring it back.
        for _ in 0..2 {
            let (mut next, _) = server.accept().unwrap();
            serve_mysql(&mut next);
        }
        goodbye
    });
    assert_eq!(world.verdict_when(EndpointState::Up).await, Verdict::Passed);
    assert_eq!(served.await.unwrap(), QUIT);
}

/// However many endpoints there are, so many connections are open at one time and no more; who is done makes room.
#[tokio::test]
async fn a_bounded_number_is_asked_at_one_time() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(address, 2 * OPEN_MAX, silent(), DEADLINE);
    world.prober.follow();

    let mut open = Vec::new();
    world
        .until("all turns are taken", || {
            open.extend(server.accept().ok());
            (open.len() == OPEN_MAX).then_some(())
        })
        .await;
    assert!(server.accept().is_err(), "one more than are possible");

    open.pop();
    world.until("the next turn", || server.accept().ok()).await;
}

/// An endpoint that answers and does not hang up is judged by its answer, and asked again while it still keeps the connection before.
/// On a machine that stands still the goodbye may end first, so it gets some chances.
#[tokio::test]
async fn an_endpoint_that_does_not_hang_up_holds_up_nobody() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = world(server.local_addr().unwrap(), 1, http(), DEADLINE);
    world.prober.follow();

    let asked_meanwhile = tokio::task::spawn_blocking(move || {
        let mut last = answer_and_keep(&server);
        (0..10).any(|_| {
            let next = answer_and_keep(&server);
            is_held(&std::mem::replace(&mut last, next))
        })
    });
    assert!(
        asked_meanwhile.await.unwrap(),
        "each goodbye was waited for"
    );
    assert_eq!(world.verdict_when(EndpointState::Up).await, Verdict::Passed);
}

fn answer_and_keep(server: &TcpListener) -> TcpStream {
    let (mut probe, _) = server.accept().unwrap();
    assert!(probe.read(&mut [0; 1024]).unwrap() > 0);
    probe.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    probe
}

/// The first byte for a socket that is closed brings the reset on which the second fails.
fn is_held(mut stream: &TcpStream) -> bool {
    (0..2).all(|_| stream.write_all(b"x").is_ok())
}

/// Probes of an endpoint that is told whom a connection is for say that it is for nobody else: version 2 in so many words, version 1
/// by their own ends.
#[tokio::test]
async fn a_probe_speaks_the_proxy_protocol_too() {
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut settings = settings(address, 1, silent(), DEADLINE);
        settings.clusters[0].proxy_protocol = Some(version);
        let mut world = world_of(settings);
        world.prober.follow();

        let heard = tokio::task::spawn_blocking(move || {
            let (mut probe, peer) = server.accept().unwrap();
            let mut heard = [0; 108];
            let count = probe.read(&mut heard).unwrap();
            (heard[..count].to_vec(), peer)
        });
        let (heard, source) = heard.await.unwrap();
        let destination = address;
        let ends = Header::Tcp(Ends {
            source,
            destination,
        });
        let expected = match version {
            ProxyVersion::V1 => ends,
            ProxyVersion::V2 => Header::Local,
        };
        assert_eq!(parse(&heard), Ok(Parsed::Whole(expected, heard.len())));
    }
}

/// An endpoint that a reload removes is no longer asked, and nothing of it is kept.
#[tokio::test]
async fn a_removed_endpoint_is_forgotten() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut world = world(address, 2, Check::Tcp, DEADLINE);
    world.prober.follow();
    let endpoint = world
        .until("it is up", || world.endpoint_in(EndpointState::Up))
        .await;
    let ledger = world.prober.ledger();
    assert!(ledger.last(endpoint).is_some());

    let mut fewer = settings(address, 2, Check::Tcp, DEADLINE);
    fewer.clusters[0].spec.endpoints.remove(0);
    world.proxy.open();
    world.proxy.reload(fewer).unwrap();
    assert!(world.prober.is_behind());
    world.prober.follow();

    assert!(ledger.last(endpoint).is_none());
    assert!(!world.prober.is_behind());
}

/// An endpoint that probes have found down stays so through a reload that changes its weight: it gets nothing, though it has not been
/// asked since.
#[tokio::test]
async fn fault_1_a_reload_keeps_what_probes_know() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut world = world(address, 1, Check::Tcp, DEADLINE);
    world.prober.follow();
    world.verdict_when(EndpointState::Down).await;
    world.prober.end().await;

    let mut heavier = settings(address, 1, Check::Tcp, DEADLINE);
    heavier.clusters[0].spec.endpoints[0].weight = Weight::MAX;
    world.proxy.open();
    world.proxy.reload(heavier).unwrap();

    assert!(world.endpoint_in(EndpointState::Down).is_some());
}

/// A knock leaves nothing in the backlog: the endpoint's program is not even woken. The kernel may acknowledge all the same
/// when this machine is slow, so a few are forgiven.
#[tokio::test]
async fn a_knock_is_not_seen_by_the_program() {
    const KNOCKS: usize = 50;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().into();
    for _ in 0..KNOCKS {
        assert_eq!(visit::knock(&address).await, Verdict::Passed);
    }
    server.set_nonblocking(true).unwrap();
    let seen = std::iter::from_fn(|| server.accept().ok()).count();
    assert!(seen < KNOCKS / 2, "{seen} of {KNOCKS} were seen");

    drop(server);
    let refused = Verdict::failed("connection refused");
    assert_eq!(visit::knock(&address).await, refused);
}
