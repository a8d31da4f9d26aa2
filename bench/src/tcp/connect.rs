//! A connection for every exchange: connect, 64 bytes there and back, close, and again.
//!
//! The client closes first, as clients do, and so keeps the connection's `TIME_WAIT`.

use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::epoll::EventFlags;

use super::Bytes;
use super::message::{self, Exchange, Progress};
use crate::connect;
use crate::drive::{Poller, Traffic, drive};
use crate::plan::{Figures, Plan};
use crate::window::Meter;

pub(super) fn run(plan: &Plan) -> Result<(Figures, Bytes)> {
    let poller = Poller::new()?;
    let mut load = Churn::open(plan, &poller)?;
    let mut figures = drive(plan, &poller, &mut load)?;
    figures.connections = load.begun;
    figures.exchanges = load.begun;
    let bytes = load.begun * message::LENGTH as u64;
    let bytes = Bytes {
        sent: bytes,
        received: bytes,
    };
    Ok((figures, bytes))
}

struct Churn {
    target: SocketAddr,
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
    stream: TcpStream,
    exchange: Exchange,
    stage: Stage,
    begun: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Waiting,
}

impl Churn {
    fn open(plan: &Plan, poller: &Poller) -> Result<Self> {
        let mut load = Self {
            target: plan.target,
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
        let stream = connect::begin(self.target).context("cannot connect")?;
        poller.add(
            &stream,
            number,
            EventFlags::IN | EventFlags::OUT | EventFlags::ET,
        )?;
        Ok(Connection {
            stream,
            exchange: Exchange::new(self.begun),
            stage: Stage::Connecting,
            begun,
        })
    }
}

impl Traffic for Churn {
    /// A descriptor has one event in a batch at most, so that a new connection never sees one of its predecessor's.
    fn ready(&mut self, number: usize, poller: &Poller, meter: &mut Meter) -> Result<()> {
        let place = self
            .connections
            .get_mut(number)
            .context("an event of no connection")?;
        let Some(connection) = place else {
            return Ok(());
        };
        if connection.advance()? == Progress::Incomplete {
            return Ok(());
        }
        meter.record(connection.begun.elapsed());
        *place = None;
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
    fn advance(&mut self) -> Result<Progress> {
        match self.stage {
            Stage::Connecting => {
                self.exchange.send(&self.stream)?;
                self.stage = Stage::Waiting;
                Ok(Progress::Incomplete)
            }
            Stage::Waiting => self.exchange.receive(&self.stream),
        }
    }
}
