//! What the endpoints of the HTTP bench do: they take a request whole, and answer it with as many bytes as it asks for.

use std::io::{self, ErrorKind, Read};

use anyhow::{Context, Result, bail};
use rustix::event::epoll::EventFlags;

use super::incoming::{Head, Incoming, parse_request};
use super::outgoing::{Outgoing, Sent, Template};
use super::{Tally, UNCOUNTED};
use crate::endpoints::{self, Event, Fate, Service};
use crate::pattern::{PIECE_MAX, Pattern};

pub(super) struct Answering {
    /// Rendered when they are asked for first: a load has one, probes another.
    templates: Vec<Template>,
    pattern: Pattern,
    buffer: Vec<u8>,
    pub(super) tally: Tally,
}

#[derive(Default)]
pub(super) struct State {
    incoming: Incoming,
    /// The place of its template, and the answer.
    outgoing: Option<(usize, Outgoing)>,
}

type Connection = endpoints::Connection<State>;

impl Service for Answering {
    type State = State;
    const EVENTS: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::ET);

    /// Nobody asks again before the answer has come: what is left to read after a request is another event.
    fn serve(&mut self, connection: &mut Connection, _event: &Event<'_>) -> Result<Fate> {
        if connection.state.outgoing.is_none() {
            match self.receive(connection)? {
                Received::Request(head) => self.begin(&mut connection.state, head),
                Received::Nothing => return Ok(Fate::Open),
                Received::End => return Ok(Fate::Closed),
            }
        }
        self.send(connection)?;
        Ok(Fate::Open)
    }
}

/// What a connection has brought.
enum Received {
    Request(Head),
    Nothing,
    End,
}

impl Answering {
    pub(super) fn new() -> Self {
        Self {
            templates: Vec::new(),
            pattern: Pattern::new(),
            buffer: vec![0; PIECE_MAX],
            tally: Tally::default(),
        }
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<Received> {
        let incoming = &mut connection.state.incoming;
        loop {
            let count = match connection.stream.read(&mut self.buffer) {
                Ok(0) => return ended(incoming),
                Ok(count) => count,
                Err(error) => return cannot(error, incoming),
            };
            let bytes = &self.buffer[..count];
            if let Some(head) = incoming.take(bytes, &self.pattern, parse_request)? {
                return Ok(Received::Request(head));
            }
        }
    }

    fn begin(&mut self, state: &mut State, head: Head) {
        if head.number != UNCOUNTED {
            self.tally.exchanges += 1;
            self.tally.asked += head.body;
            self.tally.answered += head.asked_for;
        }
        let place = self.template(head.asked_for);
        state.outgoing = Some((place, Outgoing::new(head.number)));
    }

    fn template(&mut self, body: u64) -> usize {
        let mut templates = self.templates.iter();
        templates
            .position(|template| template.body() == body)
            .unwrap_or_else(|| {
                self.templates.push(Template::answer(body));
                self.templates.len() - 1
            })
    }

    fn send(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some((place, outgoing)) = &mut connection.state.outgoing {
            let template = &mut self.templates[*place];
            let sent = template
                .send(outgoing, &self.pattern, &mut connection.stream)
                .context("cannot answer")?;
            if sent == Sent::Whole {
                connection.state.outgoing = None;
            }
        }
        Ok(())
    }
}

/// A connection may end between two requests.
fn ended(incoming: &Incoming) -> Result<Received> {
    if !incoming.is_awaited() {
        bail!("a request was broken off");
    }
    Ok(Received::End)
}

/// It may also be reset there, as probes and closing proxies do.
fn cannot(error: io::Error, incoming: &Incoming) -> Result<Received> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(Received::Nothing),
        ErrorKind::ConnectionReset if incoming.is_awaited() => Ok(Received::End),
        _ => Err(error).context("cannot receive"),
    }
}
