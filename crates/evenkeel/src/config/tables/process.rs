//! `[process]`, `[admin]` and `[log]`.

use std::time::Duration;

use evenkeel_proxy::settings::{LogFormat, ProcessSettings};

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::super::words::{LogLevel, names};
use super::{CONNECTIONS_MAX, DURATION_MAX, PATH_BYTES_MAX, SOCKET_PATH_BYTES_MAX};

/// A path to which a suffix can be added: the file is written beside its place first.
const STATE_PATH_BYTES_MAX: usize = PATH_BYTES_MAX - 4;

pub(in crate::config) static PROCESS: Table = Table {
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
            "splice_pipes_max",
            Form::Whole {
                min: 0,
                max: ProcessSettings::SPLICE_PIPES_MAX as u64,
            },
            Absent::Value("256"),
            "How many pipes all workers together may have for splicing; with 0 all bytes are copied.",
        )
        .elsewhere(&["maxpipes"]),
        Key::new(
            "max_connections",
            Form::Whole {
                min: 1,
                max: CONNECTIONS_MAX,
            },
            Absent::Means("as many as there are descriptors for"),
            "How many sessions all listeners together may have at one time; further clients wait to be accepted.",
        )
        .elsewhere(&["maxconn", "worker_connections"]),
        Key::new(
            "ready_delay",
            Form::Duration {
                min: Duration::ZERO,
                max: DURATION_MAX,
                off: Off::Refused,
            },
            Absent::Value("\"0s\""),
            "How long a graceful stop goes on accepting after `/readyz` has begun to say no, so that whoever sends clients here can stop first.",
        ),
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
            "The Unix socket that `status`, `route`, `stop` and `endpoint` talk to.",
        ),
        Key::new(
            "state_file",
            Form::WordOrPath {
                words: &["off"],
                bytes_max: STATE_PATH_BYTES_MAX,
            },
            Absent::Value("\"off\""),
            "Where what operators set at run time outlives a restart.",
        )
        .elsewhere(&["server_state_file", "state"]),
    ],
};

pub(in crate::config) static ADMIN: Table = Table {
    title: "[admin]",
    about: "Where the process tells machines how it is.",
    keys: &[Key::new(
        "bind",
        Form::BindAddress,
        Absent::Means("there is no admin listener"),
        "The address on which `/metrics`, `/livez` and `/readyz` are answered over HTTP. Whoever can reach it can read them.",
    )
    .elsewhere(&["listen", "address", "addr", "port"])],
};

pub(in crate::config) static LOG: Table = Table {
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
