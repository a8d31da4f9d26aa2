//! `[process]` and `[log]`.

use std::time::Duration;

use evenkeel_proxy::settings::{LogFormat, ProcessSettings};

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::super::words::{LogLevel, names};
use super::{DURATION_MAX, PATH_BYTES_MAX, SOCKET_PATH_BYTES_MAX};

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
