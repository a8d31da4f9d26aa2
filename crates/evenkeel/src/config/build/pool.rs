//! `pool` as settings. What is not written is the default of the settings.

use evenkeel_proxy::settings::PoolPolicy;

use super::{count, limit, most};
use crate::config::file::Pool;

pub(super) fn policy(written: &Pool) -> PoolPolicy {
    let default = PoolPolicy::default();
    PoolPolicy {
        max_sockets: most(&written.max_sockets),
        max_wait: limit(&[&written.max_wait], None).unwrap_or(default.max_wait),
        max_waiters: count(&written.max_waiters, default.max_waiters),
        min_idle: count(&written.min_idle, default.min_idle),
        idle_timeout: limit(&[&written.idle_timeout], None).unwrap_or(default.idle_timeout),
        max_lifetime: limit(&[&written.max_lifetime], default.max_lifetime),
        requests_max: most(&written.requests_max),
    }
}
