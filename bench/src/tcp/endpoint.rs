//! The endpoints: one thread that answers all connections, by sending back what it gets or by sending without end.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use super::Bytes;
use super::pattern::{PIECE_MAX, Pattern};
use crate::drive::{Poller, number};

/// Connections that may wait to be accepted.
const BACKLOG_MAX: i32 = 4096;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// What an endpoint does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Sends back what it gets, until the client's end of stream.
    Echo,
    /// Sends from the first byte it gets to the second, then closes.
    Stream,
}

/// Endpoints at work.
pub(super) struct Endpoints {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Bytes>>,
}

impl Endpoints {
    pub(super) fn start(addresses: &[SocketAddr], answer: Answer) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut service = Service::new(addresses, answer)?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                service.turn()?;
            }
            Ok(service.bytes)
        });
        Ok(Self { stop, thread })
    }

    /// Ends them; returns what they had counted.
    pub(super) fn stop(self) -> Result<Bytes> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        let ended = ended.map_err(|_| anyhow!("the endpoints panicked"))?;
        ended.context("the endpoints failed")
    }
}

struct Service {
    poller: Poller,
    answer: Answer,
    /// Watched under the numbers before those of connections.
    listeners: Vec<OwnedFd>,
    connections: Slab<Connection>,
    pattern: Pattern,
    buffer: Vec<u8>,
    bytes: Bytes,
}

struct Connection {
    stream: TcpStream,
    /// Whether a byte has come: a probe ends or resets its connection without one.
    is_used: bool,
    /// How far its stream has got; none before the client has asked.
    streamed: Option<u64>,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Closed,
}

impl Service {
    fn new(addresses: &[SocketAddr], answer: Answer) -> Result<Self> {
        let poller = Poller::new()?;
        let mut listeners = Vec::with_capacity(addresses.len());
        for (number, address) in addresses.iter().enumerate() {
            let listener =
                listen(address).with_context(|| format!("cannot listen on {address}"))?;
            poller.add(&listener, number, EventFlags::IN)?;
            listeners.push(listener);
        }
        Ok(Self {
            poller,
            answer,
            listeners,
            connections: Slab::new(),
            pattern: Pattern::new(),
            buffer: vec![0; PIECE_MAX],
            bytes: Bytes::default(),
        })
    }

    /// A descriptor has one event in a batch at most, so that a new connection never sees one of its predecessor's.
    fn turn(&mut self) -> Result<()> {
        for event in &self.poller.wait()? {
            match number(event).checked_sub(self.listeners.len()) {
                None => self.accept(number(event))?,
                Some(connection) => self.serve(connection, event.flags)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> Result<()> {
        let stream: TcpStream = match net::accept_with(&self.listeners[listener], FLAGS) {
            Ok(stream) => stream.into(),
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error).context("cannot accept"),
        };
        let place = self.connections.vacant_entry();
        let number = place.key() + self.listeners.len();
        self.poller.add(&stream, number, EventFlags::IN)?;
        place.insert(Connection {
            stream,
            is_used: false,
            streamed: None,
        });
        Ok(())
    }

    fn serve(&mut self, connection: usize, happened: EventFlags) -> Result<()> {
        let fate = match self.answer {
            Answer::Echo => self.echo(connection),
            Answer::Stream if happened == EventFlags::OUT => self.stream(connection),
            Answer::Stream => self.obey(connection),
        }?;
        if fate == Fate::Closed {
            self.connections.remove(connection);
        }
        Ok(())
    }

    /// A message is so short that a socket without room for it is a fault.
    fn echo(&mut self, connection: usize) -> Result<Fate> {
        let count = self.receive(connection)?;
        if count == 0 {
            return Ok(Fate::Closed);
        }
        let stream = &mut self.connections[connection].stream;
        let sent = stream
            .write(&self.buffer[..count])
            .context("cannot answer")?;
        if sent != count {
            bail!("only {sent} of {count} bytes could be sent back");
        }
        self.bytes.sent += sent as u64;
        Ok(Fate::Open)
    }

    /// The first byte starts the stream, the second stops it.
    fn obey(&mut self, connection: usize) -> Result<Fate> {
        if self.receive(connection)? == 0 {
            if self.connections[connection].is_used {
                bail!("a client left its stream");
            }
            return Ok(Fate::Closed);
        }
        let number = connection + self.listeners.len();
        let connection = &mut self.connections[connection];
        if connection.streamed.is_some() {
            return Ok(Fate::Closed);
        }
        connection.streamed = Some(0);
        self.poller
            .change(&connection.stream, number, EventFlags::IN | EventFlags::OUT)?;
        Ok(Fate::Open)
    }

    /// One piece for each event: the other streams have their turn.
    fn stream(&mut self, connection: usize) -> Result<Fate> {
        let connection = &mut self.connections[connection];
        let place = connection.streamed.get_or_insert(0);
        match connection.stream.write(self.pattern.piece(*place)) {
            Ok(count) => {
                *place += count as u64;
                self.bytes.sent += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot stream"),
        }
        Ok(Fate::Open)
    }

    /// Bytes received into the buffer; 0 at the end of the stream, and where a probe resets it.
    fn receive(&mut self, connection: usize) -> Result<usize> {
        let connection = &mut self.connections[connection];
        let count = match connection.stream.read(&mut self.buffer) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !connection.is_used => 0,
            read => read.context("cannot receive")?,
        };
        connection.is_used |= count > 0;
        self.bytes.received += count as u64;
        Ok(count)
    }
}

/// What is set on a listening socket, the accepted ones inherit.
fn listen(address: &SocketAddr) -> Result<OwnedFd> {
    let family = AddressFamily::INET;
    let socket = net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, address)?;
    net::listen(&socket, BACKLOG_MAX)?;
    Ok(socket)
}
