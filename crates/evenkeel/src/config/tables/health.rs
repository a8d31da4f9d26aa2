//! `health` of a cluster: how its endpoints are probed.

use std::time::Duration;

use evenkeel_proxy::settings::{ExpectAt, HttpMethod, RedisRole};

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::super::words::{CheckName, names};
use super::tls::ENDPOINT_TLS;
use super::{DURATION_MAX, PATH_BYTES_MAX};

/// A question more often than that is a load.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// The most results in a row that may be waited for.
const IN_A_ROW_MAX: u64 = 1000;
/// The most bytes of what is sent, and of what is expected.
const PROBE_BYTES_MAX: usize = 4096;
/// The most bytes of a name, a password, a path or a statement.
const PROBE_TEXT_BYTES_MAX: usize = 1024;

const TEXT: Form = Form::Text {
    bytes_max: PROBE_TEXT_BYTES_MAX,
};

const OFTEN: Form = Form::Duration {
    min: EVERY_MIN,
    max: DURATION_MAX,
    off: Off::Refused,
};

const IN_A_ROW: Form = Form::Whole {
    min: 1,
    max: IN_A_ROW_MAX,
};

pub(in crate::config) static HEALTH: Table = Table {
    title: "health of [cluster.NAME]",
    about: "How endpoints are probed, and what makes them up and down.",
    keys: &[
        Key::new(
            "check",
            Form::Word(names::<CheckName>),
            Absent::Error,
            "What is asked.",
        )
        .elsewhere(&["type", "kind", "protocol", "mode"]),
        Key::new(
            "every",
            OFTEN,
            Absent::Value("\"2s\""),
            "How often each endpoint is asked; a pause is up to a tenth shorter or longer.",
        )
        .elsewhere(&["inter", "interval", "period"]),
        Key::new(
            "timeout",
            OFTEN,
            Absent::Means("`\"1s\"`, or `every` where that is less"),
            "How long the answer may take, from the connecting on.",
        ),
        Key::new(
            "rise",
            IN_A_ROW,
            Absent::Value("2"),
            "How many passed probes in a row bring back an endpoint that was down.",
        )
        .elsewhere(&["healthy_threshold", "passes"]),
        Key::new(
            "fall",
            IN_A_ROW,
            Absent::Value("3"),
            "How many failed probes in a row take out an endpoint that was up.",
        )
        .elsewhere(&["unhealthy_threshold", "fails"]),
        Key::new(
            "port",
            Form::Whole {
                min: 1,
                max: u16::MAX as u64,
            },
            Absent::Means("the endpoint's"),
            "Another port of the endpoint's machine that is asked instead.",
        ),
        Key::new(
            "address",
            Form::EndpointAddress,
            Absent::Means("the endpoint's"),
            "Another address that is asked instead, for each endpoint the same.",
        )
        .elsewhere(&["addr"]),
        Key::new(
            "tls",
            Form::Table(&ENDPOINT_TLS),
            Absent::Means("in the clear"),
            "How TLS is spoken before anything is asked; `{}` by the system's authorities. Not with `mysql`.",
        )
        .elsewhere(&["ssl", "check-ssl"]),
        Key::new(
            "method",
            Form::Word(names::<HttpMethod>),
            Absent::Value("\"GET\""),
            "Only with `http`.",
        ),
        Key::new(
            "path",
            TEXT,
            Absent::Value("\"/\""),
            "What is asked for. Only with `http`.",
        )
        .elsewhere(&["uri", "url"]),
        Key::new(
            "host",
            TEXT,
            Absent::Means("`server_name` of `tls`, or the address that is asked"),
            "The `Host` header. Only with `http`.",
        ),
        Key::new(
            "status",
            Form::StatusCodes,
            Absent::Value("\"200-399\""),
            "The answers that are right. Only with `http`.",
        )
        .elsewhere(&["expected_statuses"]),
        Key::new(
            "user",
            TEXT,
            Absent::Means("required with `mysql`"),
            "The account. Only with `mysql` and `redis`.",
        )
        .elsewhere(&["username"]),
        Key::new(
            "password",
            TEXT,
            Absent::Means("none"),
            "Its password. Only with `mysql` and `redis`.",
        ),
        Key::new(
            "password_file",
            Form::File {
                bytes_max: PATH_BYTES_MAX,
            },
            Absent::Means("none"),
            "A file that holds the password, read for each probe. Only with `mysql` and `redis`.",
        ),
        Key::new(
            "query",
            TEXT,
            Absent::Means("a ping is enough"),
            "A statement whose first value has to be true. Only with `mysql`.",
        ),
        Key::new(
            "role",
            Form::Word(names::<RedisRole>),
            Absent::Means("either"),
            "What the endpoint has to be. Only with `redis`.",
        ),
        Key::new(
            "send",
            Form::Bytes {
                bytes_max: PROBE_BYTES_MAX,
            },
            Absent::Means("nothing is sent"),
            "The bytes that are sent. Only with `send-expect`.",
        ),
        Key::new(
            "expect",
            Form::Bytes {
                bytes_max: PROBE_BYTES_MAX,
            },
            Absent::Means("required with `send-expect`"),
            "The bytes that the answer has. Only with `send-expect`.",
        ),
        Key::new(
            "expect_at",
            Form::Word(names::<ExpectAt>),
            Absent::Value("\"start\""),
            "Where the answer has them; anywhere is within its first 16 KiB. Only with `send-expect`.",
        ),
    ],
};
