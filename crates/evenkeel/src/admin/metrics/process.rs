//! Figures of the process as a whole: what it is, what it uses, how its workers are.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use evenkeel_proxy::settings::Layer;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::family;
use super::text::Page;
use crate::admin::health;
use crate::desk::{Desk, VERSION};
use crate::reload;

pub(super) fn write(desk: &Desk, page: &mut Page) {
    page.family(&family::BUILD_INFO).put(&[VERSION], 1);
    let started = desk.started_at.duration_since(UNIX_EPOCH);
    page.family(&family::START_TIME)
        .put_one(started.unwrap_or_default().as_secs_f64());
    write_use(page);
    let is_ready = health::ready(&desk.vitals()).is_ok();
    page.family(&family::READY).put_one(u8::from(is_ready));
    page.family(&family::SESSIONS_MAX)
        .put_one(desk.proxy.sessions_max());
    write_reloads(&desk.reloads.counts(), page);
    write_workers(desk, page);
}

fn write_reloads(counts: &reload::Counts, page: &mut Page) {
    let mut reloads = page.family(&family::RELOADS);
    reloads.put(&["done"], counts.done);
    reloads.put(&["unchanged"], counts.unchanged);
    reloads.put(&["failed"], counts.failed);
    page.family(&family::RELOAD_SUCCESS)
        .put_one(counts.last_success);
}

/// A figure that the kernel does not give is left out.
fn write_use(page: &mut Page) {
    page.family(&family::CPU_TIME)
        .put_one(cpu_time().as_secs_f64());
    let mut resident = page.family(&family::RESIDENT);
    if let Some(bytes) = resident_bytes() {
        resident.put(&[], bytes);
    }
    let mut open = page.family(&family::OPEN_DESCRIPTORS);
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        open.put(&[], descriptors.count());
    }
    let mut max = page.family(&family::MAX_DESCRIPTORS);
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        max.put(&[], limit);
    }
}

fn write_workers(desk: &Desk, page: &mut Page) {
    let mut up = page.family(&family::WORKER_UP);
    for layer in LAYERS {
        for (worker, pulse) in desk.proxy.worker_pulses(layer).into_iter().enumerate() {
            up.put(
                &[&worker_name(layer, worker)],
                u8::from(health::is_up(pulse)),
            );
        }
    }
    let mut sessions = page.family(&family::WORKER_SESSIONS);
    for layer in LAYERS {
        for (worker, count) in desk.proxy.worker_sessions(layer).into_iter().enumerate() {
            sessions.put(&[&worker_name(layer, worker)], count);
        }
    }
}

const LAYERS: [Layer; 2] = [Layer::Transport, Layer::Application];

/// The number of the worker's thread, and its kind where it is not the reactor's.
fn worker_name(layer: Layer, number: usize) -> String {
    match layer {
        Layer::Transport => number.to_string(),
        Layer::Application => format!("layer7-{number}"),
    }
}

fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
