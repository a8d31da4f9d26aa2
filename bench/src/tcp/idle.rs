//! Connections that do nothing: how much memory a pair of them takes.

use std::net::TcpStream;

use anyhow::Result;

use super::Bytes;
use super::message::{self, Exchange};
use crate::connect::connect_and_wait;
use crate::histogram::Histogram;
use crate::plan::{Figures, Plan};
use crate::watched::Watched;
use crate::window::Window;

/// Opened first and not counted: they make the proxy allocate what it allocates once.
const FIRST: usize = 64;

pub(super) fn run(plan: &Plan) -> Result<(Figures, Bytes)> {
    let mut connections = Vec::with_capacity(FIRST + plan.connections);
    open(&mut connections, FIRST, plan)?;
    let window = Window::open(Watched::new(&plan.watched))?;
    open(&mut connections, plan.connections, plan)?;
    let mut figures = window.close(plan.connections as u64, &Histogram::new())?;
    figures.connections = connections.len() as u64;
    figures.exchanges = figures.connections;
    let bytes = (connections.len() * message::LENGTH) as u64;
    let bytes = Bytes {
        sent: bytes,
        received: bytes,
    };
    Ok((figures, bytes))
}

/// One after the other, each with one exchange, so that both sides of the pair stand.
fn open(connections: &mut Vec<TcpStream>, count: usize, plan: &Plan) -> Result<()> {
    for _ in 0..count {
        let stream = connect_and_wait(plan.target)?;
        Exchange::new(connections.len() as u64).complete(&stream)?;
        connections.push(stream);
    }
    Ok(())
}
