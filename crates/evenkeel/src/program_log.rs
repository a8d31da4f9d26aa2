//! The program's own log: `tracing` events on standard error, one line each. The access log is another matter.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

use crate::config::LogLevel;

/// Starts it, once per process. Lines that standard error does not take are lost without a sound.
pub(crate) fn start(level: LogLevel) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(filter(level))
        .log_internal_errors(false);
    // It fails only where a log is running already, which then goes on.
    let _ = log.try_init();
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
