//! The raw form of `pool`.

use std::time::Duration;

use super::{Maybe, MaybeLimit};
use crate::config::read::TableReader;

/// `pool`.
#[derive(Debug, Default)]
pub(in crate::config) struct Pool {
    pub(in crate::config) max_in_flight: Maybe<u64>,
    pub(in crate::config) max_sockets: Maybe<u64>,
    pub(in crate::config) max_wait: MaybeLimit<Duration>,
    pub(in crate::config) max_waiters: Maybe<u64>,
    pub(in crate::config) min_idle: Maybe<u64>,
    pub(in crate::config) idle_timeout: MaybeLimit<Duration>,
    pub(in crate::config) max_lifetime: MaybeLimit<Duration>,
    pub(in crate::config) requests_max: Maybe<u64>,
}

impl Pool {
    pub(super) fn read(table: &TableReader<'_>) -> Self {
        Self {
            max_in_flight: table.whole("max_in_flight"),
            max_sockets: table.whole("max_sockets"),
            max_wait: table.duration("max_wait"),
            max_waiters: table.whole("max_waiters"),
            min_idle: table.whole("min_idle"),
            idle_timeout: table.duration("idle_timeout"),
            max_lifetime: table.duration("max_lifetime"),
            requests_max: table.whole("requests_max"),
        }
    }
}
