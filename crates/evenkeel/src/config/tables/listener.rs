//! `[listener.NAME]` and what it holds.

use evenkeel_proxy::settings::Splice;

use super::super::keys::{Absent, Form, Key, Table};
use super::super::words::{Protocol, names};
use super::http::HTTP;
use super::timeouts::{INHERITED, LISTENER_TIMEOUTS};
use super::{CONNECTIONS_MAX, PATH_BYTES_MAX};

/// The most bytes of a reply to a client that could not be served.
pub(in crate::config) const REPLY_BYTES_MAX: usize = 16 << 10;

pub(in crate::config) static LISTENER: Table = Table {
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
            "permissions",
            Form::Permissions,
            Absent::Means("`\"0660\"`"),
            "Who may connect to a Unix socket, as the permissions of its file. Only with `bind = \"unix:/path\"`.",
        )
        .elsewhere(&["umask", "socket_mode", "chmod"]),
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
            Absent::Means("required without `routes`"),
            "The cluster that its sessions go to, but for those that a route is for.",
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
            "routes",
            Form::Tables(&ROUTE),
            Absent::Means("all sessions go to `to`"),
            "Where sessions go by what is known of them.",
        )
        .elsewhere(&["rules", "acl", "use_backend", "server_name", "map"]),
        Key::new(
            "http",
            Form::Table(&HTTP),
            Absent::Means("its defaults"),
            "Timeouts, limits and headers. Only with `protocol = \"http\"`.",
        ),
        Key::new(
            "max_connections",
            Form::Whole {
                min: 1,
                max: CONNECTIONS_MAX,
            },
            Absent::Means("no limit"),
            "How many sessions it may have at one time; further clients wait to be accepted.",
        )
        .elsewhere(&["maxconn", "max_conns", "limit"]),
        Key::new(
            "timeouts",
            Form::Table(&LISTENER_TIMEOUTS),
            INHERITED,
            "How long a client may take for what.",
        )
        .elsewhere(&["timeout"]),
        Key::new(
            "proxy_protocol",
            Form::Table(&SENDERS),
            Absent::Means("no header is expected from anybody"),
            "Who begins with a PROXY header that says whom the connection is for.",
        )
        .elsewhere(&["accept_proxy", "accept-proxy", "proxyProtocol", "set_real_ip_from"]),
        Key::new(
            "splice",
            Form::Word(names::<Splice>),
            Absent::Value("\"auto\""),
            "Whether what moves in bulk goes through the kernel's pipes instead of being copied.",
        ),
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

pub(in crate::config) static ROUTE: Table = Table {
    title: "routes of [listener.NAME]",
    about: "A rule: which sessions go to which cluster.",
    keys: &[
        Key::new(
            "sni",
            Form::HostPattern,
            Absent::Means("required with `protocol = \"tcp\"`"),
            "The name that the client asks for in its TLS handshake, which is passed on as it came.",
        )
        .elsewhere(&["server_name", "server_names", "HostSNI", "req_ssl_sni"]),
        Key::new(
            "host",
            Form::HostPattern,
            Absent::Means("every host"),
            "The host that a request is for. Only with `protocol = \"http\"`.",
        )
        .elsewhere(&["hostname", "Host", "hdr(host)"]),
        Key::new(
            "path",
            Form::Text {
                bytes_max: PATH_BYTES_MAX,
            },
            Absent::Means("every path"),
            "What the path of a request begins with, by whole segments. Only with `protocol = \"http\"`.",
        )
        .elsewhere(&["path_beg", "location", "PathPrefix", "prefix"]),
        Key::new(
            "to",
            Form::Target,
            Absent::Error,
            "The cluster that they go to.",
        )
        .elsewhere(&["cluster", "pool", "backend", "upstream", "proxy_pass", "service"]),
    ],
};

pub(in crate::config) static SENDERS: Table = Table {
    title: "proxy_protocol of [listener.NAME]",
    about: "Whose PROXY header is required and believed. From everybody else none is read.",
    keys: &[Key::new(
        "from",
        Form::Senders,
        Absent::Error,
        "The networks of the proxies in front, or `\"unix\"` for the clients of a Unix socket.",
    )
    .elsewhere(&["trusted", "trustedIPs", "networks", "trusted_ips"])],
};

pub(in crate::config) static REPLY: Table = Table {
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
