//! Every key that a configuration may have, and the bounds of their values.

use std::time::Duration;

use evenkeel_core::units::Weight;
use evenkeel_core::{ClusterSpec, WhenNone};
use evenkeel_proxy::settings::{ClusterSettings, KeySource, LogFormat, ProcessSettings};

use super::keys::{Absent, Form, Key, Off, Table};
use super::words::{BalanceName, LogLevel, Protocol, names};

/// The most endpoints in one cluster.
pub(super) const ENDPOINTS_MAX: usize = ClusterSpec::ENDPOINTS_MAX;
/// The most bytes of a reply to a client that could not be served.
pub(super) const REPLY_BYTES_MAX: usize = 16 << 10;
/// The most sessions that may wait in one cluster.
pub(super) const QUEUE_MAX: u64 = 1_000_000;
/// The most connections an endpoint may be limited to: far above what one address and port can hold.
pub(super) const CONNECTIONS_MAX: u64 = 1_000_000;
/// The most failures in a row that may be waited for.
pub(super) const FAILURES_MAX: u64 = 1_000_000;
/// A bounded load above this is no bound.
pub(super) const BOUNDED_LOAD_PERCENT_MAX: u64 = 10_000;
/// The most listeners, and the most clusters.
pub(super) const NAMED_TABLES_MAX: usize = 4096;
/// The most patterns in `include`.
pub(super) const INCLUDE_PATTERNS_MAX: usize = 64;
/// What a Unix socket's address holds, without the final NUL.
pub(super) const SOCKET_PATH_BYTES_MAX: usize = 107;
/// What the kernel takes as a path, without the final NUL.
pub(super) const PATH_BYTES_MAX: usize = 4095;

const DURATION_MIN: Duration = Duration::from_millis(1);
const DURATION_MAX: Duration = Duration::from_secs(365 * 86_400);
/// The kernel counts keepalive probes in seconds.
const DEAD_PEER_MIN: Duration = Duration::from_secs(1);
/// Far inside the 24 days that a `TCP_USER_TIMEOUT` in milliseconds can hold.
const DEAD_PEER_MAX: Duration = Duration::from_secs(86_400);

/// Every table, for suggestions and tests; where two have the same key, the one to suggest comes first.
pub(super) const TABLES: [&Table; 14] = [
    &ROOT,
    &INCLUDED,
    &PROCESS,
    &LOG,
    &DEFAULTS,
    &LISTENER,
    &LISTENER_TIMEOUTS,
    &REPLY,
    &CLUSTER,
    &CLUSTER_TIMEOUTS,
    &ENDPOINT,
    &EJECTION,
    &TRIALS,
    &DEFAULT_TIMEOUTS,
];

const fn duration(off: Off) -> Form {
    Form::Duration {
        min: DURATION_MIN,
        max: DURATION_MAX,
        off,
    }
}

pub(super) static ROOT: Table = Table {
    title: "the main file",
    about: "One file, and the files that it includes.",
    keys: &[
        Key::new(
            "include",
            Form::Patterns,
            Absent::Means("no other file"),
            "More files, relative to this one; `*` and `?` match within a file name. They may hold listeners and clusters.",
        ),
        Key::new(
            "process",
            Form::Table(&PROCESS),
            Absent::Means("its defaults"),
            "The process itself.",
        ),
        Key::new(
            "log",
            Form::Table(&LOG),
            Absent::Means("its defaults"),
            "What is written where.",
        ),
        Key::new(
            "defaults",
            Form::Table(&DEFAULTS),
            Absent::Means("its defaults"),
            "What listeners and clusters start from.",
        ),
        LISTENERS,
        CLUSTERS,
    ],
};

pub(super) static INCLUDED: Table = Table {
    title: "an included file",
    about: "What `include` names.",
    keys: &[LISTENERS, CLUSTERS],
};

const LISTENERS: Key = Key::new(
    "listener",
    Form::Named(&LISTENER),
    Absent::Means("required, here or in an included file"),
    "Where clients connect, each under a name.",
)
.elsewhere(&["listen", "listeners", "frontend", "server"]);

