//! The loads of the TCP bench, and the endpoints that answer them.

mod bulk;
mod connect;
mod endpoint;
mod idle;
mod message;
mod pattern;
mod ping_pong;

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::plan::{Figures, Load, Plan};
use endpoint::{Answer, Endpoints};

/// How long a single exchange may take where a load waits for it.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);

/// Bytes on one side, from the start to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bytes {
    sent: u64,
    received: u64,
}

/// Starts the endpoints, runs the load, and holds what the clients counted against what the endpoints counted.
pub(crate) fn run(plan: &Plan) -> Result<Figures> {
    let answer = match plan.load {
        Load::Bulk => Answer::Stream,
        Load::PingPong | Load::Connect | Load::Idle => Answer::Echo,
    };
    let endpoints = Endpoints::start(&plan.endpoints, answer)?;
    let (figures, clients) = match plan.load {
        Load::PingPong => ping_pong::run(plan),
        Load::Connect => connect::run(plan),
        Load::Bulk => bulk::run(plan),
        Load::Idle => idle::run(plan),
    }?;
    let seen = endpoints.stop()?;
    if (seen.sent, seen.received) != (clients.received, clients.sent) {
        bail!("bytes were lost: the clients {clients:?}, the endpoints {seen:?}");
    }
    Ok(figures)
}

/// A connection that waits for what it asks for.
fn connect_and_wait(target: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, EXCHANGE_MAX).context("cannot connect")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(EXCHANGE_MAX))?;
    stream.set_write_timeout(Some(EXCHANGE_MAX))?;
    Ok(stream)
}
