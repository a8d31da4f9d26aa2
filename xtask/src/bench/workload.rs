//! What is measured, in what units, and what is promised of it.

use evenkeel_bench::Load;

use super::peer::Rival;

/// One load, at one number of connections.
pub(crate) struct Workload {
    /// Its name on the command line and in JSON.
    pub(crate) name: &'static str,
    /// What it is, for a reader.
    pub(crate) title: &'static str,
    pub(crate) load: Load,
    pub(crate) connections: usize,
    pub(crate) work: Work,
    pub(crate) targets: &'static [Target],
}

/// What its work consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Exchanges: thousands a second, each some microseconds of CPU.
    Exchanges,
    /// Bytes: GB a second (10^9 bytes), each GB some milliseconds of CPU.
    Bytes,
    /// Idle connections, each some bytes of memory.
    Idle,
}

/// A figure of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    /// Operations a second, or GB a second.
    Throughput,
    /// Microseconds that half of the exchanges do not exceed.
    P50,
    /// Microseconds that 99 of 100 exchanges do not exceed.
    P99,
    /// Proxy CPU per unit of work: microseconds an exchange, or milliseconds a GB.
    Cpu,
    /// How much of its core the proxy was busy, in percent.
    Busy,
    /// Resident memory of the proxy at the end, in MiB.
    Resident,
    /// Resident memory that an idle connection adds (and what it holds to an endpoint), in bytes.
    IdleMemory,
}

/// The smaller the better, for all figures but one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

impl Figure {
    pub(crate) const ALL: [Self; 7] = [
        Self::Throughput,
        Self::P50,
        Self::P99,
        Self::Cpu,
        Self::Busy,
        Self::Resident,
        Self::IdleMemory,
    ];

    /// Those that are compared round by round.
    pub(crate) const COMPARED: [Self; 5] = [
        Self::Throughput,
        Self::Cpu,
        Self::P50,
        Self::P99,
        Self::IdleMemory,
    ];

    pub(crate) const fn better(self) -> Better {
        match self {
            Self::Throughput => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// The head of its column.
    pub(crate) const fn heading(self, work: Work) -> &'static str {
        match (self, work) {
            (Self::Throughput, Work::Bytes) => "GB/s",
            (Self::Throughput, Work::Exchanges) => "ops/s",
            (Self::Throughput, Work::Idle) => "opened/s",
            (Self::P50, _) => "p50 µs",
            (Self::P99, _) => "p99 µs",
            (Self::Cpu, Work::Bytes) => "CPU ms/GB",
            (Self::Cpu, _) => "CPU µs/op",
            (Self::Busy, _) => "core %",
            (Self::Resident, _) => "RSS MiB",
            (Self::IdleMemory, _) => "B/idle",
        }
    }

    /// Its name in JSON.
    pub(crate) const fn key(self, work: Work) -> &'static str {
        match (self, work) {
            (Self::Throughput, Work::Bytes) => "gigabytes_per_second",
            (Self::Throughput, _) => "operations_per_second",
            (Self::P50, _) => "p50_micros",
            (Self::P99, _) => "p99_micros",
            (Self::Cpu, Work::Bytes) => "cpu_millis_per_gigabyte",
            (Self::Cpu, _) => "cpu_micros_per_operation",
            (Self::Busy, _) => "core_percent",
            (Self::Resident, _) => "resident_mib",
            (Self::IdleMemory, _) => "bytes_per_idle_connection",
        }
    }

    /// The name of its ratio in JSON.
    pub(crate) const fn ratio_key(self) -> &'static str {
        match self {
            Self::Throughput => "throughput_ratio",
            Self::P50 => "p50_ratio",
            Self::P99 => "p99_ratio",
            Self::Cpu => "cpu_ratio",
            Self::Busy => "busy_ratio",
            Self::Resident => "resident_ratio",
            Self::IdleMemory => "memory_ratio",
        }
    }

    /// What it is called in a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Cpu => "CPU",
            Self::Busy => "core use",
            Self::Resident => "memory",
            Self::IdleMemory => "idle memory",
        }
    }
}

/// What a figure of evenkeel is promised to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) figure: Figure,
    pub(crate) over: Over,
    pub(crate) at_most: f64,
}

impl Target {
    /// A share of what a rival needs, in the same round.
    pub(crate) const fn over(rival: Rival, figure: Figure, at_most: f64) -> Self {
        Self {
            figure,
            over: Over::Rival(rival),
            at_most,
        }
    }

    /// A figure of its own.
    pub(crate) const fn own(figure: Figure, at_most: f64) -> Self {
        Self {
            figure,
            over: Over::Nothing,
            at_most,
        }
    }
}

/// What the figure is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The same figure of a rival, in the same round.
    Rival(Rival),
    /// Nothing: the figure itself is meant.
    Nothing,
}
