//! `[dns]`.

use std::time::Duration;

use evenkeel_proxy::settings::DnsSettings;

use super::super::keys::{Absent, Form, Key, Off, Table};

/// A minute is longer than anybody waits for a name server.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Ten times a second is often enough for any name server.
const REFRESH_LEAST: Duration = Duration::from_millis(100);
/// Beyond a day, a name is better written as an address.
const REFRESH_MOST: Duration = Duration::from_secs(86_400);

pub(in crate::config) static DNS: Table = Table {
    title: "[dns]",
    about: "How the names of endpoints are resolved. It happens in the background, and no failure takes an endpoint away.",
    keys: &[
        Key::new(
            "servers",
            Form::NameServers {
                count_max: DnsSettings::SERVERS_MAX,
            },
            Absent::Means("those in `/etc/resolv.conf`"),
            "The name servers to ask.",
        )
        .elsewhere(&["nameservers", "nameserver", "server"]),
        Key::new(
            "timeout",
            Form::Duration {
                min: Duration::from_millis(10),
                max: TIMEOUT_MAX,
                off: Off::Refused,
            },
            Absent::Value("\"2s\""),
            "How long a name server may take before it, or the next one, is asked again.",
        ),
        Key::new(
            "refresh_min",
            Form::Duration {
                min: REFRESH_LEAST,
                max: REFRESH_MOST,
                off: Off::Refused,
            },
            Absent::Value("\"1s\""),
            "A name is asked for at most that often, however short its records live.",
        ),
        Key::new(
            "refresh_max",
            Form::Duration {
                min: REFRESH_LEAST,
                max: REFRESH_MOST,
                off: Off::Refused,
            },
            Absent::Value("\"5m\""),
            "A name is asked for at least that often, however long its records live.",
        )
        .elsewhere(&["refresh", "ttl", "valid"]),
    ],
};
