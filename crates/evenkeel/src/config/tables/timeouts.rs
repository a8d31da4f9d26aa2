//! `[defaults]` and every `timeouts`: a listener and a cluster each have their part of it.

use std::time::Duration;

use super::super::keys::{Absent, Form, Key, Off, Table};
use super::duration;

/// The kernel counts keepalive probes in seconds.
const DEAD_PEER_MIN: Duration = Duration::from_secs(1);
/// Far inside the 24 days that a `TCP_USER_TIMEOUT` in milliseconds can hold.
const DEAD_PEER_MAX: Duration = Duration::from_secs(86_400);

pub(in crate::config) static DEFAULTS: Table = Table {
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

pub(in crate::config) static DEFAULT_TIMEOUTS: Table = Table {
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
pub(super) const INHERITED: Absent = Absent::Means("as in [defaults]");

const fn inherited(key: Key) -> Key {
    Key {
        absent: INHERITED,
        ..key
    }
}

pub(in crate::config) static LISTENER_TIMEOUTS: Table = Table {
    title: "timeouts of [listener.NAME]",
    about: "The client's side; what is not written is as in [defaults].",
    keys: &[
        inherited(IDLE),
        inherited(HALF_CLOSED),
        inherited(PREREAD),
        inherited(DEAD_PEER),
    ],
};

pub(in crate::config) static CLUSTER_TIMEOUTS: Table = Table {
    title: "timeouts of [cluster.NAME]",
    about: "The endpoints' side; what is not written is as in [defaults].",
    keys: &[inherited(CONNECT), inherited(QUEUE), inherited(FIRST_BYTE)],
};
