//! The access log: a bounded queue of session records, and the one thread that writes them out.
//!
//! A worker only ever appends to a list in memory, under a lock that is held for that append or for the swap of two
//! pointers. Disks and pipes are the writer's: when they are slow or full, the list fills up, lines are dropped and
//! counted, and nobody waits. How a line looks is decided in `format`.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};
use thiserror::Error;

use super::format::append_line;
use super::record::SessionRecord;
use crate::settings::{AccessLogSettings, LogDestination, LogFormat};

/// Records that wait for the writer; as many again may be in its hands. About 1.5 MiB each.
pub const QUEUED_RECORDS_MAX: usize = 8192;
/// How many bytes of lines are gathered before they are written.
const CHUNK_BYTES: usize = 64 * 1024;
/// Only the owner may change the log, its group may read it.
const FILE_MODE: u32 = 0o640;

/// An access log that is being written.
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
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
    /// Opens the destination and starts the writer; `None` where the log is off.
    ///
    /// # Errors
    ///
    /// The destination cannot be opened, or the thread cannot be started.
    pub fn start(settings: &AccessLogSettings) -> Result<Option<Self>, AccessLogError> {
        let Some(target) = Target::open(&settings.destination)? else {
            return Ok(None);
        };
        Self::spawn(target, settings.format)
            .map(Some)
            .map_err(AccessLogError::Thread)
    }

    fn spawn(target: impl Destination, format: LogFormat) -> io::Result<Self> {
        let shared = Arc::new(Shared::new());
        let writer = Writer::new(Arc::clone(&shared), target, format);
        let thread = thread::Builder::new()
            .name("ek-access-log".to_owned())
            .spawn(move || writer.run())?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// Queues a record that ends now. Never blocks on IO: when the queue is full, the line is dropped and counted.
    pub fn push(&self, record: SessionRecord) {
        self.shared.push(Timestamp::now(), record);
    }

    /// Asks the writer to open the file anew.
    pub fn reopen(&self) {
        self.shared.state.lock().reopen = true;
        self.shared.work.notify_one();
    }

    /// Lines written and dropped so far.
    pub fn counts(&self) -> AccessLogCounts {
        self.shared.counts()
    }

    /// Takes no more records, lets the writer finish what is queued, and waits for it no longer than `patience`.
    pub fn stop(&self, patience: Duration) -> Stopped {
        if self.shared.close(Instant::now() + patience) == Stopped::TimedOut {
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
        self.shared.close(Instant::now());
    }
}

/// What the workers and the writer share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// For the writer: there is something to do.
    work: Condvar,
    /// For `stop`: the writer has ended.
    ended: Condvar,
    written: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct State {
    queued: Vec<Entry>,
    reopen: bool,
    closing: bool,
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    ended: Timestamp,
    record: SessionRecord,
}

/// What the writer was woken for, besides the records.
struct Work {
    reopen: bool,
    closing: bool,
}

impl Shared {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                queued: Vec::with_capacity(QUEUED_RECORDS_MAX),
                reopen: false,
                closing: false,
                ended: false,
            }),
            work: Condvar::new(),
            ended: Condvar::new(),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    fn push(&self, ended: Timestamp, record: SessionRecord) {
        let mut state = self.state.lock();
        if state.closing || state.queued.len() >= QUEUED_RECORDS_MAX {
            drop(state);
            self.count_dropped(1);
            return;
        }
        state.queued.push(Entry { ended, record });
        let was_empty = state.queued.len() == 1;
        drop(state);
        // Once is enough: the writer takes all there is, and does not sleep while there is any.
        if was_empty {
            self.work.notify_one();
        }
    }

    /// Sleeps until there is something to do, and swaps the queued records for the empty list given.
    fn take(&self, records: &mut Vec<Entry>) -> Work {
        let mut state = self.state.lock();
        while state.queued.is_empty() && !state.reopen && !state.closing {
            self.work.wait(&mut state);
        }
        std::mem::swap(&mut state.queued, records);
        Work {
            reopen: std::mem::take(&mut state.reopen),
            closing: state.closing,
        }
    }

    fn close(&self, deadline: Instant) -> Stopped {
        let mut state = self.state.lock();
        state.closing = true;
        self.work.notify_one();
        while !state.ended {
            if self.ended.wait_until(&mut state, deadline).timed_out() && !state.ended {
                return Stopped::TimedOut;
            }
        }
        Stopped::Complete
    }

    fn mark_ended(&self) {
        self.state.lock().ended = true;
        self.ended.notify_all();
    }

    fn counts(&self) -> AccessLogCounts {
        AccessLogCounts {
            written: self.written.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn count_written(&self, lines: u64) {
        self.written.fetch_add(lines, Ordering::Relaxed);
    }

    fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }
}

