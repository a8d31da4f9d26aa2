//! What the endpoints of the TCP bench do: they send back what they get, or send without end.

use std::io::{ErrorKind, Read, Write};

use anyhow::{Context, Result, bail};
use rustix::event::epoll::EventFlags;

use super::Bytes;
use crate::endpoints::{self, Event, Fate, Service};
use crate::pattern::{PIECE_MAX, Pattern};

/// What an endpoint does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Sends back what it gets, until the client's end of stream.
    Echo,
    /// Sends from the first byte it gets to the second, then closes.
    Stream,
}

pub(super) struct Answering {
    answer: Answer,
    pattern: Pattern,
    buffer: Vec<u8>,
    pub(super) bytes: Bytes,
}

#[derive(Default)]
pub(super) struct State {
    /// Whether a byte has come: a probe ends or resets its connection without one.
    is_used: bool,
    /// How far its stream has got; none before the client has asked.
    streamed: Option<u64>,
}

type Connection = endpoints::Connection<State>;

impl Service for Answering {
    type State = State;
    const EVENTS: EventFlags = EventFlags::IN;

    fn serve(&mut self, connection: &mut Connection, event: &Event<'_>) -> Result<Fate> {
        match self.answer {
            Answer::Echo => self.echo(connection),
            Answer::Stream if event.happened == EventFlags::OUT => self.stream(connection),
            Answer::Stream => self.obey(connection, event),
        }
    }
}

impl Answering {
    pub(super) fn new(answer: Answer) -> Self {
        Self {
            answer,
            pattern: Pattern::new(),
            buffer: vec![0; PIECE_MAX],
            bytes: Bytes::default(),
        }
    }

    /// A message is so short that a socket without room for it is a fault.
    fn echo(&mut self, connection: &mut Connection) -> Result<Fate> {
        let count = self.receive(connection)?;
        if count == 0 {
            return Ok(Fate::Closed);
        }
        let sent = connection
            .stream
            .write(&self.buffer[..count])
            .context("cannot answer")?;
        if sent != count {
            bail!("only {sent} of {count} bytes could be sent back");
        }
        self.bytes.sent += sent as u64;
        Ok(Fate::Open)
    }

    /// The first byte starts the stream, the second stops it.
    fn obey(&mut self, connection: &mut Connection, event: &Event<'_>) -> Result<Fate> {
        if self.receive(connection)? == 0 {
            if connection.state.is_used {
                bail!("a client left its stream");
            }
            return Ok(Fate::Closed);
        }
        if connection.state.streamed.is_some() {
            return Ok(Fate::Closed);
        }
        connection.state.streamed = Some(0);
        event.watch(&connection.stream, EventFlags::IN | EventFlags::OUT)?;
        Ok(Fate::Open)
    }

    /// One piece for each event: the other streams have their turn.
    fn stream(&mut self, connection: &mut Connection) -> Result<Fate> {
        let place = connection.state.streamed.get_or_insert(0);
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
    fn receive(&mut self, connection: &mut Connection) -> Result<usize> {
        let is_used = &mut connection.state.is_used;
        let count = match connection.stream.read(&mut self.buffer) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !*is_used => 0,
            read => read.context("cannot receive")?,
        };
        *is_used |= count > 0;
        self.bytes.received += count as u64;
        Ok(count)
    }
}
