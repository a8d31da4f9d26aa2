//! What other processes use of the machine, as the kernel accounts for it.
//!
//! CPU time is the scheduler's own account of each thread (`schedstat`, in nanoseconds): `stat` counts ticks of 10 ms, which
//! is 1 % of a window of one second.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::plan::Usage;

/// The processes that are watched.
pub(crate) struct Watched {
    processes: Vec<u32>,
}

/// What they had used at one moment.
pub(crate) struct Reading {
    cpu_nanos_by_thread: BTreeMap<PathBuf, u64>,
    resident_bytes: u64,
}

impl Watched {
    pub(crate) fn new(processes: &[u32]) -> Self {
        Self {
            processes: processes.to_vec(),
        }
    }

    /// None if nothing is watched.
    pub(crate) fn read(&self) -> Result<Option<Reading>> {
        if self.processes.is_empty() {
            return Ok(None);
        }
        let mut reading = Reading {
            cpu_nanos_by_thread: BTreeMap::new(),
            resident_bytes: 0,
        };
        for process in &self.processes {
            reading
                .add(&Path::new("/proc").join(process.to_string()))
                .with_context(|| format!("the watched process {process}"))?;
        }
        Ok(Some(reading))
    }
}

impl Reading {
    fn add(&mut self, process: &Path) -> Result<()> {
        for thread in fs::read_dir(process.join("task"))? {
            let thread = thread?.path();
            if let Some(nanos) = cpu_nanos(&thread) {
                self.cpu_nanos_by_thread.insert(thread, nanos);
            }
        }
        self.resident_bytes += resident_bytes(process)?;
        Ok(())
    }

    /// What was used from one reading to the next. A thread that ended in between takes its last stretch with it.
    pub(crate) fn used_since(&self, before: &Self) -> Usage {
        let cpu_nanos = self.cpu_nanos_by_thread.iter().map(|(thread, nanos)| {
            let earlier = before.cpu_nanos_by_thread.get(thread);
            nanos.saturating_sub(earlier.copied().unwrap_or(0))
        });
        Usage {
            cpu_nanos: cpu_nanos.sum(),
            resident_bytes: self.resident_bytes,
            resident_growth_bytes: self.resident_bytes.saturating_sub(before.resident_bytes),
        }
    }
}

/// The first of the numbers in `schedstat`: time on a core. None if the thread has ended meanwhile.
fn cpu_nanos(thread: &Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn resident_bytes(process: &Path) -> Result<u64> {
    let status = fs::read_to_string(process.join("status"))?;
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else {
        bail!("it has ended");
    };
    let kib = line
        .split_whitespace()
        .next()
        .and_then(|number| number.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).context("unreadable VmRSS")
}
