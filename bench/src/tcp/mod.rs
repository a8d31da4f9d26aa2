//! The loads of the TCP bench, and the endpoints that answer them.

mod bulk;
mod connect;
mod idle;
mod message;
mod ping_pong;
mod service;

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use anyhow::{Result, bail};

use crate::connect::{connect_and_wait, wait_until_served};
use crate::endpoints::Endpoints;
use crate::plan::{Figures, Plan, TcpLoad};
use service::{Answer, Answering};

/// Bytes on one side, from the start to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bytes {
    sent: u64,
    received: u64,
}

/// Starts the endpoints, runs the load, and holds what the clients counted against what the endpoints counted.
pub(crate) fn run(plan: &Plan, load: TcpLoad) -> Result<Figures> {
    let answer = match load {
        TcpLoad::Bulk => Answer::Stream,
        TcpLoad::PingPong | TcpLoad::Connect | TcpLoad::Idle => Answer::Echo,
    };
    let endpoints = Endpoints::start(&plan.endpoints, Answering::new(answer))?;
    let first = wait_until_served(|| exchange_once(plan.target, answer))?;
    let (figures, clients) = match load {
        TcpLoad::PingPong => ping_pong::run(plan),
        TcpLoad::Connect => connect::run(plan),
        TcpLoad::Bulk => bulk::run(plan),
        TcpLoad::Idle => idle::run(plan),
    }?;
    let seen = endpoints.stop()?.bytes;
    let (sent, received) = (clients.sent + first.sent, clients.received + first.received);
    if (seen.sent, seen.received) != (received, sent) {
        bail!("bytes were lost: the clients {clients:?} and {first:?}, the endpoints {seen:?}");
    }
    Ok(figures)
}

/// One byte is sent back, or starts a stream that the second byte ends. Returns what was sent and received.
fn exchange_once(target: SocketAddr, answer: Answer) -> Result<Bytes> {
    let mut stream = connect_and_wait(target)?;
    stream.write_all(b"!")?;
    stream.read_exact(&mut [0])?;
    let mut bytes = Bytes {
        sent: 1,
        received: 1,
    };
    if answer == Answer::Stream {
        stream.write_all(b"!")?;
        bytes.sent += 1;
        bytes.received += io::copy(&mut stream, &mut io::sink())?;
    }
    Ok(bytes)
}
