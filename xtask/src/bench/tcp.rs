//! The bench of the TCP path: its loads, and what evenkeel promises on each.

use evenkeel_bench::{Load, TcpLoad};

use super::peer::{Peer, Rival};
use super::workload::{Figure, Target, Work, Workload};

/// Every peer, and the connection without any.
pub(crate) const PEERS: &[Peer] = &[
    Peer::Direct,
    Peer::Evenkeel,
    Peer::Haproxy,
    Peer::HaproxySplice,
    Peer::Nginx,
];

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "ping-pong-64",
        title: "64 bytes there and back, on 64 connections",
        load: Load::Tcp(TcpLoad::PingPong),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.92),
            CPU_BELOW_NGINX,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "ping-pong-512",
        title: "64 bytes there and back, on 512 connections",
        load: Load::Tcp(TcpLoad::PingPong),
        connections: 512,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.80),
            CPU_BELOW_NGINX,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "connect",
        title: "connect, 64 bytes there and back, close; 64 at once",
        load: Load::Tcp(TcpLoad::Connect),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.93),
            CPU_BELOW_NGINX,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "bulk-1",
        title: "a stream to the client, on 1 connection",
        load: Load::Tcp(TcpLoad::Bulk),
        connections: 1,
        work: Work::Bytes,
        targets: &[cpu_over_haproxy(0.30), CPU_BELOW_NGINX],
    },
    Workload {
        name: "bulk-16",
        title: "streams to the clients, on 16 connections",
        load: Load::Tcp(TcpLoad::Bulk),
        connections: 16,
        work: Work::Bytes,
        targets: &[cpu_over_haproxy(0.25), CPU_BELOW_NGINX],
    },
    Workload {
        name: "idle",
        title: "4,000 connections that do nothing after one exchange",
        load: Load::Tcp(TcpLoad::Idle),
        connections: 4000,
        work: Work::Idle,
        targets: &[Target::own(Figure::IdleMemory, 1024.0)],
    },
];

const CPU_BELOW_NGINX: Target = Target::over(Rival::Nginx, Figure::Cpu, 1.0);

const P99_NOT_ABOVE_HAPROXY: Target = Target::over(Rival::Haproxy, Figure::P99, 1.0);

const fn cpu_over_haproxy(at_most: f64) -> Target {
    Target::over(Rival::Haproxy, Figure::Cpu, at_most)
}
