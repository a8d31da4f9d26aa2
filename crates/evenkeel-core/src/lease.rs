//! The right to use one endpoint, and what its holder reports about it.

use std::fmt;
use std::sync::Arc;

use crate::fault::{self, Fault};
use crate::stripe::Handle;
use crate::units::{Address, EndpointId, Time};

/// The right to use one endpoint until it is finished or dropped; a drop is [`Outcome::Abandoned`].
///
/// ```text
///   Begun ── established ──▶ Established ──┐
///     ├───── finish(Failed) ──▶ Failed ─────┤
///     └──────────── finish, drop ──────────┴──▶ Ended
/// ```
#[must_use = "a lease that is dropped at once gives its slot back"]
pub struct Lease {
    handle: Arc<Handle>,
    kind: LeaseKind,
    stage: Stage,
}

/// Why an endpoint was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    /// It was its turn.
    Ordinary,
    /// It is at effective weight 0, and this lease is to find out whether it is back.
    Trial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    Established,
    /// It has been reported as failed.
    Failed,
    Ended,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended as it should.
    Completed,
    /// The endpoint failed before its first answer byte (ignored for weight and ejection after `established`).
    Failed(Failure),
    /// Ended by the client, the operator or this machine: says nothing about the endpoint.
    Abandoned,
}

/// In which way an endpoint failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// There is no way to the address.
    Unreachable,
    /// The connection was not made in time.
    ConnectTimeout,
    /// It reset the connection before its first answer byte.
    Reset,
    /// It ended the connection before its first answer byte, though the client had sent something.
    Closed,
    /// Its first answer byte did not come in time.
    FirstByteTimeout,
}

impl Failure {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Refused,
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::Reset,
        Self::Closed,
        Self::FirstByteTimeout,
    ];
}

impl Lease {
    /// Of a slot that has been counted already, in the stripe of `handle`.
    pub(crate) const fn new(handle: Arc<Handle>, kind: LeaseKind) -> Self {
        Self {
            handle,
            kind,
            stage: Stage::Begun,
        }
    }

    /// The endpoint's identity.
    pub fn endpoint(&self) -> EndpointId {
        self.handle.endpoint.id()
    }

    /// The endpoint's name.
    pub fn name(&self) -> &Arc<str> {
        self.handle.endpoint.name()
    }

    /// Where the endpoint listens.
    pub fn address(&self) -> &Address {
        self.handle.endpoint.address()
    }

    /// The first answer byte arrived: a success. Later calls do nothing.
    pub fn established(&mut self, now: Time) {
        if self.stage != Stage::Begun {
            return;
        }
        self.stage = Stage::Established;
        self.handle.endpoint.count_established(self.handle.stripe);
        if self.handle.endpoint.is_unsettled()
            && let Some(cluster) = self.handle.endpoint.cluster()
        {
            cluster.note_success(&self.handle.endpoint, now);
        }
    }

    /// Ends the lease and gives the slot to whoever waits. The judgement comes first, so that it counts for that choice.
    pub fn finish(mut self, outcome: Outcome, now: Time) {
        if let (Outcome::Failed(failure), Stage::Begun) = (outcome, self.stage) {
            self.report(failure, now);
        }
        self.end(Some(now));
        if fault::injected(Fault::SlotFreedTwice) {
            self.stage = Stage::Begun;
        }
    }

    #[cold]
    fn report(&mut self, failure: Failure, now: Time) {
        self.stage = Stage::Failed;
        self.handle.endpoint.count_failure(failure);
        if let Some(cluster) = self.handle.endpoint.cluster() {
            cluster.note_failure(&self.handle.endpoint, failure, self.kind, now);
        }
    }

    fn end(&mut self, now: Option<Time>) {
        if self.stage == Stage::Begun {
            self.handle.endpoint.count_abandoned();
        }
        if self.stage != Stage::Ended {
            self.stage = Stage::Ended;
            self.handle.endpoint.release(self.handle.stripe, now);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("endpoint", self.name())
            .field("kind", &self.kind)
            .field("stage", &self.stage)
            .finish()
    }
}
