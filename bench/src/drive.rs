//! The loop around every load: wait for sockets, let the load answer, open and close the window, let the load come to its end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::plan::{Figures, Plan};
use crate::window::{Meter, Phase};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 512;

/// How late the window may open or close when nothing happens.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// A load in which nothing happens for so long has been lost.
const STALL_MAX: Duration = Duration::from_secs(5);

/// How long what is under way when the window closes may take to end.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// What the connections of a load do when something happens to them.
pub(crate) trait Traffic {
    /// Something happened to the connection of this number.
    fn ready(&mut self, connection: usize, poller: &Poller, meter: &mut Meter) -> Result<()>;

    /// The window is closed: begin nothing more.
    fn end(&mut self) -> Result<()>;

    /// Connections on which something is still under way.
    fn under_way(&self) -> usize;
}

/// Runs the load to its end.
pub(crate) fn drive(plan: &Plan, poller: &Poller, load: &mut impl Traffic) -> Result<Figures> {
    let mut meter = Meter::start(plan);
    let mut phase = Phase::Running;
    let mut watchdog = Watchdog::start(STALL_MAX);
    while phase == Phase::Running {
        watchdog.check(turn(poller, load, &mut meter)?)?;
        (meter, phase) = meter.advance(Instant::now())?;
    }
    load.end()?;
    let mut ending = Watchdog::start(ENDING_MAX);
    while load.under_way() > 0 {
        turn(poller, load, &mut meter)?;
        ending.check(0)?;
    }
    meter.figures().context("the window was never closed")
}

/// One batch of events; returns how many there were.
fn turn(poller: &Poller, load: &mut impl Traffic, meter: &mut Meter) -> Result<usize> {
    let events = poller.wait()?;
    for event in &events {
        load.ready(number(event), poller, meter)?;
    }
    Ok(events.len())
}

/// The number that the descriptor was added with.
#[expect(clippy::cast_possible_truncation, reason = "it was a usize")]
pub(crate) fn number(event: &epoll::Event) -> usize {
    event.data.u64() as usize
}

/// Ends a load in which nothing happens any more.
struct Watchdog {
    patience: Duration,
    alive: Instant,
}

impl Watchdog {
    fn start(patience: Duration) -> Self {
        Self {
            patience,
            alive: Instant::now(),
        }
    }

    fn check(&mut self, events: usize) -> Result<()> {
        let now = Instant::now();
        if events > 0 {
            self.alive = now;
        }
        if now.duration_since(self.alive) > self.patience {
            bail!("the load did not go on within {:?}", self.patience);
        }
        Ok(())
    }
}

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Watches a descriptor until it is closed.
    pub(crate) fn add(
        &self,
        descriptor: impl AsFd,
        number: usize,
        events: epoll::EventFlags,
    ) -> Result<()> {
        let data = epoll::EventData::new_u64(number as u64);
        Ok(epoll::add(&self.epoll, descriptor, data, events)?)
    }

    /// Watches it for other events.
    pub(crate) fn change(
        &self,
        descriptor: impl AsFd,
        number: usize,
        events: epoll::EventFlags,
    ) -> Result<()> {
        let data = epoll::EventData::new_u64(number as u64);
        Ok(epoll::modify(&self.epoll, descriptor, data, events)?)
    }

    /// What has happened; nothing after 5 ms without anything.
    pub(crate) fn wait(&self) -> Result<Vec<epoll::Event>> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => Ok(events),
            Err(error) => Err(error.into()),
        }
    }
}
