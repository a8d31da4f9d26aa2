//! Settings for tests: as small as they can be.

use std::time::Duration;

use evenkeel_core::units::{Address, Weight};
use evenkeel_core::{Awaited, Balance, ClusterSpec, EndpointSpec, Failback, TrialPolicy, WhenNone};

use super::{
    AccessLogSettings, ClusterSettings, DnsSettings, ListenerSettings, ListenerTimeouts,
    LogDestination, LogFormat, OnDown, PoolPolicy, ProcessSettings, Protocol, Settings, Splice,
};

/// A listener `front` on port 1, in front of a cluster `web` of `a` and `b`.
pub(crate) fn world() -> Settings {
    Settings {
        process: ProcessSettings {
            workers: 2,
            splice_pipes_max: 64,
            max_connections: None,
            ready_delay: Duration::ZERO,
            stop_deadline: Duration::from_secs(25),
            control_socket: None,
            state_file: None,
        },
        access_log: AccessLogSettings {
            destination: LogDestination::Off,
            format: LogFormat::Text,
        },
        admin: None,
        dns: DnsSettings::default(),
        listeners: vec![listener("front", 1)],
        clusters: vec![cluster("web", vec![endpoint("a", 1), endpoint("b", 2)])],
    }
}

pub(crate) fn listener(name: &str, port: u16) -> ListenerSettings {
    ListenerSettings {
        name: name.into(),
        bind: address(port),
        permissions: 0o600,
        to: Some("web".into()),
        routes: Vec::new(),
        protocol: Protocol::Tcp,
        max_connections: None,
        timeouts: ListenerTimeouts {
            idle: None,
            half_closed: None,
            preread: Duration::from_secs(3),
            dead_peer: None,
        },
        proxy_protocol: None,
        splice: Splice::Auto,
        failure_reply: None,
        empty_reply: None,
    }
}

pub(crate) fn cluster(name: &str, endpoints: Vec<EndpointSpec>) -> ClusterSettings {
    ClusterSettings {
        spec: ClusterSpec {
            name: name.into(),
            endpoints,
            balance: Balance::RoundRobin,
            trials: TrialPolicy::default(),
            ejection: None,
            health: None,
            failback: Failback::Auto,
            awaited: Awaited::default(),
            slow_start: Duration::ZERO,
            queue_max: 1024,
            when_none: WhenNone::Fail,
        },
        probe: None,
        on_down: OnDown::Keep,
        names: Vec::new(),
        key: None,
        proxy_protocol: None,
        connect_timeout: Duration::from_secs(2),
        queue_timeout: Duration::from_secs(5),
        first_byte_timeout: None,
        attempts: 3,
        replay: 0,
        pool: PoolPolicy::default(),
    }
}

pub(crate) fn endpoint(name: &str, port: u16) -> EndpointSpec {
    EndpointSpec {
        name: name.into(),
        address: address(port),
        weight: Weight::ONE,
        backup: false,
        disabled: false,
        max_connections: None,
    }
}

pub(crate) fn address(port: u16) -> Address {
    Address::Ip(([192, 0, 2, 1], port).into())
}
