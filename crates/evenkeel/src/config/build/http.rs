//! A listener's HTTP as settings. What is not written is the default of the settings.

use std::sync::Arc;

use evenkeel_proxy::settings::{
    ForwardingSettings, HttpLimits, HttpRoute, HttpSettings, HttpTimeouts, ReasonHeader, RequestId,
};

use super::{limit, most, name, or, whole};
use crate::config::file::{Http, Listener, Rule};

pub(super) fn settings(listener: &Listener) -> Option<HttpSettings> {
    let routes = listener.rules().iter().map(route);
    let written = listener.http.as_ref();
    Some(HttpSettings {
        routes: routes.collect::<Option<_>>()?,
        timeouts: written.map(timeouts).unwrap_or_default(),
        limits: written.map(limits).unwrap_or_default(),
        forwarding: written.map(forwarding).unwrap_or_default(),
        reason_header: match written.map(|http| or(&http.reason_header, true)) {
            Some(false) => ReasonHeader::Left,
            Some(true) | None => ReasonHeader::Sent,
        },
    })
}

fn route(written: &Rule) -> Option<HttpRoute> {
    let path = written.path.as_ref();
    Some(HttpRoute {
        host: written.host.as_ref().map(|host| host.value.clone()),
        path: path.map_or_else(|| Arc::from(""), name),
        to: name(written.to.as_ref()?),
    })
}

fn timeouts(written: &Http) -> HttpTimeouts {
    let default = HttpTimeouts::default();
    HttpTimeouts {
        head: limit(&[&written.head], None).unwrap_or(default.head),
        body_idle: limit(&[&written.body_idle], default.body_idle),
        keep_alive: limit(&[&written.keep_alive], None).unwrap_or(default.keep_alive),
        upstream_idle: limit(&[&written.upstream_idle], default.upstream_idle),
        request: limit(&[&written.request], default.request),
        tunnel_idle: limit(&[&written.tunnel_idle], default.tunnel_idle),
    }
}

fn limits(written: &Http) -> HttpLimits {
    let default = HttpLimits::default();
    let headers = written.headers.as_ref();
    HttpLimits {
        head_bytes: limit(&[&written.head_bytes], None).map_or(default.head_bytes, whole),
        headers: headers.map_or(default.headers, |headers| whole(headers.value)),
        target_bytes: limit(&[&written.target_bytes], None).map_or(default.target_bytes, whole),
        body_bytes: limit(&[&written.body_bytes], default.body_bytes),
        requests: most(&written.requests),
    }
}

fn forwarding(written: &Http) -> ForwardingSettings {
    let default = ForwardingSettings::default();
    let trusted = written.trusted.as_ref();
    ForwardingSettings {
        trusted: trusted.map_or(default.trusted, |senders| senders.value.as_slice().into()),
        x_forwarded: written
            .x_forwarded
            .as_ref()
            .map_or(default.x_forwarded, |mode| mode.value.into()),
        forwarded: written
            .forwarded
            .as_ref()
            .map_or(default.forwarded, |mode| mode.value.into()),
        via: written.via.as_ref().map(name),
        request_id: if or(&written.request_id, false) {
            RequestId::Make
        } else {
            RequestId::Leave
        },
    }
}
