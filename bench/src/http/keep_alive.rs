//! Exchanges, one after the other, on connections that stay open.

use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::epoll::EventFlags;

use super::client::{Client, Clients, Progress};
use crate::drive::{Poller, Traffic, drive};
use crate::plan::{Figures, Plan};
use crate::window::Meter;

pub(super) fn run(plan: &Plan, clients: &mut Clients) -> Result<Figures> {
    let poller = Poller::new()?;
    let mut load = KeepAlive::open(plan, clients, &poller)?;
    let mut figures = drive(plan, &poller, &mut load)?;
    figures.connections = load.connections.len() as u64;
    Ok(figures)
}

struct KeepAlive<'a> {
    clients: &'a mut Clients,
    connections: Vec<Connection>,
    under_way: usize,
    next: Next,
}

/// What follows a completed exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Another,
    Nothing,
}

struct Connection {
    client: Client,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Asking(Instant),
    Over,
}

impl<'a> KeepAlive<'a> {
    /// Opens one connection after the other, each with an exchange under way that follows a completed one.
    fn open(plan: &Plan, clients: &'a mut Clients, poller: &Poller) -> Result<Self> {
        let mut connections = Vec::with_capacity(plan.connections);
        for number in 0..plan.connections {
            let mut client = clients.connect()?;
            clients.complete(&mut client)?;
            client.channel.stream().set_nonblocking(true)?;
            let events = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            poller.add(client.channel.stream(), number, events)?;
            clients.begin(&mut client)?;
            let state = State::Asking(Instant::now());
            connections.push(Connection { client, state });
        }
        Ok(Self {
            clients,
            under_way: connections.len(),
            connections,
            next: Next::Another,
        })
    }
}

impl Traffic for KeepAlive<'_> {
    fn ready(&mut self, number: usize, _poller: &Poller, meter: &mut Meter) -> Result<()> {
        let connection = self
            .connections
            .get_mut(number)
            .context("an event of no connection")?;
        let State::Asking(begun) = connection.state else {
            return Ok(());
        };
        if self.clients.advance(&mut connection.client)? == Progress::Incomplete {
            return Ok(());
        }
        let now = Instant::now();
        meter.record(now - begun);
        if self.next == Next::Another {
            connection.state = State::Asking(now);
            return self.clients.begin(&mut connection.client);
        }
        connection.state = State::Over;
        self.under_way -= 1;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.next = Next::Nothing;
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.under_way
    }
}
