//! The access log: a bounded queue of session records, and the one thread that writes them out.
//!
//! A worker only ever appends to a list in memory, under a lock that is held for that append or for the swap of two
//! pointers. Disks and pipes are the writer's: when they are slow or full, the list fills up, lines are dropped and
//! counted, and nobody waits. `queue` is what the two sides share, `writer` the thread, `destination` where its bytes go; how
//! a line looks is decided in `format`.

mod destination;
mod queue;
mod writer;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use evenkeel_reactor::FileMark;
use jiff::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;

use super::record::{ExchangeRecord, SessionRecord};
use crate::settings::{AccessLogSettings, LogDestination, LogFormat};
use destination::{Destination, Target};
use queue::Queue;
use writer::Writer;

pub(super) use queue::Lines;
pub use queue::QUEUED_RECORDS_MAX;

/// How long a writer without work may take to end.
const UNDO_PATIENCE: Duration = Duration::from_secs(1);

/// An access log that is being written.
#[derive(Debug)]
pub struct AccessLog {
    queue: Arc<Queue>,
    /// Its file, if that was not there before.
    made: Option<FileMark>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What a line is made of.
#[derive(Debug)]
pub enum Logged {
    /// A session.
    Session(SessionRecord),
    /// An exchange. Not kept within, so that the queue's places are no larger than a session needs.
    Exchange(Box<ExchangeRecord>),
}

impl From<SessionRecord> for Logged {
    fn from(record: SessionRecord) -> Self {
        Self::Session(record)
    }
}

impl From<Box<ExchangeRecord>> for Logged {
    fn from(record: Box<ExchangeRecord>) -> Self {
        Self::Exchange(record)
    }
}

/// The log could not be started.
#[derive(Debug, Error)]
pub enum AccessLogError {
    /// The file, or standard output, cannot be written to.
    #[error("cannot open the access log {destination}: {source}")]
    Open {
        /// What was to be opened.
        destination: String,
        /// Why it failed.
        source: io::Error,
    },
    /// There is no thread to be had for the writer.
    #[error("cannot start the access log's thread: {0}")]
    Thread(io::Error),
}

/// Lines since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessLogCounts {
    /// Handed to the operating system.
    pub written: u64,
    /// Lost: the queue was full, or the destination refused them.
    pub dropped: u64,
}

/// How the end of the log went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The writer has ended; every line was written or counted as dropped.
    Complete,
    /// The writer still hangs in a write; what was queued is lost.
    TimedOut,
}

impl AccessLog {
    /// Opens the destination and starts the writer; `None` where the log is off. Its lines are counted there.
    ///
    /// # Errors
    ///
    /// The destination cannot be opened, or the thread cannot be started.
    pub(super) fn start(
        settings: &AccessLogSettings,
        lines: &Arc<Lines>,
    ) -> Result<Option<Self>, AccessLogError> {
        let opened = Target::open(&settings.destination);
        let opened =
            opened.map_err(|source| AccessLogError::open(&settings.destination, source))?;
        let Some(target) = opened else {
            return Ok(None);
        };
        let made = target.made();
        let log = Self::spawn(target, settings.format, lines);
        let mut log = log.map_err(AccessLogError::Thread)?;
        log.made = made;
        Ok(Some(log))
    }

    /// As if it had never been opened: nothing has been written to it.
    pub(super) fn undo(self) {
        self.stop(UNDO_PATIENCE);
        if let Some(made) = &self.made {
            made.remove();
        }
    }

