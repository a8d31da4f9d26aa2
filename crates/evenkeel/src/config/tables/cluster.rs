//! `[cluster.NAME]` and what it holds.

use evenkeel_core::units::Weight;
use evenkeel_core::{ClusterSpec, Failback, WhenNone};
use evenkeel_proxy::discovery::Family;
use evenkeel_proxy::settings::{ClusterSettings, KeySource, OnDown};

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::super::words::{BalanceName, HeaderName, names};
use super::duration;
use super::health::HEALTH;
use super::pool::POOL;
use super::timeouts::{CLUSTER_TIMEOUTS, INHERITED};

/// The most endpoints in one cluster.
pub(in crate::config) const ENDPOINTS_MAX: usize = ClusterSpec::ENDPOINTS_MAX;
/// The most sessions that may wait in one cluster.
pub(in crate::config) const QUEUE_MAX: u64 = 1_000_000;
/// The most connections an endpoint may be limited to: far above what one address and port can hold.
pub(in crate::config) const CONNECTIONS_MAX: u64 = 1_000_000;
/// The most failures in a row that may be waited for.
pub(in crate::config) const FAILURES_MAX: u64 = 1_000_000;
/// A bounded load above this is no bound.
pub(in crate::config) const BOUNDED_LOAD_PERCENT_MAX: u64 = 10_000;

pub(in crate::config) static CLUSTER: Table = Table {
    title: "[cluster.NAME]",
    about: "A set of interchangeable endpoints, and how sessions are put onto them.",
    keys: &[
        Key::new(
            "balance",
            Form::Word(names::<BalanceName>),
            Absent::Value("\"round-robin\""),
            "Who gets the next session.",
        )
        .elsewhere(&["algorithm", "lb_policy", "policy", "strategy"]),
        Key::new(
            "key",
            Form::Word(names::<KeySource>),
            Absent::Means("required with `hash`"),
            "What `hash` goes by. Only with `balance = \"hash\"`.",
        ),
        Key::new(
            "bounded_load",
            Form::Percent {
                min: 100,
                max: BOUNDED_LOAD_PERCENT_MAX,
                off: Off::Allowed,
            },
            Absent::Value("\"off\""),
            "An endpoint above this share of its fair part is passed over. Only with `source-hash` and `hash`.",
        ),
        Key::new(
            "endpoints",
            Form::Endpoints(&ENDPOINT),
            Absent::Error,
            "The endpoints; at least one.",
        )
        .elsewhere(&[
            "servers",
            "server",
            "backends",
            "hosts",
            "nodes",
            "members",
            "targets",
            "upstreams",
        ]),
        Key::new(
            "queue_max",
            Form::Whole {
                min: 0,
                max: QUEUE_MAX,
            },
            Absent::Value("1024"),
            "How many sessions may wait for a free slot at one time.",
        )
        .elsewhere(&["queue_size", "maxqueue"]),
        Key::new(
            "attempts",
            Form::Whole {
                min: 1,
                max: ClusterSettings::ATTEMPTS_MAX as u64,
            },
            Absent::Value("3"),
            "How many endpoints a session tries before its client is told.",
        )
        .elsewhere(&["retries", "tries", "retry"]),
        Key::new(
            "replay",
            Form::Size {
                max: ClusterSettings::REPLAY_MAX as u64,
                off: Off::Allowed,
            },
            Absent::Value("\"off\""),
            "How many bytes of a client are kept, until its first answer byte, to be sent again to another endpoint.",
        ),
        Key::new(
            "proxy_protocol",
            Form::Word(names::<HeaderName>),
            Absent::Value("\"off\""),
            "Which PROXY header each connection to an endpoint begins with, to say whom it is for.",
        )
        .elsewhere(&[
            "send_proxy",
            "send-proxy",
            "send-proxy-v2",
            "send_proxy_protocol",
        ]),
        Key::new(
            "pool",
            Form::Table(&POOL),
            Absent::Means("its defaults"),
            "Connections to endpoints that carry one exchange after the other.",
        ),
        Key::new(
            "slow_start",
            duration(Off::Allowed),
            Absent::Value("\"off\""),
            "How long a new or returned endpoint takes to reach its weight.",
        )
        .elsewhere(&["slowstart", "warmup"]),
        Key::new(
            "ejection",
            Form::WordOrTable {
                word: "off",
                table: &EJECTION,
            },
            Absent::Means("on, with its defaults"),
            "When failures in a row take an endpoint out for a time.",
        )
        .elsewhere(&["outlier_detection", "circuit_breaker"]),
        Key::new(
            "trials",
            Form::Table(&TRIALS),
            Absent::Means("its defaults"),
            "How an endpoint that has faded out is tried again.",
        ),
        Key::new(
            "health",
            Form::Table(&HEALTH),
            Absent::Means("nothing is asked"),
            "How endpoints are probed.",
        )
        .elsewhere(&["health_check", "healthcheck", "check", "option"]),
        Key::new(
            "on_down",
            Form::Word(names::<OnDown>),
            Absent::Value("\"keep\""),
            "What becomes of an endpoint's sessions when its probes find it down. Only with `health`.",
        )
        .elsewhere(&["on-marked-down"]),
        Key::new(
            "when_none",
            Form::Word(names::<WhenNone>),
            Absent::Value("\"fail\""),
            "What happens when no endpoint is usable.",
        ),
        Key::new(
            "failback",
            Form::Word(names::<Failback>),
            Absent::Value("\"auto\""),
            "Who has the work when primaries return while backups have it.",
        ),
        Key::new(
            "timeouts",
            Form::Table(&CLUSTER_TIMEOUTS),
            INHERITED,
            "How long an endpoint may take for what.",
        )
        .elsewhere(&["timeout"]),
    ],
};

