//! The measured window: when it opens and closes, what was done in it, and what the proxy used meanwhile.
//!
//! The process that makes the load reads the proxy's use itself, at the very moments between which it counts.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::histogram::Histogram;
use crate::plan::{Figures, Latency, Plan};
use crate::watched::{Reading, Watched};

/// An open window.
pub(crate) struct Window {
    watched: Watched,
    opened: Instant,
    at_opening: Option<Reading>,
}

impl Window {
    pub(crate) fn open(watched: Watched) -> Result<Self> {
        let at_opening = watched.read()?;
        Ok(Self {
            watched,
            opened: Instant::now(),
            at_opening,
        })
    }

    /// Closes it; `work` was done in it. The numbers of connections and exchanges are left for the caller to say.
    pub(crate) fn close(self, work: u64, latencies: &Histogram) -> Result<Figures> {
        let window_nanos = nanos(self.opened.elapsed());
        let at_closing = self.watched.read()?;
        let usage = at_closing
            .zip(self.at_opening)
            .map(|(after, before)| after.used_since(&before));
        let latency = (!latencies.is_empty()).then(|| Latency {
            p50_nanos: latencies.per_mille(500),
            p99_nanos: latencies.per_mille(990),
        });
        Ok(Figures {
            work,
            window_nanos,
            latency,
            usage,
            connections: 0,
            exchanges: 0,
        })
    }
}

/// Counts what a load does, within its window only.
pub(crate) struct Meter {
    window_length: Duration,
    state: State,
    work: u64,
    latencies: Histogram,
}

enum State {
    WarmingUp { until: Instant, watched: Watched },
    Open { until: Instant, window: Window },
    Closed(Figures),
}

/// Whether the load goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    Over,
}

impl Meter {
    /// The warm-up begins now.
    pub(crate) fn start(plan: &Plan) -> Self {
        Self {
            window_length: Duration::from_millis(plan.window_millis),
            state: State::WarmingUp {
                until: Instant::now() + Duration::from_millis(plan.warm_up_millis),
                watched: Watched::new(&plan.watched),
            },
            work: 0,
            latencies: Histogram::new(),
        }
    }

    /// So many units of work were done.
    pub(crate) fn add(&mut self, work: u64) {
        if matches!(self.state, State::Open { .. }) {
            self.work += work;
        }
    }

    /// An exchange was completed that took so long.
    pub(crate) fn record(&mut self, took: Duration) {
        if matches!(self.state, State::Open { .. }) {
            self.work += 1;
            self.latencies.record(nanos(took));
        }
    }

    /// Opens and closes the window when it is time.
    pub(crate) fn advance(mut self, now: Instant) -> Result<(Self, Phase)> {
        self.state = match self.state {
            State::WarmingUp { until, watched } if now >= until => State::Open {
                until: now + self.window_length,
                window: Window::open(watched)?,
            },
            State::Open { until, window } if now >= until => {
                State::Closed(window.close(self.work, &self.latencies)?)
            }
            same => same,
        };
        let phase = match self.state {
            State::Closed(_) => Phase::Over,
            _ => Phase::Running,
        };
        Ok((self, phase))
    }

    /// None while the window has not been closed.
    pub(crate) fn figures(self) -> Option<Figures> {
        match self.state {
            State::Closed(figures) => Some(figures),
            _ => None,
        }
    }
}

/// 584 years fit.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
