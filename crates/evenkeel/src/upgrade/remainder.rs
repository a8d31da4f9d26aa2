//! What the process before still has to finish: heard from it by the control plane, told by `status`.

use evenkeel_proxy::control::upgrade_report::PredecessorReport;
use parking_lot::Mutex;

/// `None` where there is no such process, or none any more.
#[derive(Debug, Default)]
pub(crate) struct Remainder(Mutex<Option<PredecessorReport>>);

impl Remainder {
    /// As it was heard last.
    pub(crate) fn report(&self) -> Option<PredecessorReport> {
        *self.0.lock()
    }

    /// As it is now.
    pub(crate) fn note(&self, now: Option<PredecessorReport>) {
        *self.0.lock() = now;
    }
}
