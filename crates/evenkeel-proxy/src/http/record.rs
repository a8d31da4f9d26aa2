//! What an exchange remembers for its record, and the record itself.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Time;

use super::session::Session;
use crate::telemetry::reason::Reason;
use crate::telemetry::record::{ExchangeRecord, RequestLine, SessionRecord};
use crate::tier::Placement;

/// Where an exchange has been, and when.
pub(super) struct Trail {
    pub(super) began: Time,
    endpoint: Option<Arc<str>>,
    pub(super) queued: Duration,
    first_attempt: Option<Time>,
    connect: Option<Duration>,
}

/// What an exchange came to.
pub(super) struct Account {
    pub(super) reason: Reason,
    pub(super) status: Option<u16>,
    pub(super) attempts: u32,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) first_byte: Option<Time>,
}

impl Account {
    /// Of an exchange that no endpoint had a part in.
    pub(super) const fn of_answer(status: u16, reason: Reason) -> Self {
        Self {
            reason,
            status: Some(status),
            attempts: 0,
            bytes_up: 0,
            bytes_down: 0,
            first_byte: None,
        }
    }
}

impl Trail {
    pub(super) const fn begin(began: Time) -> Self {
        Self {
            began,
            endpoint: None,
            queued: Duration::ZERO,
            first_attempt: None,
            connect: None,
        }
    }

    /// An endpoint is tried.
    pub(super) fn trying(&mut self, endpoint: &Arc<str>, now: Time) {
        self.endpoint = Some(Arc::clone(endpoint));
        self.first_attempt.get_or_insert(now);
    }

    /// There is a connection. One that is replaced later counts from the same first attempt.
    pub(super) fn connected(&mut self, now: Time) {
        self.connect = self.first_attempt.map(|first| now.since(first));
    }
}

impl Session {
    /// Leaves the record of an exchange, and counts it as a part of the connection.
    pub(super) fn record_exchange(
        &mut self,
        trail: Trail,
        placement: Option<&Placement>,
        request: Option<RequestLine>,
        account: Account,
    ) {
        self.bytes_up += account.bytes_up;
        self.bytes_down += account.bytes_down;
        let blank = self.blank_record(account.reason);
        let cluster = placement.map(|placement| Arc::clone(placement.tier.name()));
        let session = SessionRecord {
            cluster,
            endpoint: trail.endpoint,
            attempts: account.attempts,
            bytes_up: account.bytes_up,
            bytes_down: account.bytes_down,
            queued: trail.queued,
            connect: trail.connect,
            first_byte: account.first_byte.map(|first| first.since(trail.began)),
            total: self.alarm.now().since(trail.began),
            ..blank
        };
        let sink = &self.standing.shared().sink;
        sink.exchange_ended(ExchangeRecord {
            session,
            request,
            status: account.status,
        });
    }
}
