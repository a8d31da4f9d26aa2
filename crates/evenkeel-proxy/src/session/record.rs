//! What a session remembers for its record, and the record itself.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Time;

use super::Session;
use crate::telemetry::reason::Reason;
use crate::telemetry::record::SessionRecord;

/// Where a session has been, and when.
pub(super) struct Trail {
    accepted: Time,
    /// Whether it is known which cluster it goes to.
    is_placed: bool,
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) queued: Duration,
    first_attempt: Option<Time>,
    connect: Option<Duration>,
    first_byte: Option<Duration>,
}

impl Trail {
    pub(super) const fn begin(accepted: Time) -> Self {
        Self {
            accepted,
            is_placed: true,
            endpoint: None,
            queued: Duration::ZERO,
            first_attempt: None,
            connect: None,
            first_byte: None,
        }
    }

    /// Where it goes depends on what is still to be read.
    pub(super) const fn not_yet_placed(mut self) -> Self {
        self.is_placed = false;
        self
    }

    /// It is known which cluster it goes to.
    pub(super) const fn placed(&mut self) {
        self.is_placed = true;
    }

    /// An endpoint is tried.
    pub(super) fn trying(&mut self, endpoint: &Arc<str>, now: Time) {
        self.endpoint = Some(Arc::clone(endpoint));
        self.first_attempt.get_or_insert(now);
    }

    /// The connection is made. One that is replaced later counts from the same first attempt.
    pub(super) fn connected(&mut self, now: Time) {
        self.connect = self.first_attempt.map(|first| now.since(first));
    }

    /// The first answer byte has come.
    pub(super) fn answered(&mut self, now: Time) {
        self.first_byte = Some(now.since(self.accepted));
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.first_byte.is_some()
    }
}

impl Session {
    /// What is known at the end.
    pub(super) fn record(&self, reason: Reason, now: Time) -> SessionRecord {
        SessionRecord {
            listener: Arc::clone(&self.listener.settings.name),
            cluster: self
                .trail
                .is_placed
                .then(|| Arc::clone(self.placement.tier.name())),
            client: self.client(),
            peer: self.announced.as_ref().map(|_| self.peer),
            endpoint: self.trail.endpoint.clone(),
            attempts: self.tries.count(),
            bytes_up: self.up.moved(),
            bytes_down: self.down.moved(),
            queued: self.trail.queued,
            connect: self.trail.connect,
            first_byte: self.trail.first_byte,
            total: now.since(self.trail.accepted),
            reason,
        }
    }
}
