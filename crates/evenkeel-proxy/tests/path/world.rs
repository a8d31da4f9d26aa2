//! The world the tests live in: a proxy, endpoints that do what a test says, clients, and the records of ended sessions.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use evenkeel_core::EndpointStatus;
use evenkeel_core::units::{EndpointId, Weight};
use evenkeel_proxy::settings::{FailureReply, Settings};
use evenkeel_proxy::telemetry::record::SessionRecord;
use evenkeel_proxy::{AskedSession, Proxy, SessionSink};
use rustix::net::sockopt;

use crate::settings;
pub(crate) use crate::settings::PATIENCE;

/// Records of ended sessions, in the order in which they ended.
struct Records(Sender<SessionRecord>);

impl SessionSink for Records {
    fn session_ended(&self, record: SessionRecord) {
        // A test that is over reads no more of them.
        let _ = self.0.send(record);
    }
}

/// A running proxy in front of one cluster.
pub(crate) struct World {
    pub(crate) proxy: Proxy,
    records: Receiver<SessionRecord>,
}

impl World {
    /// A proxy with two workers in front of these endpoints, in round robin.
    pub(crate) fn of(endpoints: &[&Endpoint]) -> Self {
        Self::with(endpoints, |_| ())
    }

    /// The same, after `change` has had the settings.
    pub(crate) fn with(endpoints: &[&Endpoint], change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings(endpoints);
        change(&mut settings);
        let (sender, records) = channel();
        let proxy = Proxy::start(settings, Arc::new(Records(sender))).unwrap();
        Self { proxy, records }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.proxy.listeners()[0].address.ip().unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        patient(TcpStream::connect(self.address()).unwrap())
    }

    /// The record of the next session that ends.
    pub(crate) fn next_record(&self) -> SessionRecord {
        self.records.recv_timeout(PATIENCE).expect("a session ends")
    }

    /// Who would get a session from there that begins with these bytes; `None` if no endpoint is chosen.
    pub(crate) fn chosen(&self, from: SocketAddr, first_bytes: &[u8]) -> Option<EndpointId> {
        let asked = AskedSession {
            listener: "front",
            client: from.into(),
            first_bytes,
            server_name: None,
        };
        let answer = self.proxy.route(&asked)?;
        answer.goal?.explanation.chosen
    }

    pub(crate) fn endpoint(&self, name: &str) -> EndpointStatus {
        let status = self.proxy.clusters()[0].status(self.proxy.now());
        status
            .endpoints
            .into_iter()
            .find(|endpoint| &*endpoint.name == name)
            .expect("an endpoint of that name")
    }
}

pub(crate) fn settings(endpoints: &[&Endpoint]) -> Settings {
    let addresses: Vec<_> = endpoints
        .iter()
        .map(|endpoint| (endpoint.name, endpoint.address))
        .collect();
    let mut settings = settings::settings(&addresses);
    for (spec, endpoint) in settings.clusters[0]
        .spec
        .endpoints
        .iter_mut()
        .zip(endpoints)
    {
        spec.weight = Weight::new(endpoint.weight).unwrap();
        spec.max_connections = endpoint.max_connections.and_then(NonZeroU32::new);
    }
    settings
}

/// What the client of a failed session is told in these tests.
pub(crate) fn text(reply: &str) -> FailureReply {
    FailureReply::Text(reply.as_bytes().into())
}

/// An endpoint: a listening socket whose connections are each served by a thread.
pub(crate) struct Endpoint {
    name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) weight: u32,
    pub(crate) max_connections: Option<u32>,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves every connection by `serve`.
    pub(crate) fn serving(
        name: &'static str,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = Arc::new(AtomicBool::new(false));
        let acceptor = thread::spawn({
            let stopping = Arc::clone(&stopping);
            move || accept(&listener, &stopping, &Arc::new(serve))
        });
        Self {
            name,
            address,
            weight: 1,
            max_connections: None,
            stopping,
            acceptor: Some(acceptor),
        }
    }

    /// Answers everything with the same bytes, until the client ends.
    pub(crate) fn echoing(name: &'static str) -> Self {
        Self::serving(name, |mut stream| {
            let mut reader = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut reader, &mut stream);
        })
    }

    /// Says its name, waits for the client's end, and ends.
    pub(crate) fn naming(name: &'static str) -> Self {
        Self::serving(name, move |mut stream| {
            let _ = stream.write_all(name.as_bytes());
            let _ = stream.read_to_end(&mut Vec::new());
        })
    }

    /// Nobody listens there.
    pub(crate) fn refusing(name: &'static str) -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        Self::at(name, address)
    }

    /// At an address that a test takes care of itself.
    pub(crate) fn at(name: &'static str, address: SocketAddr) -> Self {
        let stopping = Arc::new(AtomicBool::new(true));
        Self {
            name,
            address,
            weight: 1,
            max_connections: None,
            stopping,
            acceptor: None,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            // Wakes the acceptor.
            let _ = TcpStream::connect(self.address);
            let _ = acceptor.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    stopping: &AtomicBool,
    serve: &Arc<impl Fn(TcpStream) + Send + Sync + 'static>,
) {
    for stream in listener.incoming() {
        if stopping.load(Ordering::Acquire) {
            return;
        }
        let (serve, stream) = (Arc::clone(serve), patient(stream.unwrap()));
        thread::spawn(move || serve(stream));
    }
}

/// A stream on which nothing waits for ever.
pub(crate) fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Bytes that any shift, loss or repetition changes: each seed has its own.
pub(crate) fn bytes_of(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Everything up to the end of stream.
pub(crate) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the stream ends");
    bytes
}

/// Everything up to a reset, which must come.
pub(crate) fn read_to_reset(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let error = stream
        .read_to_end(&mut bytes)
        .expect_err("the stream is reset, not ended");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    bytes
}

pub(crate) fn read_exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("so many bytes come");
    bytes
}

/// Sends everything, ends the stream and reads the answer to its end.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    read_all(stream)
}

/// Closes with a reset.
pub(crate) fn reset(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Two byte strings are the same; says where they differ, not what they are.
pub(crate) fn assert_same(got: &[u8], wanted: &[u8]) {
    let differ = got
        .iter()
        .zip(wanted)
        .position(|(got, wanted)| got != wanted);
    assert!(
        differ.is_none() && got.len() == wanted.len(),
        "{} bytes of {}, first different at {differ:?}",
        got.len(),
        wanted.len()
    );
}

/// What came is the beginning of what was sent.
pub(crate) fn assert_prefix(got: &[u8], wanted: &[u8]) {
    assert!(
        got.len() <= wanted.len(),
        "{} bytes of {}",
        got.len(),
        wanted.len()
    );
    assert_same(got, &wanted[..got.len()]);
}

/// Waits until something that can be seen is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never came: {what}");
        thread::park_timeout(Duration::from_millis(1));
    }
}
