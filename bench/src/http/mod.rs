//! The loads of the HTTP bench, and the endpoints that answer them.
//!
//! Every exchange has a number, which its path and its answer's `ETag` carry and from which both bodies follow, so that an answer
//! that belongs to another exchange is noticed.

mod channel;
mod client;
mod connect;
mod idle;
mod incoming;
mod keep_alive;
mod outgoing;
mod service;

use anyhow::{Result, bail};

use crate::endpoints::Endpoints;
use crate::plan::{Course, Figures, HttpLoad, Plan};
use channel::Security;
use client::{Clients, wait_until_served};
use service::Answering;

/// The number of what is not counted: probes, and the exchange that asks whether the load is served.
const UNCOUNTED: u64 = 0;

/// What one side has counted from the start to the end. Heads are left out: proxies change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    exchanges: u64,
    /// Bytes of requests' bodies.
    asked: u64,
    /// Bytes of answers' bodies.
    answered: u64,
}

/// Starts the endpoints, runs the load, and holds what the clients counted against what the endpoints counted.
pub(crate) fn run(plan: &Plan, load: HttpLoad) -> Result<Figures> {
    let endpoints = Endpoints::start(&plan.endpoints, Answering::new())?;
    let security = Security::new(plan.trusted.as_deref())?;
    let mut clients = Clients::new(plan.target, load, security);
    wait_until_served(&mut clients)?;
    let figures = match load.course {
        Course::KeepAlive => keep_alive::run(plan, &mut clients),
        Course::Connect => connect::run(plan, &mut clients),
        Course::Idle => idle::run(plan, &mut clients),
    }?;
    let seen = endpoints.stop()?.tally;
    if seen != clients.tally {
        let tally = clients.tally;
        bail!("exchanges were lost: the clients {tally:?}, the endpoints {seen:?}");
    }
    Ok(Figures {
        exchanges: seen.exchanges,
        ..figures
    })
}
