//! Every key that a configuration may have, and the bounds of their values: the files themselves here, each kind of table in its
//! own file.

mod cluster;
mod dns;
mod health;
mod http;
mod listener;
mod pool;
mod process;
mod timeouts;
mod tls;

use std::time::Duration;

use super::keys::{Absent, Form, Key, Off, Table};

pub(super) use cluster::*;
pub(super) use dns::DNS;
pub(super) use health::HEALTH;
pub(super) use http::HTTP;
pub(super) use listener::*;
pub(super) use pool::POOL;
pub(super) use process::{ADMIN, LOG, PROCESS};
pub(super) use timeouts::{CLUSTER_TIMEOUTS, DEFAULT_TIMEOUTS, DEFAULTS, LISTENER_TIMEOUTS};
pub(super) use tls::ENDPOINT_TLS;

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

/// Every table, for suggestions and tests; where two have the same key, the one to suggest comes first.
pub(super) const TABLES: [&Table; 22] = [
    &ROOT,
    &INCLUDED,
    &PROCESS,
    &ADMIN,
    &LOG,
    &DNS,
    &DEFAULTS,
    &LISTENER,
    &LISTENER_TIMEOUTS,
    &REPLY,
    &ROUTE,
    &SENDERS,
    &CLUSTER,
    &CLUSTER_TIMEOUTS,
    &ENDPOINT,
    &EJECTION,
    &TRIALS,
    &HEALTH,
    &ENDPOINT_TLS,
    &HTTP,
    &POOL,
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
            "admin",
            Form::Table(&ADMIN),
            Absent::Means("there is no admin listener"),
            "Where the process tells machines how it is.",
        )
        .elsewhere(&["metrics", "stats", "monitoring"]),
        Key::new(
            "log",
            Form::Table(&LOG),
            Absent::Means("its defaults"),
            "What is written where.",
        ),
        Key::new(
            "dns",
            Form::Table(&DNS),
            Absent::Means("its defaults"),
            "How the names of endpoints are resolved.",
        )
        .elsewhere(&["resolver", "resolvers"]),
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
