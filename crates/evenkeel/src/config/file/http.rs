//! The raw form of `http`.

use std::time::Duration;

use evenkeel_proxy::Sender;

use super::{Maybe, MaybeLimit};
use crate::config::diagnostics::Span;
use crate::config::read::TableReader;
use crate::config::words::ForwardName;

/// `http`.
#[derive(Debug)]
pub(in crate::config) struct Http {
    pub(in crate::config) at: Span,
    pub(in crate::config) head: MaybeLimit<Duration>,
    pub(in crate::config) body_idle: MaybeLimit<Duration>,
    pub(in crate::config) keep_alive: MaybeLimit<Duration>,
    pub(in crate::config) upstream_idle: MaybeLimit<Duration>,
    pub(in crate::config) request: MaybeLimit<Duration>,
    pub(in crate::config) tunnel_idle: MaybeLimit<Duration>,
    pub(in crate::config) head_bytes: MaybeLimit<u64>,
    pub(in crate::config) headers: Maybe<u64>,
    pub(in crate::config) target_bytes: MaybeLimit<u64>,
    pub(in crate::config) body_bytes: MaybeLimit<u64>,
    pub(in crate::config) requests: Maybe<u64>,
    pub(in crate::config) trusted: Maybe<Vec<Sender>>,
    pub(in crate::config) x_forwarded: Maybe<ForwardName>,
    pub(in crate::config) forwarded: Maybe<ForwardName>,
    pub(in crate::config) via: Maybe<String>,
    pub(in crate::config) request_id: Maybe<bool>,
    pub(in crate::config) reason_header: Maybe<bool>,
}

impl Http {
    pub(super) fn read(table: &TableReader<'_>) -> Self {
        Self {
            at: table.place(),
            head: table.duration("head"),
            body_idle: table.duration("body_idle"),
            keep_alive: table.duration("keep_alive"),
            upstream_idle: table.duration("upstream_idle"),
            request: table.duration("request"),
            tunnel_idle: table.duration("tunnel_idle"),
            head_bytes: table.size("head_bytes"),
            headers: table.whole("headers"),
            target_bytes: table.size("target_bytes"),
            body_bytes: table.size("body_bytes"),
            requests: table.whole("requests"),
            trusted: table.senders_if_written("trusted"),
            x_forwarded: table.word("x_forwarded"),
            forwarded: table.word("forwarded"),
            via: table.text("via"),
            request_id: table.flag("request_id"),
            reason_header: table.flag("reason_header"),
        }
    }
}
