//! What evenkeel tells about itself: reason codes, session records, counters, the access log.
//!
//! The data path hands over one [`SessionRecord`] per session and is done: nothing here makes a
//! worker wait, and nothing allocates on its side. The program's own log is `tracing`, set up by the program crate.

pub mod access_log;
pub mod counters;
mod format;
pub mod histogram;
pub mod reason;
pub mod record;

use std::sync::Arc;
use std::time::Duration;

use access_log::{AccessLog, AccessLogCounts, AccessLogError, Lines};
use arc_swap::ArcSwapOption;
use counters::Counters;
use record::{ExchangeRecord, SessionRecord};

use crate::SessionSink;
use crate::settings::{AccessLogSettings, Settings};

/// Counts every session, and passes it on to the access log.
#[derive(Debug)]
pub struct Telemetry {
    counters: Counters,
    access_log: ArcSwapOption<AccessLog>,
    lines: Arc<Lines>,
}

/// An access log that is open and not in use yet.
#[derive(Debug)]
pub struct NextAccessLog(Option<AccessLog>);

impl NextAccessLog {
    /// As if it had not been opened: a file that was not there before is gone again.
    pub fn undo(self) {
        if let Some(log) = self.0 {
            log.undo();
        }
    }
}

impl Telemetry {
    /// Makes a counter for every name in the settings, opens the access log and starts its writer.
    ///
    /// # Errors
    ///
    /// The access log cannot be opened, or its thread cannot be started.
    pub fn start(settings: &Settings) -> Result<Arc<Self>, AccessLogError> {
        let lines = Arc::default();
        let access_log = AccessLog::start(&settings.access_log, &lines)?;
        Ok(Arc::new(Self {
            counters: Counters::new(settings),
            access_log: ArcSwapOption::from_pointee(access_log),
            lines,
        }))
    }

    /// Sessions ended and bytes moved since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Has counters for the names in these settings and for no others. Those that there are go on.
    pub fn follow(&self, settings: &[&Settings]) {
        self.counters.follow(settings);
    }

    /// Opens an access log, for [`Telemetry::go_over_to`] or [`NextAccessLog::undo`].
    ///
    /// # Errors
    ///
    /// As at the start.
    pub fn open_access_log(
        &self,
        settings: &AccessLogSettings,
    ) -> Result<NextAccessLog, AccessLogError> {
        AccessLog::start(settings, &self.lines).map(NextAccessLog)
    }

    /// Lines of sessions that end from now on go there. The old log's writer still writes what it has.
    pub fn go_over_to(&self, next: NextAccessLog) {
        self.access_log.store(next.0.map(Arc::new));
    }

    /// Lines written and dropped since the start; `None` where the access log is off.
    pub fn access_log_counts(&self) -> Option<AccessLogCounts> {
        self.access_log.load().as_ref().map(|log| log.counts())
    }

    /// Opens the access log's file anew, after it was moved away.
    pub fn reopen_logs(&self) {
        if let Some(log) = &*self.access_log.load() {
            log.reopen();
        }
    }

    /// Writes what is queued and ends the log writer, waiting no longer than `patience`.
    pub fn stop(&self, patience: Duration) -> access_log::Stopped {
        match self.access_log.load_full() {
            Some(log) => log.stop(patience),
            None => access_log::Stopped::Complete,
        }
    }
}

impl SessionSink for Telemetry {
    fn session_ended(&self, record: SessionRecord) {
        self.counters.record(&record);
        if let Some(log) = &*self.access_log.load() {
            log.push(record);
        }
    }

    fn exchange_ended(&self, record: ExchangeRecord) {
        self.counters.record_exchange(&record);
        if let Some(log) = &*self.access_log.load() {
            log.push(Box::new(record));
        }
    }

    fn connection_ended(&self, record: SessionRecord) {
        self.counters.record(&record);
    }
}
