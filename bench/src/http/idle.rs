//! Connections that are kept alive for nothing: how much memory a client's connection takes.

use anyhow::Result;

use super::client::{Client, Clients};
use crate::histogram::Histogram;
use crate::plan::{Figures, Plan};
use crate::watched::Watched;
use crate::window::Window;

/// Opened first and not counted: they make the proxy allocate what it allocates once.
const FIRST: usize = 64;

pub(super) fn run(plan: &Plan, clients: &mut Clients) -> Result<Figures> {
    let mut opened = Vec::with_capacity(FIRST + plan.connections);
    open(&mut opened, FIRST, clients)?;
    let window = Window::open(Watched::new(&plan.watched))?;
    open(&mut opened, plan.connections, clients)?;
    let mut figures = window.close(plan.connections as u64, &Histogram::new())?;
    figures.connections = opened.len() as u64;
    Ok(figures)
}

/// One after the other, each with one exchange: the connection to the endpoint serves them all.
fn open(opened: &mut Vec<Client>, count: usize, clients: &mut Clients) -> Result<()> {
    for _ in 0..count {
        let mut client = clients.connect()?;
        clients.complete(&mut client)?;
        opened.push(client);
    }
    Ok(())
}
