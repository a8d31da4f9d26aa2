//! A client: one connection, one exchange at a time, and what all clients of a load have in common.

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};

use super::channel::{Channel, Security};
use super::incoming::{Head, Incoming, parse_answer};
use super::outgoing::{Outgoing, Sent, Template};
use super::{Tally, UNCOUNTED};
use crate::connect::{self, connect_and_wait};
use crate::pattern::{PIECE_MAX, Pattern};
use crate::plan::HttpLoad;

/// What all clients of a load share.
pub(super) struct Clients {
    target: SocketAddr,
    security: Security,
    answer_bytes: u64,
    request: Template,
    pattern: Pattern,
    buffer: Vec<u8>,
    /// Exchanges begun; [`Clients::wait_until_served`] does not count.
    pub(super) tally: Tally,
}

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Complete,
    Incomplete,
}

/// One connection.
pub(super) struct Client {
    pub(super) channel: Channel,
    number: u64,
    request: Request,
    answer: Incoming,
}

/// What is left of the request.
enum Request {
    Sending(Outgoing),
    Sent,
}

impl Clients {
    pub(super) fn new(target: SocketAddr, load: HttpLoad, security: Security) -> Self {
        Self {
            target,
            security,
            answer_bytes: load.answer_bytes,
            request: Template::request(load.request, load.answer_bytes),
            pattern: Pattern::new(),
            buffer: vec![0; PIECE_MAX],
            tally: Tally::default(),
        }
    }

    /// A connection that waits for what it asks for.
    pub(super) fn connect(&self) -> Result<Client> {
        let stream = connect_and_wait(self.target)?;
        Ok(Client::new(self.security.over(stream)?))
    }

    /// A connection that is not waited for: its first event tells that it stands.
    pub(super) fn begin_to_connect(&self) -> Result<Client> {
        let stream = connect::begin(self.target).context("cannot connect")?;
        Ok(Client::new(self.security.over(stream)?))
    }

    /// Begins the next exchange on a connection.
    pub(super) fn begin(&mut self, client: &mut Client) -> Result<()> {
        self.tally.exchanges += 1;
        self.tally.asked += self.request.body();
        self.tally.answered += self.answer_bytes;
        client.ask(self.tally.exchanges);
        self.send(client)
    }

    /// Goes on with the exchange of a connection to which something happened.
    pub(super) fn advance(&mut self, client: &mut Client) -> Result<Progress> {
        self.send(client)?;
        self.receive(client)
    }

    /// A whole exchange on a connection that waits.
    pub(super) fn complete(&mut self, client: &mut Client) -> Result<()> {
        self.begin(client)?;
        self.expect_answer(client)
    }

    fn expect_answer(&mut self, client: &mut Client) -> Result<()> {
        match self.receive(client)? {
            Progress::Complete => Ok(()),
            Progress::Incomplete => bail!("no answer"),
        }
    }

    fn exchange_once(&mut self) -> Result<()> {
        let mut client = self.connect()?;
        client.ask(UNCOUNTED);
        self.send(&mut client)?;
        self.expect_answer(&mut client)
    }

    fn send(&mut self, client: &mut Client) -> Result<()> {
        if let Request::Sending(outgoing) = &mut client.request {
            let sent = self
                .request
                .send(outgoing, &self.pattern, &mut client.channel)
                .context("cannot send")?;
            if sent == Sent::Whole {
                client.request = Request::Sent;
            }
        }
        Ok(())
    }

    /// Nothing follows an answer: what is left to read when it is whole is another event, and a fault.
    fn receive(&mut self, client: &mut Client) -> Result<Progress> {
        loop {
            let count = match client.channel.read(&mut self.buffer) {
                Ok(0) => bail!("the connection was closed before the answer was complete"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Progress::Incomplete);
                }
                Err(error) => return Err(error).context("cannot receive"),
            };
            let bytes = &self.buffer[..count];
            if let Some(head) = client.answer.take(bytes, &self.pattern, parse_answer)? {
                self.check(client, head)?;
                return Ok(Progress::Complete);
            }
        }
    }

    /// The body has been checked against the number that the answer itself says.
    fn check(&self, client: &Client, head: Head) -> Result<()> {
        let expected = Head {
            number: client.number,
            body: self.answer_bytes,
            asked_for: 0,
        };
        if head != expected {
            bail!("a wrong answer: {head:?} instead of {expected:?}");
        }
        if !matches!(client.request, Request::Sent) {
            bail!("exchange {} was answered before it was sent", client.number);
        }
        Ok(())
    }
}

/// An exchange that does not count, as often as it takes.
pub(super) fn wait_until_served(clients: &mut Clients) -> Result<()> {
    connect::wait_until_served(|| clients.exchange_once())
}

impl Client {
    const fn new(channel: Channel) -> Self {
        Self {
            channel,
            number: UNCOUNTED,
            request: Request::Sent,
            answer: Incoming::Awaited,
        }
    }

    const fn ask(&mut self, number: u64) {
        self.number = number;
        self.request = Request::Sending(Outgoing::new(number));
    }
}
