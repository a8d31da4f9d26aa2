//! The world the tests live in: a proxy for HTTP, endpoints that keep what they are sent, clients, and the records of exchanges.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use evenkeel_proxy::settings::{HttpSettings, Protocol, Settings};
use evenkeel_proxy::telemetry::record::{ExchangeRecord, SessionRecord};
use evenkeel_proxy::{Proxy, SessionSink};

use crate::settings::{PATIENCE, settings};

struct Records(Sender<ExchangeRecord>);

impl SessionSink for Records {
    fn session_ended(&self, _: SessionRecord) {}

    fn exchange_ended(&self, record: ExchangeRecord) {
        // A test that is over reads no more of them.
        let _ = self.0.send(record);
    }
}

/// A running proxy in front of one cluster.
pub(crate) struct World {
    pub(crate) proxy: Proxy,
    records: Receiver<ExchangeRecord>,
}

impl World {
    pub(crate) fn of(endpoints: &[&Endpoint]) -> Self {
        Self::with(endpoints, |_, _| ())
    }

    /// The same, after `change` has had the settings, and those for HTTP.
    pub(crate) fn with(
        endpoints: &[&Endpoint],
        change: impl FnOnce(&mut Settings, &mut HttpSettings),
    ) -> Self {
        let addresses: Vec<_> = endpoints
            .iter()
            .map(|endpoint| (endpoint.name, endpoint.address))
            .collect();
        let mut settings = settings(&addresses);
        let mut http = HttpSettings::default();
        change(&mut settings, &mut http);
        settings.listeners[0].protocol = Protocol::Http(Arc::new(http));
        let (sender, records) = channel();
        let proxy = Proxy::start(settings, Arc::new(Records(sender))).unwrap();
        Self { proxy, records }
    }

    pub(crate) fn connect(&self) -> Client {
        let address = self.proxy.listeners()[0].address.ip().unwrap();
        Client(patient(TcpStream::connect(address).unwrap()))
    }

    /// The answer to one request on a connection of its own, up to the end of the stream.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut client = self.connect();
        client.send(request);
        client.rest()
    }

    /// The record of the next exchange that ends.
    pub(crate) fn next_record(&self) -> ExchangeRecord {
        self.records
            .recv_timeout(PATIENCE)
            .expect("an exchange ends")
    }
}

pub(crate) fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A client's connection.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Everything up to the end of the stream.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).expect("an end of stream");
        String::from_utf8(bytes).unwrap()
    }

    /// One answer: a head, and a body by its `Content-Length` or in chunks.
    pub(crate) fn answer(&mut self) -> Message {
        Message::read(&mut self.0).expect("an answer")
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }
}

/// A message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) head: String,
    /// As it came, chunks and all.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// `None` at the end of the stream.
    pub(crate) fn read(stream: &mut TcpStream) -> Option<Self> {
        let head = read_until(stream, b"\r\n\r\n")?;
        let head = String::from_utf8(head).unwrap();
        let body = match header(&head, "content-length") {
            Some(length) => {
                let mut body = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut body).ok()?;
                body
            }
            None if header(&head, "transfer-encoding").is_some() => read_chunks(stream)?,
            None => Vec::new(),
        };
        Some(Self { head, body })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn status(&self) -> u16 {
        self.head[9..12].parse().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn read_until(stream: &mut TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => return None,
        }
    }
    Some(bytes)
}

fn read_chunks(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_until(stream, b"\r\n")?;
        body.extend_from_slice(&line);
        let size = std::str::from_utf8(&line).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).ok()?;
        body.extend_from_slice(&chunk);
    }
    loop {
        let line = read_until(stream, b"\r\n")?;
        body.extend_from_slice(&line);
        if line == b"\r\n" {
            return Some(body);
        }
    }
}

/// An endpoint: a listening socket whose connections are each served by a thread.
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Receiver<Message>,
}

/// What an endpoint does with a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
}

impl Endpoint {
    /// Serves every connection by `serve`, which reports the requests it has read.
    pub(crate) fn serving(
        name: &'static str,
        serve: impl Fn(TcpStream, &Sender<Message>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let (report, requests) = channel();
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                counter.fetch_add(1, Ordering::SeqCst);
                let (serve, report) = (Arc::clone(&serve), report.clone());
                thread::spawn(move || serve(patient(stream), &report));
            }
        });
        Self {
            name,
            address,
            connections,
            requests,
        }
    }

    /// Answers every request with these bytes.
    pub(crate) fn answering(name: &'static str, answer: &'static str, then: Then) -> Self {
        Self::serving(name, move |mut stream, report| {
            while let Some(request) = Message::read(&mut stream) {
                let _ = report.send(request);
                if stream.write_all(answer.as_bytes()).is_err() || then == Then::Close {
                    return;
                }
            }
        })
    }

    /// Says hello to everybody, and keeps connections.
    pub(crate) fn hello(name: &'static str) -> Self {
        Self::answering(name, HELLO, Then::Keep)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn next_request(&self) -> Message {
        self.requests.recv_timeout(PATIENCE).expect("a request")
    }

    /// Requests that have come and nobody has asked for yet.
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.requests.try_iter().collect()
    }
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
