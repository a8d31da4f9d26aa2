//! `pool` of a cluster: its connections that carry one exchange after the other.

use evenkeel_proxy::settings::PoolPolicy;

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::{CONNECTIONS_MAX, duration};

/// The most exchanges that a connection may be limited to.
const REQUESTS_MAX: u64 = 1_000_000_000;

const MOST: Form = Form::Whole {
    min: 1,
    max: CONNECTIONS_MAX,
};

pub(in crate::config) static POOL: Table = Table {
    title: "pool of [cluster.NAME]",
    about: "Connections to endpoints that carry one exchange after the other. Only sessions of HTTP listeners use it.",
    keys: &[
        Key::new(
            "max_in_flight",
            MOST,
            Absent::Means("no limit"),
            "How many exchanges an endpoint may have at one time that has no `max_connections` of its own; more wait or go elsewhere.",
        )
        .elsewhere(&["max_requests", "max_concurrent_requests"]),
        Key::new(
            "max_sockets",
            MOST,
            Absent::Means("no limit"),
            "How many connections there may be to an endpoint, of all workers together, idle ones included.",
        )
        .elsewhere(&["pool-max-conn", "size", "max_size"]),
        Key::new(
            "max_wait",
            duration(Off::Refused),
            Absent::Value("\"5s\""),
            "How long an exchange may wait for a connection when there are `max_sockets`.",
        ),
        Key::new(
            "max_waiters",
            Form::Whole {
                min: 0,
                max: PoolPolicy::WAITERS_MAX as u64,
            },
            Absent::Value("1024"),
            "How many exchanges may wait so for one endpoint.",
        ),
        Key::new(
            "min_idle",
            Form::Whole {
                min: 0,
                max: PoolPolicy::IDLE_MAX as u64,
            },
            Absent::Value("0"),
            "How many idle connections to an endpoint each worker keeps beyond `idle_timeout`; none are opened in advance.",
        )
        .elsewhere(&["keepalive"]),
        Key::new(
            "idle_timeout",
            duration(Off::Refused),
            Absent::Value("\"55s\""),
            "How long a connection may be idle; best less than the endpoint's own limit.",
        )
        .elsewhere(&["keepalive_timeout", "pool-purge-delay"]),
        Key::new(
            "max_lifetime",
            duration(Off::Allowed),
            Absent::Value("\"off\""),
            "How old a connection may grow before it is used no more; up to a tenth less.",
        )
        .elsewhere(&["keepalive_time"]),
        Key::new(
            "requests_max",
            Form::Whole {
                min: 1,
                max: REQUESTS_MAX,
            },
            Absent::Means("no limit"),
            "How many exchanges a connection carries.",
        )
        .elsewhere(&["keepalive_requests"]),
    ],
};