pub(in crate::config) static ENDPOINT: Table = Table {
    title: "endpoints of [cluster.NAME]",
    about: "One upstream address. A plain string is a table with just that address.",
    keys: &[
        Key::new(
            "address",
            Form::AddressOrName,
            Absent::Means("required without `srv`"),
            "Where it listens. A name stands for as many endpoints as it has addresses.",
        )
        .elsewhere(&["addr", "server", "host", "ip", "url", "bind", "target"]),
        Key::new(
            "srv",
            Form::Service,
            Absent::Means("none"),
            "Instead of `address`: the name of SRV records, which bring hosts, ports, weights and priorities.",
        )
        .elsewhere(&["service", "dns_srv"]),
        Key::new(
            "family",
            Form::Word(names::<Family>),
            Absent::Means("`\"prefer-ipv4\"`"),
            "Which addresses of a name count. Only with a name.",
        )
        .elsewhere(&["resolve-prefer", "ip_version", "dns_lookup_family"]),
        Key::new(
            "name",
            Form::Name,
            Absent::Means("its address, or the name in it"),
            "Unique in its cluster. Hashes and kept state go by it; endpoints found by a name are `NAME/ADDRESS`.",
        )
        .elsewhere(&["id", "label"]),
        Key::new(
            "weight",
            Form::Whole {
                min: 0,
                max: Weight::MAX.get() as u64,
            },
            Absent::Means("1, or the SRV record's"),
            "Its share of the sessions; 0 is none.",
        ),
        Key::new(
            "backup",
            Form::Flag,
            Absent::Value("false"),
            "Used only when no primary is usable.",
        ),
        Key::new(
            "disabled",
            Form::Flag,
            Absent::Value("false"),
            "Takes no new sessions.",
        )
        .elsewhere(&["down", "enabled"]),
        Key::new(
            "max_connections",
            Form::Whole {
                min: 1,
                max: CONNECTIONS_MAX,
            },
            Absent::Means("no limit"),
            "How many sessions it may have at one time; more wait or go elsewhere.",
        )
        .elsewhere(&["maxconn", "max_conns", "limit"]),
    ],
};

pub(in crate::config) static EJECTION: Table = Table {
    title: "ejection of [cluster.NAME]",
    about: "When failures in a row take an endpoint out, and for how long.",
    keys: &[
        Key::new(
            "failures",
            Form::Whole {
                min: 1,
                max: FAILURES_MAX,
            },
            Absent::Value("5"),
            "How many failures in a row.",
        )
        .elsewhere(&["max_fails", "consecutive_5xx"]),
        Key::new(
            "base",
            duration(Off::Refused),
            Absent::Value("\"10s\""),
            "How long the first time; it doubles with each ejection in a row.",
        )
        .elsewhere(&["fail_timeout", "time"]),
        Key::new(
            "max",
            duration(Off::Refused),
            Absent::Value("\"5m\""),
            "What the doubling stops at.",
        ),
        Key::new(
            "share_max",
            Form::Percent {
                min: 1,
                max: 100,
                off: Off::Refused,
            },
            Absent::Value("\"50%\""),
            "The largest share of a cluster's endpoints that may be out at one time; the last usable one always stays.",
        ),
    ],
};

pub(in crate::config) static TRIALS: Table = Table {
    title: "trials of [cluster.NAME]",
    about: "How an endpoint whose effective weight has come down to 0 is tried again.",
    keys: &[
        Key::new(
            "every",
            duration(Off::Refused),
            Absent::Value("\"1s\""),
            "The time before the first trial; it doubles with each failed one.",
        ),
        Key::new(
            "every_max",
            duration(Off::Refused),
            Absent::Value("\"30s\""),
            "What the doubling stops at.",
        ),
    ],
};
