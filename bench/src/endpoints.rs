//! The endpoints: one thread that accepts and answers all connections. What they answer, a [`Service`] says.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::drive::{Poller, number};

/// Connections that may wait to be accepted.
const BACKLOG_MAX: i32 = 4096;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// What is said on the connections of all endpoints.
pub(crate) trait Service: Send + 'static {
    /// What is known of one connection.
    type State: Default + Send;

    /// What is watched on a new connection.
    const EVENTS: EventFlags;

    /// Something happened to a connection.
    fn serve(
        &mut self,
        connection: &mut Connection<Self::State>,
        event: &Event<'_>,
    ) -> Result<Fate>;
}

/// A connection to an endpoint.
pub(crate) struct Connection<S> {
    pub(crate) stream: TcpStream,
    pub(crate) state: S,
}

/// What happened to a connection, and how to watch it for something else.
pub(crate) struct Event<'a> {
    pub(crate) happened: EventFlags,
    number: usize,
    poller: &'a Poller,
}

impl Event<'_> {
    pub(crate) fn watch(&self, stream: &TcpStream, events: EventFlags) -> Result<()> {
        self.poller.change(stream, self.number, events)
    }
}

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Closed,
}

/// Endpoints at work.
pub(crate) struct Endpoints<S> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<S>>,
}

impl<S: Service> Endpoints<S> {
    pub(crate) fn start(addresses: &[SocketAddr], service: S) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut floor = Floor::open(addresses, service)?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                floor.turn()?;
            }
            Ok(floor.service)
        });
        Ok(Self { stop, thread })
    }

    /// Ends them; returns the service with what it has counted.
    pub(crate) fn stop(self) -> Result<S> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        let ended = ended.map_err(|_| anyhow!("the endpoints panicked"))?;
        ended.context("the endpoints failed")
    }
}

/// Listeners and connections.
struct Floor<S: Service> {
    poller: Poller,
    service: S,
    /// Watched under the numbers before those of connections.
    listeners: Vec<OwnedFd>,
    connections: Slab<Connection<S::State>>,
}

impl<S: Service> Floor<S> {
    fn open(addresses: &[SocketAddr], service: S) -> Result<Self> {
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
            service,
            listeners,
            connections: Slab::new(),
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
        self.poller.add(&stream, number, S::EVENTS)?;
        place.insert(Connection {
            stream,
            state: S::State::default(),
        });
        Ok(())
    }

    fn serve(&mut self, connection: usize, happened: EventFlags) -> Result<()> {
        let event = Event {
            happened,
            number: connection + self.listeners.len(),
            poller: &self.poller,
        };
        let place = &mut self.connections[connection];
        if self.service.serve(place, &event)? == Fate::Closed {
            self.connections.remove(connection);
        }
        Ok(())
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
