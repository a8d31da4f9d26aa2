//! `/metrics`: what the process and its traffic came to, in Prometheus's text format.
//!
//! Figures are read when they are asked for. Nothing is counted for this page alone: sessions are counted at their end, and
//! the rest is state that is there anyway.

mod clusters;
mod families;
mod listeners;
mod names;
mod probes;
mod process;
mod text;

use crate::desk::Desk;
use families as family;
use text::Page;

/// The whole page.
pub(super) fn write(desk: &Desk) -> String {
    let mut page = Page::default();
    process::write(desk, &mut page);
    listeners::write(desk, &mut page);
    clusters::write(desk, &mut page);
    names::write(desk, &mut page);
    write_splices(desk, &mut page);
    write_log(desk, &mut page);
    page.finish()
}

fn write_splices(desk: &Desk, page: &mut Page) {
    let spliced = desk.proxy.spliced();
    page.family(&family::SPLICE_BYTES).put_one(spliced.bytes);
    page.family(&family::SPLICE_PIPES).put_one(spliced.pipes);
    page.family(&family::SPLICE_PIPES_MAX)
        .put_one(spliced.pipes_max);
    let mut copied = page.family(&family::SPLICE_COPIED);
    copied.put(&["over_budget"], spliced.over_budget);
    copied.put(&["refused"], spliced.refused);
    page.family(&family::SPLICE_SMALLER)
        .put_one(spliced.smaller);
}

fn write_log(desk: &Desk, page: &mut Page) {
    let mut lines = page.family(&family::ACCESS_LOG_LINES);
    if let Some(counts) = desk.telemetry.access_log_counts() {
        lines.put(&["written"], counts.written);
        lines.put(&["dropped"], counts.dropped);
    }
}