/// Where bytes go. A trait so that tests can have a disk that hangs or is full.
trait Destination: Send + 'static {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn reopen(&mut self) -> io::Result<()>;
}

/// The thread's own side.
struct Writer<D> {
    shared: Arc<Shared>,
    destination: D,
    format: LogFormat,
    chunk: Vec<u8>,
    /// A write broke off inside a line: the next one begins on a new line.
    torn: bool,
    losses: Losses,
}

impl<D: Destination> Writer<D> {
    fn new(shared: Arc<Shared>, destination: D, format: LogFormat) -> Self {
        Self {
            shared,
            destination,
            format,
            chunk: Vec::with_capacity(CHUNK_BYTES * 2),
            torn: false,
            losses: Losses::default(),
        }
    }

    /// Writes until the log is closed. Nothing is held back: each round ends with all of its lines written out.
    fn run(mut self) {
        let mut records = Vec::with_capacity(QUEUED_RECORDS_MAX);
        loop {
            let work = self.shared.take(&mut records);
            if work.reopen {
                self.reopen();
            }
            self.write_records(&mut records);
            self.losses.report(self.shared.counts());
            if work.closing {
                return self.shared.mark_ended();
            }
        }
    }

    fn reopen(&mut self) {
        match self.destination.reopen() {
            Ok(()) => self.torn = false,
            Err(error) => {
                tracing::error!(%error, "cannot reopen the access log; it goes on in the old file");
            }
        }
    }

    fn write_records(&mut self, records: &mut Vec<Entry>) {
        for entry in records.drain(..) {
            append_line(self.format, entry.ended, &entry.record, &mut self.chunk);
            if self.chunk.len() >= CHUNK_BYTES {
                self.write_chunk();
            }
        }
        self.write_chunk();
    }

    /// Writes the gathered lines, or as many as the destination takes, and counts them.
    fn write_chunk(&mut self) {
        let lines = line_feeds(&self.chunk);
        if lines == 0 {
            return;
        }
        if self.torn {
            self.chunk.insert(0, b'\n');
        }
        let written = self.write_to_destination();
        if let Some(last) = written.checked_sub(1) {
            self.torn = self.chunk[last] != b'\n';
        }
        let lost = line_feeds(&self.chunk[written..]).min(lines);
        self.shared.count_written(lines - lost);
        self.shared.count_dropped(lost);
        self.chunk.clear();
    }

    /// How many bytes went out before an error, or all of them. The rest is given up: what a full disk refuses now must
    /// not pile up, and a broken pipe stays broken.
    fn write_to_destination(&mut self) -> usize {
        let mut written = 0;
        while written < self.chunk.len() {
            match self.destination.write(&self.chunk[written..]) {
                Ok(0) => {
                    self.losses.cause = Some(ErrorKind::WriteZero.into());
                    break;
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.losses.cause = Some(error);
                    break;
                }
            }
        }
        written
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Tells the operator once when lines begin to be lost and once when that is over, however many are lost.
#[derive(Debug, Default)]
struct Losses {
    reported: AccessLogCounts,
    losing: bool,
    cause: Option<io::Error>,
}

/// What an operator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Losing,
    Recovered,
}

impl Losses {
    fn report(&mut self, counts: AccessLogCounts) {
        match self.turn(counts) {
            Some(Turn::Losing) => {
                tracing::warn!("access log lines are being lost: {}", self.cause());
            }
            Some(Turn::Recovered) => {
                tracing::info!(dropped = counts.dropped, "the access log is written again");
            }
            None => {}
        }
        self.cause = None;
    }

    /// A round in which nothing was written or lost says nothing.
    fn turn(&mut self, counts: AccessLogCounts) -> Option<Turn> {
        let before = std::mem::replace(&mut self.reported, counts);
        let lost = counts.dropped > before.dropped;
        let wrote = counts.written > before.written;
        match (self.losing, lost, wrote) {
            (false, true, _) => {
                self.losing = true;
                Some(Turn::Losing)
            }
            (true, false, true) => {
                self.losing = false;
                Some(Turn::Recovered)
            }
            _ => None,
        }
    }

    fn cause(&self) -> String {
        match &self.cause {
            Some(error) => error.to_string(),
            None => format!("{QUEUED_RECORDS_MAX} of them are waiting already"),
        }
    }
}

/// The real destinations.
#[derive(Debug)]
struct Target {
    file: File,
    /// Where to open it again; `None` for a standard stream.
    path: Option<PathBuf>,
}

impl Target {
    fn open(destination: &LogDestination) -> Result<Option<Self>, AccessLogError> {
        let opened = match destination {
            LogDestination::Off => return Ok(None),
            LogDestination::Stdout => Self::stream(io::stdout().as_fd()),
            LogDestination::Stderr => Self::stream(io::stderr().as_fd()),
            LogDestination::File(path) => Self::file(path),
        };
        opened
            .map(Some)
            .map_err(|source| AccessLogError::open(destination, source))
    }

