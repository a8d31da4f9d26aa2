//! Rounds: in each of them everything is measured once, the peers of a load right after each other in changing order, so that
//! what changes slowly on the machine meets all of them alike; ratios are taken within a round.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use fastrand::Rng;

use super::inside::{Measurement, Probe, Programs, Request};
use super::isolation;
use super::options::Options;
use super::peer::Peer;
use super::process::wait_until;
use super::sample::Sample;
use super::workload::{Figure, Workload};

/// The order of the peers is the same for every run of the bench.
const SEED: u64 = 1;

/// How long a measurement may take beside its load: to start a proxy, open thousands of connections, and let all of it end.
const SURROUNDINGS_MAX: Duration = Duration::from_secs(60);

/// What was measured under one load.
pub(crate) struct Results {
    pub(crate) workload: &'static Workload,
    /// By peer, then by round. A measurement that failed is not there.
    pub(crate) samples: BTreeMap<Peer, BTreeMap<usize, Sample>>,
    pub(crate) failures: usize,
}

/// Measures everything, and tells about it on the standard error.
pub(crate) fn run(options: &Options, programs: &Programs) -> Result<Vec<Results>> {
    let folder = folder(programs)?;
    let mut results: Vec<Results> = options
        .workloads
        .iter()
        .copied()
        .map(Results::new)
        .collect();
    let mut random = Rng::with_seed(SEED);
    for round in 1..=options.rounds {
        for results in &mut results {
            let mut peers = options.peers_for(results.workload);
            random.shuffle(&mut peers);
            for peer in peers {
                let request = request(options, results.workload, peer, programs, &folder);
                results.add(round, peer, measure(&request));
            }
        }
    }
    Ok(results)
}

/// Beside the programs; afterwards it has the files of the last measurement.
pub(crate) fn folder(programs: &Programs) -> Result<PathBuf> {
    let built = programs
        .load
        .parent()
        .context("the programs lie in no folder")?;
    Ok(built.join("bench"))
}

/// What is to be measured, for figures.
pub(crate) fn request(
    options: &Options,
    workload: &Workload,
    peer: Peer,
    programs: &Programs,
    folder: &Path,
) -> Request {
    Request {
        peer,
        load: workload.load,
        connections: workload.connections,
        warm_up_millis: millis(options.warm_up),
        window_millis: millis(options.window),
        probe: Probe::Accounts,
        programs: programs.clone(),
        folder: folder.to_owned(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Results {
    const fn new(workload: &'static Workload) -> Self {
        Self {
            workload,
            samples: BTreeMap::new(),
            failures: 0,
        }
    }

    fn add(&mut self, round: usize, peer: Peer, measured: Result<Measurement>) {
        let who = format!("round {round}, {}, {}", self.workload.name, peer.name());
        match measured {
            Ok(measurement) => {
                let sample = Sample::new(self.workload, measurement);
                eprintln!("{who}: {}", tell(&sample, self.workload));
                self.samples.entry(peer).or_default().insert(round, sample);
            }
            Err(error) => {
                eprintln!("{who}: FAILED: {error:#}");
                self.failures += 1;
            }
        }
    }
}

fn tell(sample: &Sample, workload: &Workload) -> String {
    let figures = [
        Figure::Throughput,
        Figure::P99,
        Figure::Cpu,
        Figure::IdleMemory,
    ];
    let words = figures.into_iter().filter_map(|figure| {
        let value = sample.figure(figure)?;
        Some(format!("{value:.2} {}", figure.heading(workload.work)))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// One measurement, in namespaces of its own.
pub(crate) fn measure(request: &Request) -> Result<Measurement> {
    let mut enter = isolation::enter(&["bench-inside", &serde_json::to_string(request)?])?;
    enter
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = enter.spawn().context("cannot start setpriv")?;
    let load = Duration::from_millis(request.warm_up_millis + request.window_millis);
    let ended = finish(&mut child, load + SURROUNDINGS_MAX);
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let output = ended?;
    serde_json::from_str(&output).context("no measurement")
}

/// What it prints is a line or two, which a pipe holds until it has ended.
fn finish(child: &mut Child, patience: Duration) -> Result<String> {
    let mut status = None;
    wait_until("the measurement ends", patience, || {
        status = child.try_wait()?;
        Ok(status.is_some())
    })?;
    if !status.is_some_and(|status| status.success()) {
        bail!("{}", text(child.stderr.take())?.trim());
    }
    text(child.stdout.take())
}

fn text(pipe: Option<impl Read>) -> Result<String> {
    let mut text = String::new();
    let mut pipe = pipe.ok_or_else(|| anyhow!("not piped"))?;
    pipe.read_to_string(&mut text)?;
    Ok(text)
}
