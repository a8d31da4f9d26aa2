//! `pool` as TOML. What its `max_in_flight` led to is with the endpoints.

use evenkeel_proxy::settings::PoolPolicy;

use super::{duration, duration_or_off, inline, most};

pub(super) fn pool(policy: &PoolPolicy) -> String {
    let mut keys = vec![
        ("max_wait", duration(policy.max_wait)),
        ("max_waiters", policy.max_waiters.to_string()),
        ("min_idle", policy.min_idle.to_string()),
        ("idle_timeout", duration(policy.idle_timeout)),
        ("max_lifetime", duration_or_off(policy.max_lifetime)),
    ];
    keys.extend(most(policy.max_sockets).map(|most| ("max_sockets", most)));
    keys.extend(most(policy.requests_max).map(|most| ("requests_max", most)));
    inline(&keys)
}
