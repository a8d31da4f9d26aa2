//! The writer: the thread that takes records, makes lines of them, and hands these to the operating system.
//!
//! The only one that ever waits for a disk or a pipe. What cannot be written is given up and counted.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::AccessLogCounts;
use super::destination::Destination;
use super::queue::{Entry, QUEUED_RECORDS_MAX, Queue};
use crate::settings::LogFormat;
use crate::telemetry::format::append_line;

/// How many bytes of lines are gathered before they are written.
const CHUNK_BYTES: usize = 64 * 1024;

/// The thread's own side.
pub(super) struct Writer<D> {
    queue: Arc<Queue>,
    destination: D,
    format: LogFormat,
    chunk: Vec<u8>,
    /// A write broke off inside a line: the next one begins on a new line.
    torn: bool,
    losses: Losses,
}

impl<D: Destination> Writer<D> {
    pub(super) fn new(queue: Arc<Queue>, destination: D, format: LogFormat) -> Self {
        Self {
            queue,
            destination,
            format,
            chunk: Vec::with_capacity(CHUNK_BYTES * 2),
            torn: false,
            losses: Losses::default(),
        }
    }

    /// Writes until the log is closed. Nothing is held back: each round ends with all of its lines written out.
    pub(super) fn run(mut self) {
        let mut records = Vec::with_capacity(QUEUED_RECORDS_MAX);
        loop {
            let work = self.queue.take(&mut records);
            if work.reopen {
                self.reopen();
            }
            self.write_records(&mut records);
            self.losses.report(self.queue.counts());
            if work.closing {
                return self.queue.mark_ended();
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
        self.queue.count_written(lines - lost);
        self.queue.count_dropped(lost);
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use parking_lot::Mutex;

    use super::super::tests::record;
    use super::*;

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

    /// A disk that fills up in the middle of a line loses that line and the next; once there is room, lines are whole again.
    #[test]
    fn a_full_disk_tears_at_most_one_line() {
        let one_line = {
            let mut line = Vec::new();
            append_line(
                LogFormat::Text,
                Timestamp::now(),
                &record(1).into(),
                &mut line,
            );
            line.len()
        };
        let disk = Arc::new(Mutex::new((Vec::new(), one_line + 20)));
        let queue = Arc::new(Queue::new(Arc::default()));
        let mut writer = Writer::new(
            Arc::clone(&queue),
            SmallDisk(Arc::clone(&disk)),
            LogFormat::Text,
        );
        let ended = Timestamp::now();
        let entry = |number| Entry {
            ended,
            record: record(number).into(),
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
        let (written, dropped) = (2, 2);
        assert_eq!(queue.counts(), AccessLogCounts { written, dropped });
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
}