    fn spawn(target: impl Destination, format: LogFormat, lines: &Arc<Lines>) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(Arc::clone(lines)));
        let writer = Writer::new(Arc::clone(&queue), target, format);
        let thread = thread::Builder::new()
            .name("ek-access-log".to_owned())
            .spawn(move || writer.run())?;
        Ok(Self {
            queue,
            made: None,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// Queues a record that ends now. Never blocks on IO: when the queue is full, the line is dropped and counted.
    pub fn push(&self, record: impl Into<Logged>) {
        self.queue.push(Timestamp::now(), record.into());
    }

    /// Asks the writer to open the file anew.
    pub fn reopen(&self) {
        self.queue.reopen();
    }

    /// Lines written and dropped so far.
    pub fn counts(&self) -> AccessLogCounts {
        self.queue.counts()
    }

    /// Takes no more records, lets the writer finish what is queued, and waits for it no longer than `patience`.
    pub fn stop(&self, patience: Duration) -> Stopped {
        if self.queue.close(Instant::now() + patience) == Stopped::TimedOut {
            return Stopped::TimedOut;
        }
        if let Some(thread) = self.writer.lock().take() {
            // It has said that it is done; a panic in it has nothing left to break.
            let _ = thread.join();
        }
        Stopped::Complete
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        // The writer ends by itself after what is queued; it is not waited for.
        self.queue.close(Instant::now());
    }
}

impl AccessLogError {
    fn open(destination: &LogDestination, source: io::Error) -> Self {
        let destination = match destination {
            LogDestination::Off => "off".to_owned(),
            LogDestination::Stdout => "on standard output".to_owned(),
            LogDestination::Stderr => "on standard error".to_owned(),
            LogDestination::File(path) => path.display().to_string(),
        };
        Self::Open {
            destination,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use evenkeel_reactor::Origin;

    use super::*;
    use crate::telemetry::reason::Reason;

    const LONG: Duration = Duration::from_secs(60);

    pub(super) fn record(number: u64) -> SessionRecord {
        SessionRecord {
            listener: Arc::from("front"),
            cluster: Some(Arc::from("web")),
            client: Origin::Ip("192.0.2.7:50312".parse().unwrap()),
            peer: None,
            endpoint: None,
            attempts: 0,
            bytes_up: number,
            bytes_down: 0,
            queued: Duration::ZERO,
            connect: None,
            first_byte: None,
            total: Duration::ZERO,
            reason: Reason::NoEndpoint,
        }
    }

    /// A disk that hangs in every write until the test lets it go, and tells when a write has begun.
    struct HangingDisk {
        begun: Sender<()>,
        go_on: Receiver<()>,
    }

    impl Destination for HangingDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.begun.send(());
            let _ = self.go_on.recv();
            Ok(bytes.len())
        }

        fn reopen(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// While the disk hangs, workers go on: the queue takes exactly its bound, and every line beyond is counted.
    #[test]
    fn a_hanging_disk_stops_nobody_and_every_lost_line_is_counted() {
        let (begun, has_begun) = channel();
        let (let_go, go_on) = channel();
        let disk = HangingDisk { begun, go_on };
        let log = AccessLog::spawn(disk, LogFormat::Text, &Arc::default()).unwrap();
        log.push(record(0));
        has_begun.recv().unwrap();

        for number in 0..QUEUED_RECORDS_MAX as u64 + 10 {
            log.push(record(number));
        }

        assert_eq!(log.counts().dropped, 10);
        assert_eq!(log.stop(Duration::ZERO), Stopped::TimedOut);
        drop(let_go);
        assert_eq!(log.stop(LONG), Stopped::Complete);
        let written = QUEUED_RECORDS_MAX as u64 + 1;
        assert_eq!(
            log.counts(),
            AccessLogCounts {
                written,
                dropped: 10
            }
        );
    }

    /// A reader that is gone (a closed pipe) costs lines, never the process or a busy thread.
    #[test]
    fn a_broken_pipe_is_counted_line_by_line() {
        let (reader, pipe) = io::pipe().unwrap();
        drop(reader);
        let target = Target::stream(pipe).unwrap();
        let log = AccessLog::spawn(target, LogFormat::Json, &Arc::default()).unwrap();

        for number in 0..3 {
            log.push(record(number));
        }

        assert_eq!(log.stop(LONG), Stopped::Complete);
        assert_eq!(
            log.counts(),
            AccessLogCounts {
                written: 0,
                dropped: 3
            }
        );
    }

    /// What was queued before the stop is in the file after it; what comes later is counted as dropped.
    #[test]
    fn stop_writes_what_is_queued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let log = start_on(&path);
        for number in 0..100 {
            log.push(record(number));
        }

        assert_eq!(log.stop(LONG), Stopped::Complete);
        log.push(record(100));

        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 100);
        assert_eq!(log.counts().dropped, 1);
    }

    /// The file is for its owner and group, and an existing one is appended to.
    #[test]
    fn a_file_is_appended_to_and_not_readable_by_all() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");

        for number in 0..2 {
            let log = start_on(&path);
            log.push(record(number));
            log.stop(LONG);
        }

        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777 & !destination::FILE_MODE, 0, "{mode:o}");
    }

    /// After the file was moved away and the log reopened, new lines go to a new file of the old name.
    #[test]
    fn a_rotated_file_is_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let log = start_on(&path);
        std::fs::rename(&path, dir.path().join("access.log.1")).unwrap();

        log.reopen();
        log.push(record(1));
        log.stop(LONG);

        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1);
    }

    /// A file that cannot be opened is an error that names it, at the start.
    #[test]
    fn an_impossible_file_is_named() {
        let settings = AccessLogSettings {
            destination: LogDestination::File(PathBuf::from("/nonexistent/access.log")),
            format: LogFormat::Text,
        };

        let error = AccessLog::start(&settings, &Arc::default())
            .unwrap_err()
            .to_string();

        assert!(error.contains("/nonexistent/access.log"), "{error}");
    }

    fn start_on(path: &Path) -> AccessLog {
        let settings = AccessLogSettings {
            destination: LogDestination::File(path.to_owned()),
            format: LogFormat::Text,
        };
        AccessLog::start(&settings, &Arc::default())
            .unwrap()
            .unwrap()
    }
}
