//! What evenkeel tells about itself: reason codes, session records, counters, the access log.
//!
//! The data path hands over one [`SessionRecord`] per session and is done: nothing here makes a
//! worker wait, and nothing allocates on its side. The program's own log is `tracing`, set up by the program crate.

pub mod access_log;
pub mod counters;
mod format;
pub mod reason;
pub mod record;

use std::sync::Arc;
use std::time::Duration;

use access_log::{AccessLog, AccessLogCounts, AccessLogError};
use counters::Counters;
use record::SessionRecord;

use crate::SessionSink;
use crate::settings::Settings;

/// Counts every session, and passes it on to the access log.
#[derive(Debug)]
pub struct Telemetry {
    counters: Counters,
    access_log: Option<AccessLog>,
}

impl Telemetry {
    /// Makes a counter for every name in the settings, opens the access log and starts its writer.
    ///
    /// # Errors
    ///
    /// The access log cannot be opened, or its thread cannot be started.
    pub fn start(settings: &Settings) -> Result<Arc<Self>, AccessLogError> {
        Ok(Arc::new(Self {
            counters: Counters::new(settings),
            access_log: AccessLog::start(&settings.access_log)?,
        }))
    }

    /// Sessions ended and bytes moved since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Lines written and dropped since the start; `None` where the access log is off.
    pub fn access_log_counts(&self) -> Option<AccessLogCounts> {
        self.access_log.as_ref().map(AccessLog::counts)
    }

    /// Opens the access log's file anew, after it was moved away.
    pub fn reopen_logs(&self) {
        if let Some(log) = &self.access_log {
            log.reopen();
        }
    }

    /// Writes what is queued and ends the log writer, waiting no longer than `patience`.
    pub fn stop(&self, patience: Duration) -> access_log::Stopped {
        match &self.access_log {
            Some(log) => log.stop(patience),
            None => access_log::Stopped::Complete,
        }
    }
}

impl SessionSink for Telemetry {
    fn session_ended(&self, record: SessionRecord) {
        self.counters.record(&record);
        if let Some(log) = &self.access_log {
            log.push(record);
        }
    }
}
