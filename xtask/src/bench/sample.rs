//! One measurement as figures in the units of its load.

use evenkeel_bench::Load;

use super::inside::Measurement;
use super::workload::{Figure, Work, Workload};

const NANOS_PER_SECOND: f64 = 1e9;
const NANOS_PER_MICRO: f64 = 1e3;
const NANOS_PER_MILLI: f64 = 1e6;
const BYTES_PER_GIGABYTE: f64 = 1e9;
const BYTES_PER_MIB: f64 = 1_048_576.0;

/// One measurement of one peer under one load.
pub(crate) struct Sample {
    work: Work,
    load: Load,
    measurement: Measurement,
}

impl Sample {
    pub(crate) const fn new(workload: &Workload, measurement: Measurement) -> Self {
        Self {
            work: workload.work,
            load: workload.load,
            measurement,
        }
    }

    /// None where the load or the peer has no such figure.
    pub(crate) fn figure(&self, figure: Figure) -> Option<f64> {
        let figures = &self.measurement.figures;
        let usage = figures.usage;
        let latency = figures.latency;
        match figure {
            Figure::Throughput => {
                Some(self.work_units() / (count(figures.window_nanos) / NANOS_PER_SECOND))
            }
            Figure::P50 => latency.map(|latency| count(latency.p50_nanos) / NANOS_PER_MICRO),
            Figure::P99 => latency.map(|latency| count(latency.p99_nanos) / NANOS_PER_MICRO),
            Figure::Cpu => self.cpu(),
            Figure::Busy => {
                usage.map(|usage| 100.0 * count(usage.cpu_nanos) / count(figures.window_nanos))
            }
            Figure::Resident => usage.map(|usage| count(usage.resident_bytes) / BYTES_PER_MIB),
            Figure::IdleMemory => self.idle_memory(),
        }
    }

    /// The share of bytes that moved by splice, where the peer says it.
    pub(crate) const fn spliced_share(&self) -> Option<f64> {
        self.measurement.spliced_share
    }

    /// The share of connections, or of exchanges of HTTP, that the peer's log has a line for.
    pub(crate) fn logged_share(&self) -> Option<f64> {
        let lines = self.measurement.log_lines?;
        let due = match self.load {
            Load::Tcp(_) => self.measurement.figures.connections,
            Load::Http(_) => self.measurement.figures.exchanges,
        };
        Some(count(lines) / count(due))
    }

    fn work_units(&self) -> f64 {
        let work = count(self.measurement.figures.work);
        match self.work {
            Work::Exchanges | Work::Idle => work,
            Work::Bytes => work / BYTES_PER_GIGABYTE,
        }
    }

    /// Opening idle connections is measured as another load; their CPU would say nothing.
    fn cpu(&self) -> Option<f64> {
        let nanos = count(self.measurement.figures.usage?.cpu_nanos);
        match self.work {
            Work::Exchanges => Some(nanos / NANOS_PER_MICRO / self.work_units()),
            Work::Bytes => Some(nanos / NANOS_PER_MILLI / self.work_units()),
            Work::Idle => None,
        }
    }

    fn idle_memory(&self) -> Option<f64> {
        let growth = count(self.measurement.figures.usage?.resident_growth_bytes);
        (self.work == Work::Idle).then(|| growth / self.work_units())
    }
}

/// Exact up to 2^53: 104 days in nanoseconds, 9 PB.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted here stays below 2^53"
)]
const fn count(number: u64) -> f64 {
    number as f64
}
