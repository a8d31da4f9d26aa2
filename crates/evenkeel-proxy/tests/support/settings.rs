//! Settings for a proxy on loopback: two workers, one listener, one cluster in round robin, and no limit that a test would reach.

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_core::units::{Address, Weight};
use evenkeel_core::{Awaited, Balance, ClusterSpec, EndpointSpec, Failback, TrialPolicy, WhenNone};
use evenkeel_proxy::settings::{
    AccessLogSettings, ClusterSettings, DnsSettings, ListenerSettings, ListenerTimeouts,
    LogDestination, LogFormat, OnDown, PoolPolicy, ProcessSettings, Protocol, Settings, Splice,
};

/// Only a fault makes anything wait that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A listener `front` on a port of the kernel's choice, in front of a cluster of these endpoints.
pub(crate) fn settings(endpoints: &[(&str, SocketAddr)]) -> Settings {
    Settings {
        process: ProcessSettings {
            workers: 2,
            splice_pipes_max: 64,
            max_connections: None,
            ready_delay: Duration::ZERO,
            stop_deadline: PATIENCE,
            control_socket: None,
            state_file: None,
        },
        access_log: AccessLogSettings {
            destination: LogDestination::Off,
            format: LogFormat::Text,
        },
        admin: None,
        dns: DnsSettings::default(),
        listeners: vec![ListenerSettings {
            name: "front".into(),
            bind: Address::Ip(([127, 0, 0, 1], 0).into()),
            permissions: 0o660,
            to: Some("cluster".into()),
            routes: Vec::new(),
            protocol: Protocol::Tcp,
            max_connections: None,
            timeouts: timeouts(),
            proxy_protocol: None,
            splice: Splice::Auto,
            failure_reply: None,
            empty_reply: None,
        }],
        clusters: vec![cluster(endpoints)],
    }
}

fn timeouts() -> ListenerTimeouts {
    ListenerTimeouts {
        idle: Some(PATIENCE * 2),
        half_closed: Some(PATIENCE * 2),
        preread: PATIENCE * 2,
        dead_peer: Some(PATIENCE * 2),
    }
}

fn cluster(endpoints: &[(&str, SocketAddr)]) -> ClusterSettings {
    ClusterSettings {
        spec: ClusterSpec {
            name: "cluster".into(),
            endpoints: endpoints.iter().map(endpoint).collect(),
            balance: Balance::RoundRobin,
            trials: TrialPolicy::default(),
            ejection: None,
            slow_start: Duration::ZERO,
            queue_max: 1000,
            when_none: WhenNone::Fail,
            health: None,
            failback: Failback::Auto,
            awaited: Awaited::default(),
        },
        probe: None,
        on_down: OnDown::Keep,
        names: Vec::new(),
        key: None,
        proxy_protocol: None,
        connect_timeout: PATIENCE,
        queue_timeout: PATIENCE,
        first_byte_timeout: None,
        attempts: 3,
        replay: 0,
        pool: PoolPolicy::default(),
    }
}

fn endpoint((name, address): &(&str, SocketAddr)) -> EndpointSpec {
    EndpointSpec {
        name: (*name).into(),
        address: Address::Ip(*address),
        weight: Weight::ONE,
        backup: false,
        disabled: false,
        max_connections: None,
    }
}
