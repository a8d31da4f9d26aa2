//! The program's own log: `tracing` events on standard error, one line each. The access log is another matter.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

use crate::config::LogLevel;

/// A log that runs.
#[derive(Debug)]
pub(crate) struct ProgramLog {
    level: LogLevel,
    handle: Handle<LevelFilter, Registry>,
}

impl ProgramLog {
    /// Starts it, once per process. Lines that standard error does not take are lost without a sound.
    pub(crate) fn start(level: LogLevel) -> Self {
        let (filter, handle) = reload::Layer::new(filter(level));
        let lines = fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .log_internal_errors(false);
        // It fails only where a log is running already, which then goes on.
        let _ = tracing_subscriber::registry()
            .with(filter)
            .with(lines)
            .try_init();
        Self { level, handle }
    }

    /// How much it says.
    pub(crate) const fn level(&self) -> LogLevel {
        self.level
    }

    /// Has it say more, or less.
    pub(crate) fn set_level(&mut self, level: LogLevel) {
        self.level = level;
        // It fails only where the log has gone.
        let _ = self.handle.reload(filter(level));
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
