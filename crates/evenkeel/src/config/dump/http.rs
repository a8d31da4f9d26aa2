//! `http` of a listener and its routes, as TOML.

use evenkeel_proxy::settings::{HttpRoute, HttpSettings, ReasonHeader, RequestId};

use super::{duration, duration_or_off, inline, off, quoted, sender_list, word};
use crate::config::units::print_size;
use crate::config::words::ForwardName;

pub(super) fn http(settings: &HttpSettings) -> String {
    let (timeouts, limits) = (&settings.timeouts, &settings.limits);
    let forwarding = &settings.forwarding;
    let size = |bytes: usize| quoted(&print_size(bytes as u64));
    let mut keys = vec![
        ("head", duration(timeouts.head)),
        ("body_idle", duration_or_off(timeouts.body_idle)),
        ("keep_alive", duration(timeouts.keep_alive)),
        ("upstream_idle", duration_or_off(timeouts.upstream_idle)),
        ("request", duration_or_off(timeouts.request)),
        ("tunnel_idle", duration_or_off(timeouts.tunnel_idle)),
        ("head_bytes", size(limits.head_bytes)),
        ("headers", limits.headers.to_string()),
        ("target_bytes", size(limits.target_bytes)),
        (
            "body_bytes",
            limits
                .body_bytes
                .map_or_else(off, |bytes| quoted(&print_size(bytes))),
        ),
        (
            "x_forwarded",
            word(ForwardName::from(forwarding.x_forwarded)),
        ),
        ("forwarded", word(ForwardName::from(forwarding.forwarded))),
        (
            "request_id",
            (forwarding.request_id == RequestId::Make).to_string(),
        ),
        (
            "reason_header",
            (settings.reason_header == ReasonHeader::Sent).to_string(),
        ),
    ];
    keys.extend(limits.requests.map(|most| ("requests", most.to_string())));
    keys.extend(forwarding.via.as_ref().map(|via| ("via", quoted(via))));
    if !forwarding.trusted.is_empty() {
        keys.push(("trusted", sender_list(&forwarding.trusted)));
    }
    inline(&keys)
}

pub(super) fn route(route: &HttpRoute) -> String {
    let host = route.host.as_ref();
    let mut keys: Vec<_> = host
        .map(|host| ("host", quoted(&host.to_string())))
        .into_iter()
        .collect();
    if !route.path.is_empty() {
        keys.push(("path", quoted(&route.path)));
    }
    keys.push(("to", quoted(&route.to)));
    format!("  {},\n", inline(&keys))
}
