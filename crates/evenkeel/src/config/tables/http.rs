//! `http` of a listener: how long anything may take, how large it may be, and what endpoints are told of clients.

use evenkeel_proxy::settings::HttpSettings;

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::super::words::{ForwardName, names};
use super::duration;

/// A body above this is no limit.
const BODY_BYTES_MAX: u64 = 1 << 50;
/// The most requests that a connection may be limited to.
const REQUESTS_MAX: u64 = 1_000_000_000;
/// The longest name in `Via`.
const VIA_BYTES_MAX: usize = 255;

pub(in crate::config) static HTTP: Table = Table {
    title: "http of [listener.NAME]",
    about: "What goes with `protocol = \"http\"` alone.",
    keys: &[
        Key::new(
            "head",
            duration(Off::Refused),
            Absent::Value("\"10s\""),
            "How long the head of a request may take, from its first byte; of the first one, from the accept.",
        )
        .elsewhere(&["http-request", "client_header_timeout", "read_header_timeout"]),
        Key::new(
            "body_idle",
            duration(Off::Allowed),
            Absent::Value("\"30s\""),
            "How long a client may send nothing of a body.",
        )
        .elsewhere(&["client_body_timeout"]),
        Key::new(
            "keep_alive",
            duration(Off::Refused),
            Absent::Value("\"1m\""),
            "How long a connection may wait for its next request.",
        )
        .elsewhere(&["http-keep-alive", "keepalive_timeout"]),
        Key::new(
            "upstream_idle",
            duration(Off::Allowed),
            Absent::Value("\"1m\""),
            "How long an endpoint may send nothing of an answer, and a client take nothing of it. Before the first byte, `first_byte` of the cluster goes before it.",
        )
        .elsewhere(&["proxy_read_timeout"]),
        Key::new(
            "request",
            duration(Off::Allowed),
            Absent::Value("\"off\""),
            "How long an exchange may take as a whole.",
        ),
        Key::new(
            "tunnel_idle",
            duration(Off::Allowed),
            Absent::Value("\"1h\""),
            "How long nothing may move after an upgrade.",
        )
        .elsewhere(&["tunnel"]),
        Key::new(
            "head_bytes",
            Form::Size {
                max: HttpSettings::HEAD_BYTES_MAX as u64,
                off: Off::Refused,
            },
            Absent::Value("\"32KiB\""),
            "How large a head may be.",
        )
        .elsewhere(&["large_client_header_buffers", "tune.bufsize"]),
        Key::new(
            "headers",
            Form::Whole {
                min: 1,
                max: HttpSettings::HEADERS_MAX as u64,
            },
            Absent::Value("100"),
            "How many headers a head may have.",
        )
        .elsewhere(&["tune.http.maxhdr"]),
        Key::new(
            "target_bytes",
            Form::Size {
                max: HttpSettings::HEAD_BYTES_MAX as u64,
                off: Off::Refused,
            },
            Absent::Value("\"8KiB\""),
            "How long the target of a request may be.",
        ),
        Key::new(
            "body_bytes",
            Form::Size {
                max: BODY_BYTES_MAX,
                off: Off::Allowed,
            },
            Absent::Value("\"off\""),
            "How large the body of a request may be.",
        )
        .elsewhere(&["client_max_body_size"]),
        Key::new(
            "requests",
            Form::Whole {
                min: 1,
                max: REQUESTS_MAX,
            },
            Absent::Means("no limit"),
            "How many requests a connection carries.",
        )
        .elsewhere(&["keepalive_requests"]),
        Key::new(
            "trusted",
            Form::Senders,
            Absent::Means("nobody"),
            "The networks of proxies whose word about clients is believed.",
        )
        .elsewhere(&["set_real_ip_from", "trusted_proxies", "trustedIPs"]),
        Key::new(
            "x_forwarded",
            Form::Word(names::<ForwardName>),
            Absent::Value("\"append\""),
            "What is done with `X-Forwarded-For`, `-Proto` and `-Host`.",
        )
        .elsewhere(&["forwardfor"]),
        Key::new(
            "forwarded",
            Form::Word(names::<ForwardName>),
            Absent::Value("\"leave\""),
            "What is done with `Forwarded`.",
        ),
        Key::new(
            "via",
            Form::Text {
                bytes_max: VIA_BYTES_MAX,
            },
            Absent::Means("`Via` is left as it is"),
            "By what name evenkeel enters itself in `Via`.",
        ),
        Key::new(
            "request_id",
            Form::Flag,
            Absent::Value("false"),
            "Whether a request without an `X-Request-Id` gets one.",
        )
        .elsewhere(&["unique-id-header"]),
        Key::new(
            "reason_header",
            Form::Flag,
            Absent::Value("true"),
            "Whether answers of evenkeel's own tell their reason in `X-Evenkeel-Reason`.",
        ),
    ],
};