const CLUSTERS: Key = Key::new(
    "cluster",
    Form::Named(&CLUSTER),
    Absent::Means("required, here or in an included file"),
    "Interchangeable endpoints, each set under a name.",
)
.elsewhere(&["clusters", "backend", "pool", "upstream", "service"]);

pub(super) static PROCESS: Table = Table {
    title: "[process]",
    about: "The process itself.",
    keys: &[
        Key::new(
            "workers",
            Form::Whole {
                min: 1,
                max: ProcessSettings::WORKERS_MAX as u64,
            },
            Absent::Means("one for each core"),
            "How many threads move bytes. It never grows with load.",
        )
        .elsewhere(&["threads", "worker_processes", "nbthread"]),
        Key::new(
            "stop_deadline",
            Form::Duration {
                min: Duration::ZERO,
                max: DURATION_MAX,
                off: Off::Refused,
            },
            Absent::Value("\"25s\""),
            "How long a graceful stop lets sessions finish before it closes them.",
        ),
        Key::new(
            "control_socket",
            Form::WordOrPath {
                words: &["off"],
                bytes_max: SOCKET_PATH_BYTES_MAX,
            },
            Absent::Means("a path of its own for each user"),
            "The Unix socket that `status`, `route` and `stop` talk to.",
        ),
    ],
};

pub(super) static LOG: Table = Table {
    title: "[log]",
    about: "What is written where.",
    keys: &[
        Key::new(
            "access",
            Form::WordOrPath {
                words: &["stdout", "stderr", "off"],
                bytes_max: PATH_BYTES_MAX,
            },
            Absent::Value("\"stdout\""),
            "Where the access log goes: one line for each session.",
        ),
        Key::new(
            "access_format",
            Form::Word(names::<LogFormat>),
            Absent::Value("\"text\""),
            "How its lines look.",
        )
        .elsewhere(&["format"]),
        Key::new(
            "level",
            Form::Word(names::<LogLevel>),
            Absent::Value("\"info\""),
            "How much the program says about itself on standard error.",
        ),
    ],
};

pub(super) static DEFAULTS: Table = Table {
    title: "[defaults]",
    about: "What listeners and clusters start from.",
    keys: &[Key::new(
        "timeouts",
        Form::Table(&DEFAULT_TIMEOUTS),
        Absent::Means("its defaults"),
        "How long anything may take.",
    )
    .elsewhere(&["timeout"])],
};

const CONNECT: Key = Key::new(
    "connect",
    duration(Off::Refused),
    Absent::Value("\"2s\""),
    "How long one attempt to connect to an endpoint may take.",
);
const QUEUE: Key = Key::new(
    "queue",
    duration(Off::Refused),
    Absent::Value("\"5s\""),
    "How long a session may wait for a free slot when every usable endpoint is at its `max_connections`.",
);
const FIRST_BYTE: Key = Key::new(
    "first_byte",
    duration(Off::Allowed),
    Absent::Value("\"off\""),
    "How long the first answer byte may take, counted from the client's first byte sent to the endpoint.",
);
const IDLE: Key = Key::new(
    "idle",
    duration(Off::Allowed),
    Absent::Value("\"1h\""),
    "No byte in either direction for this long ends a session.",
);
const HALF_CLOSED: Key = Key::new(
    "half_closed",
    duration(Off::Allowed),
    Absent::Value("\"5m\""),
    "As `idle`, once one side has sent its end of stream.",
);
const PREREAD: Key = Key::new(
    "preread",
    duration(Off::Refused),
    Absent::Value("\"3s\""),
    "How long a client's first bytes may take where they are needed before an endpoint can be chosen.",
);
const DEAD_PEER: Key = Key::new(
    "dead_peer",
    Form::Duration {
        min: DEAD_PEER_MIN,
        max: DEAD_PEER_MAX,
        off: Off::Allowed,
    },
    Absent::Value("\"5m\""),
    "How long a peer, on either side, may leave sent bytes or keepalive probes unacknowledged.",
);

pub(super) static DEFAULT_TIMEOUTS: Table = Table {
    title: "timeouts of [defaults]",
    about: "How long anything may take.",
    keys: &[
        CONNECT,
        QUEUE,
        FIRST_BYTE,
        IDLE,
        HALF_CLOSED,
        PREREAD,
        DEAD_PEER,
    ],
};

