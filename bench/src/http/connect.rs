//! A connection for every exchange: connect, one exchange, close, and again. With TLS, that is a full handshake for each.
//!
//! The client closes first, as clients do, and so keeps the connection's `TIME_WAIT`.

use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::epoll::EventFlags;

use super::client::{Client, Clients, Progress};
use crate::drive::{Poller, Traffic, drive};
use crate::plan::{Figures, Plan};
use crate::window::Meter;

pub(super) fn run(plan: &Plan, clients: &mut Clients) -> Result<Figures> {
    let poller = Poller::new()?;
    let mut load = Churn::open(plan, clients, &poller)?;
    let mut figures = drive(plan, &poller, &mut load)?;
    figures.connections = load.begun;
    Ok(figures)
}

struct Churn<'a> {
    clients: &'a mut Clients,
    /// None once the load is over.
    connections: Vec<Option<Connection>>,
    begun: u64,
    next: Next,
}

/// What follows a connection that has done its exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Another,
    Nothing,
}

struct Connection {
    client: Client,
    stage: Stage,
    begun: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Asking,
}

impl<'a> Churn<'a> {
    fn open(plan: &Plan, clients: &'a mut Clients, poller: &Poller) -> Result<Self> {
        let mut load = Self {
            clients,
            connections: Vec::new(),
            begun: 0,
            next: Next::Another,
        };
        for number in 0..plan.connections {
            let connection = load.begin(number, poller)?;
            load.connections.push(Some(connection));
        }
        Ok(load)
    }

    fn begin(&mut self, number: usize, poller: &Poller) -> Result<Connection> {
        self.begun += 1;
        let begun = Instant::now();
        let client = self.clients.begin_to_connect()?;
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        poller.add(client.channel.stream(), number, events)?;
        Ok(Connection {
            client,
            stage: Stage::Connecting,
            begun,
        })
    }
}

impl Traffic for Churn<'_> {
    /// A descriptor has one event in a batch at most, so that a new connection never sees one of its predecessor's.
    fn ready(&mut self, number: usize, poller: &Poller, meter: &mut Meter) -> Result<()> {
        let place = self.connections.get_mut(number);
        let place = place.context("an event of no connection")?;
        let Some(mut connection) = place.take() else {
            return Ok(());
        };
        if connection.advance(self.clients)? == Progress::Incomplete {
            *place = Some(connection);
            return Ok(());
        }
        meter.record(connection.begun.elapsed());
        connection.client.channel.close()?;
        if self.next == Next::Another {
            let connection = self.begin(number, poller)?;
            self.connections[number] = Some(connection);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.next = Next::Nothing;
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.connections.iter().flatten().count()
    }
}

impl Connection {
    fn advance(&mut self, clients: &mut Clients) -> Result<Progress> {
        match self.stage {
            Stage::Connecting => {
                clients.begin(&mut self.client)?;
                self.stage = Stage::Asking;
                Ok(Progress::Incomplete)
            }
            Stage::Asking => clients.advance(&mut self.client),
        }
    }
}
