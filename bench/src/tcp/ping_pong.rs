//! 64 bytes there and back, again and again, on connections that stay open.

use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::epoll::EventFlags;

use super::Bytes;
use super::message::{self, Exchange, Progress};
use crate::connect::connect_and_wait;
use crate::drive::{Poller, Traffic, drive};
use crate::plan::{Figures, Plan};
use crate::window::Meter;

pub(super) fn run(plan: &Plan) -> Result<(Figures, Bytes)> {
    let poller = Poller::new()?;
    let mut load = PingPong::open(plan, &poller)?;
    let mut figures = drive(plan, &poller, &mut load)?;
    figures.connections = load.connections.len() as u64;
    figures.exchanges = load.exchanges;
    let bytes = load.exchanges * message::LENGTH as u64;
    let bytes = Bytes {
        sent: bytes,
        received: bytes,
    };
    Ok((figures, bytes))
}

struct PingPong {
    connections: Vec<Connection>,
    /// Exchanges begun.
    exchanges: u64,
    under_way: usize,
    next: Next,
}

/// What follows a completed exchange.
enum Next {
    Another,
    Nothing,
}

struct Connection {
    stream: TcpStream,
    exchange: Exchange,
    sent: Instant,
}

impl PingPong {
    /// Opens one connection after the other, each with its first message under way.
    fn open(plan: &Plan, poller: &Poller) -> Result<Self> {
        let mut load = Self {
            connections: Vec::with_capacity(plan.connections),
            exchanges: 0,
            under_way: 0,
            next: Next::Another,
        };
        for number in 0..plan.connections {
            let stream = connect_and_wait(plan.target)?;
            Exchange::new(load.next_number()).complete(&stream)?;
            stream.set_nonblocking(true)?;
            poller.add(&stream, number, EventFlags::IN)?;
            let exchange = Exchange::new(load.next_number());
            exchange.send(&stream)?;
            load.under_way += 1;
            load.connections.push(Connection {
                stream,
                exchange,
                sent: Instant::now(),
            });
        }
        Ok(load)
    }

    const fn next_number(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }
}

impl Traffic for PingPong {
    fn ready(&mut self, number: usize, _poller: &Poller, meter: &mut Meter) -> Result<()> {
        let connection = self
            .connections
            .get_mut(number)
            .context("an event of no connection")?;
        if connection.exchange.receive(&connection.stream)? == Progress::Incomplete {
            return Ok(());
        }
        let now = Instant::now();
        meter.record(now - connection.sent);
        match self.next {
            Next::Another => {
                self.exchanges += 1;
                connection.exchange = Exchange::new(self.exchanges);
                connection.sent = now;
                connection.exchange.send(&connection.stream)
            }
            Next::Nothing => {
                self.under_way -= 1;
                Ok(())
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.next = Next::Nothing;
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.under_way
    }
}
