//! The loads of the TCP bench, and the endpoints that answer them.

mod bulk;
mod connect;
mod endpoint;
mod idle;
mod message;
mod pattern;
mod ping_pong;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::plan::{Figures, Load, Plan};
use endpoint::{Answer, Endpoints};

/// How long a single exchange may take where a load waits for it.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);

/// Between two attempts to be served for the first time.
const PAUSE: Duration = Duration::from_millis(20);

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
    let first = wait_until_served(plan.target, answer)?;
    let (figures, clients) = match plan.load {
        Load::PingPong => ping_pong::run(plan),
        Load::Connect => connect::run(plan),
        Load::Bulk => bulk::run(plan),
        Load::Idle => idle::run(plan),
    }?;
    let seen = endpoints.stop()?;
    let (sent, received) = (clients.sent + first.sent, clients.received + first.received);
    if (seen.sent, seen.received) != (received, sent) {
        bail!("bytes were lost: the clients {clients:?} and {first:?}, the endpoints {seen:?}");
    }
    Ok(figures)
}

/// A proxy may know only by its next probe that the endpoints are there, and ends what it is sent until then. Returns what the
/// connection that was served has sent and received.
fn wait_until_served(target: SocketAddr, answer: Answer) -> Result<Bytes> {
    let begin = Instant::now();
    loop {
        match exchange_once(target, answer) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if begin.elapsed() > EXCHANGE_MAX => return Err(error),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// One byte is sent back, or starts a stream that the second byte ends.
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

/// A connection that waits for what it asks for.
fn connect_and_wait(target: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, EXCHANGE_MAX).context("cannot connect")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(EXCHANGE_MAX))?;
    stream.set_write_timeout(Some(EXCHANGE_MAX))?;
    Ok(stream)
}