/// What a key of `timeouts` is without one of its own.
const INHERITED: Absent = Absent::Means("as in [defaults]");

const fn inherited(key: Key) -> Key {
    Key {
        absent: INHERITED,
        ..key
    }
}

pub(super) static LISTENER_TIMEOUTS: Table = Table {
    title: "timeouts of [listener.NAME]",
    about: "The client's side; what is not written is as in [defaults].",
    keys: &[
        inherited(IDLE),
        inherited(HALF_CLOSED),
        inherited(PREREAD),
        inherited(DEAD_PEER),
    ],
};

pub(super) static CLUSTER_TIMEOUTS: Table = Table {
    title: "timeouts of [cluster.NAME]",
    about: "The endpoints' side; what is not written is as in [defaults].",
    keys: &[inherited(CONNECT), inherited(QUEUE), inherited(FIRST_BYTE)],
};

pub(super) static LISTENER: Table = Table {
    title: "[listener.NAME]",
    about: "An address that clients connect to, and where their sessions go.",
    keys: &[
        Key::new(
            "bind",
            Form::BindAddress,
            Absent::Error,
            "The address to listen on; with port 0 the system picks a free one.",
        )
        .elsewhere(&["listen", "address", "addr", "port"]),
        Key::new(
            "protocol",
            Form::Word(names::<Protocol>),
            Absent::Value("\"tcp\""),
            "What is spoken on it.",
        )
        .elsewhere(&["mode"]),
        Key::new(
            "to",
            Form::Target,
            Absent::Error,
            "The cluster that its sessions go to.",
        )
        .elsewhere(&[
            "cluster",
            "pool",
            "backend",
            "upstream",
            "proxy_pass",
            "default_backend",
            "service",
        ]),
        Key::new(
            "timeouts",
            Form::Table(&LISTENER_TIMEOUTS),
            INHERITED,
            "How long a client may take for what.",
        )
        .elsewhere(&["timeout"]),
        Key::new(
            "failure_reply",
            Form::WordOrTable {
                word: "mysql-error",
                table: &REPLY,
            },
            Absent::Means("close without a word"),
            "Sent to a client that no endpoint could serve, before its connection is closed.",
        ),
        Key::new(
            "empty_reply",
            Form::Text {
                bytes_max: REPLY_BYTES_MAX,
            },
            Absent::Means("no first bytes are waited for"),
            "Sent to a client that sends nothing but white space, or nothing within the `preread` timeout, before its connection is closed.",
        ),
    ],
};

pub(super) static REPLY: Table = Table {
    title: "failure_reply as a table",
    about: "A text of your own.",
    keys: &[Key::new(
        "text",
        Form::Text {
            bytes_max: REPLY_BYTES_MAX,
        },
        Absent::Error,
        "The bytes that are sent, as they are.",
    )],
};

pub(super) static CLUSTER: Table = Table {
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
            "when_none",
            Form::Word(names::<WhenNone>),
            Absent::Value("\"fail\""),
            "What happens when no endpoint is usable.",
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

pub(super) static ENDPOINT: Table = Table {
    title: "endpoints of [cluster.NAME]",
    about: "One upstream address. A plain string is a table with just that address.",
    keys: &[
        Key::new(
            "address",
            Form::EndpointAddress,
            Absent::Error,
            "Where it listens.",
        )
        .elsewhere(&["addr", "server", "host", "ip", "url", "bind", "target"]),
        Key::new(
            "name",
            Form::Name,
            Absent::Means("its address"),
            "Unique in its cluster. Hashes and kept state go by it.",
        )
        .elsewhere(&["id", "label"]),
        Key::new(
            "weight",
            Form::Whole {
                min: 0,
                max: Weight::MAX.get() as u64,
            },
            Absent::Value("1"),
            "Its share of the sessions; 0 is none.",
        ),
        Key::new(
            "backup",
            Form::Flag,
            Absent::Value("false"),
            "Used only when no other endpoint is usable.",
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

pub(super) static EJECTION: Table = Table {
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

pub(super) static TRIALS: Table = Table {
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