    /// A descriptor of its own, past the buffer of the standard library: each write is one system call.
    fn stream(stream: impl AsFd) -> io::Result<Self> {
        Ok(Self {
            file: File::from(stream.as_fd().try_clone_to_owned()?),
            path: None,
        })
    }

    fn file(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: append_to(path)?,
            path: Some(path.to_owned()),
        })
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

/// Not blocking, so that a named pipe that nobody reads is an error at the start instead of a start that hangs.
fn append_to(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(FILE_MODE)
        .custom_flags(nonblocking)
        .open(path)
}

impl Destination for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_writable(&self.file)?,
                result => return result,
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = append_to(path)?;
        }
        Ok(())
    }
}

/// For a pipe or terminal that someone has made non-blocking: only this thread waits.
fn wait_writable(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::telemetry::reason::Reason;

    const LONG: Duration = Duration::from_secs(60);

    fn record(number: u64) -> SessionRecord {
        SessionRecord {
            listener: Arc::from("front"),
            cluster: Arc::from("web"),
            client: "192.0.2.7:50312".parse().unwrap(),
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

    /// A disk with room for so many bytes, shared with the test.
    struct SmallDisk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Destination for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock();
            let room = disk.1.min(bytes.len());
            if room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            disk.0.extend_from_slice(&bytes[..room]);
            disk.1 -= room;
            Ok(room)
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
        let log = AccessLog::spawn(disk, LogFormat::Text).unwrap();
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

    /// A disk that fills up in the middle of a line loses that line and the next; once there is room, lines are whole again.
    #[test]
    fn a_full_disk_tears_at_most_one_line() {
        let one_line = {
            let mut line = Vec::new();
            append_line(LogFormat::Text, Timestamp::now(), &record(1), &mut line);
            line.len()
        };
        let disk = Arc::new(Mutex::new((Vec::new(), one_line + 20)));
        let shared = Arc::new(Shared::new());
        let mut writer = Writer::new(
            Arc::clone(&shared),
            SmallDisk(Arc::clone(&disk)),
            LogFormat::Text,
        );
        let ended = Timestamp::now();
        let entry = |number| Entry {
            ended,
            record: record(number),
        };

        writer.write_records(&mut vec![entry(1), entry(2), entry(3)]);
        disk.lock().1 = usize::MAX;
        writer.write_records(&mut vec![entry(4)]);

        let text = String::from_utf8(disk.lock().0.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains(" bytes_up=1 "));
        assert_eq!(lines[1].len(), 20);
        assert!(lines[2].starts_with("time=") && lines[2].contains(" bytes_up=4 "));
        assert_eq!(shared.written.load(Ordering::Relaxed), 2);
        assert_eq!(shared.dropped.load(Ordering::Relaxed), 2);
    }

    /// However long a disk is full, the operator reads two lines; quiet rounds in between are no recovery.
    #[test]
    fn a_spell_of_losses_is_told_twice() {
        let mut losses = Losses::default();
        let rounds = [(1, 0), (1, 2), (1, 2), (1, 5), (2, 5), (3, 5)];

        let told =
            rounds.map(|(written, dropped)| losses.turn(AccessLogCounts { written, dropped }));

        let [losing, recovered] = [Turn::Losing, Turn::Recovered].map(Some);
        assert_eq!(told, [None, losing, None, None, recovered, None]);
    }

    /// A reader that is gone (a closed pipe) costs lines, never the process or a busy thread.
    #[test]
    fn a_broken_pipe_is_counted_line_by_line() {
        let (reader, pipe) = io::pipe().unwrap();
        drop(reader);
        let target = Target::stream(pipe).unwrap();
        let log = AccessLog::spawn(target, LogFormat::Json).unwrap();

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
        assert_eq!(mode & 0o777 & !FILE_MODE, 0, "{mode:o}");
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

        let error = AccessLog::start(&settings).unwrap_err().to_string();

        assert!(error.contains("/nonexistent/access.log"), "{error}");
    }

    fn start_on(path: &Path) -> AccessLog {
        let settings = AccessLogSettings {
            destination: LogDestination::File(path.to_owned()),
            format: LogFormat::Text,
        };
        AccessLog::start(&settings).unwrap().unwrap()
    }
}
