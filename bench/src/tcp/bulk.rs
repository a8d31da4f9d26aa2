//! Streams from the endpoint to the client, as fast as they come.
//!
//! A client asks with one byte, reads until the window has closed, asks the endpoint to stop with one byte more, and reads
//! to the end, so that both sides have counted the same stream.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};
use rustix::event::epoll::EventFlags;

use super::Bytes;
use crate::connect::connect_and_wait;
use crate::drive::{Poller, Traffic, drive};
use crate::pattern::{PIECE_MAX, Pattern};
use crate::plan::{Figures, Plan};
use crate::window::Meter;

/// What starts a stream, and what ends it.
const REQUEST: [u8; 1] = *b"?";
const STOP: [u8; 1] = *b".";

pub(super) fn run(plan: &Plan) -> Result<(Figures, Bytes)> {
    let poller = Poller::new()?;
    let mut load = Bulk::open(plan, &poller)?;
    let mut figures = drive(plan, &poller, &mut load)?;
    figures.connections = load.connections.len() as u64;
    Ok((figures, load.bytes()))
}

struct Bulk {
    connections: Vec<Connection>,
    pattern: Pattern,
    buffer: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    received: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Streaming,
    Stopping,
    Ended,
}

impl Bulk {
    fn open(plan: &Plan, poller: &Poller) -> Result<Self> {
        let mut connections = Vec::with_capacity(plan.connections);
        for number in 0..plan.connections {
            let mut stream = connect_and_wait(plan.target)?;
            stream.write_all(&REQUEST)?;
            stream.set_nonblocking(true)?;
            poller.add(&stream, number, EventFlags::IN)?;
            connections.push(Connection {
                stream,
                received: 0,
                state: State::Streaming,
            });
        }
        Ok(Self {
            connections,
            pattern: Pattern::new(),
            buffer: vec![0; PIECE_MAX],
        })
    }

    fn bytes(&self) -> Bytes {
        let asked = self.connections.len() * (REQUEST.len() + STOP.len());
        Bytes {
            sent: asked as u64,
            received: self
                .connections
                .iter()
                .map(|connection| connection.received)
                .sum(),
        }
    }
}

impl Traffic for Bulk {
    /// One read for each event: the other streams have their turn.
    fn ready(&mut self, number: usize, _poller: &Poller, meter: &mut Meter) -> Result<()> {
        let connection = self
            .connections
            .get_mut(number)
            .context("an event of no connection")?;
        match connection.stream.read(&mut self.buffer) {
            Ok(0) => connection.close(),
            Ok(count) => {
                self.pattern
                    .check(connection.received, &self.buffer[..count])?;
                connection.received += count as u64;
                meter.add(count as u64);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error).context("cannot receive"),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.connections.iter_mut().try_for_each(Connection::stop)
    }

    fn under_way(&self) -> usize {
        let is_open = |connection: &&Connection| connection.state != State::Ended;
        self.connections.iter().filter(is_open).count()
    }
}

impl Connection {
    fn stop(&mut self) -> Result<()> {
        self.state = State::Stopping;
        self.stream.write_all(&STOP).context("cannot send")
    }

    /// The end of the stream must have been asked for. Replacing the socket's events is not worth it: the load is about to end.
    fn close(&mut self) -> Result<()> {
        if self.state == State::Streaming {
            bail!("the stream ended before it was asked to");
        }
        self.state = State::Ended;
        Ok(())
    }
}
