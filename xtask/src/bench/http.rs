//! The bench of HTTP: its loads, and what evenkeel promises on each.

use evenkeel_bench::{Course, HttpLoad, Load, Request, Transport};

use super::peer::{Peer, Rival};
use super::workload::{Figure, Target, Work, Workload};

/// Every peer, and the connection without any.
pub(crate) const PEERS: &[Peer] = &[
    Peer::Direct,
    Peer::Evenkeel,
    Peer::Haproxy,
    Peer::HaproxyTuned,
    Peer::Nginx,
    Peer::NginxTuned,
    Peer::Caddy,
];

const KIB: u64 = 1024;

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "get-128",
        title: "GET, answered with 128 bytes, on 64 connections",
        load: get(128, Course::KeepAlive),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.87),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
            P50_NOT_ABOVE_HAPROXY,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "get-128-256",
        title: "GET, answered with 128 bytes, on 256 connections",
        load: get(128, Course::KeepAlive),
        connections: 256,
        work: Work::Exchanges,
        targets: &[CPU_NOT_ABOVE_TUNED_HAPROXY, CPU_NOT_ABOVE_NGINX],
    },
    Workload {
        name: "get-16k",
        title: "GET, answered with 16 KiB, on 64 connections",
        load: get(16 * KIB, Course::KeepAlive),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.70),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
            P50_NOT_ABOVE_HAPROXY,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "get-1m",
        title: "GET, answered with 1 MiB, on 4 connections",
        load: get(1024 * KIB, Course::KeepAlive),
        connections: 4,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.60),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
        ],
    },
    Workload {
        name: "post-16k",
        title: "POST of 16 KiB, answered with 128 bytes, on 64 connections",
        load: Load::Http(HttpLoad {
            request: Request::Post(16 * KIB),
            answer_bytes: 128,
            course: Course::KeepAlive,
            transport: Transport::Plain,
        }),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.55),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
            P50_NOT_ABOVE_HAPROXY,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "idle",
        title: "4,000 connections that are kept alive and do nothing after one exchange",
        load: get(128, Course::Idle),
        connections: 4000,
        work: Work::Idle,
        targets: &[Target::own(Figure::IdleMemory, 1536.0)],
    },
    Workload {
        name: "tls-handshake",
        title: "connect with a full TLS handshake, GET 128 bytes, close; 64 at once",
        load: secured(128, Course::Connect),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.55),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
        ],
    },
    Workload {
        name: "tls-128",
        title: "GET over TLS, answered with 128 bytes, on 64 connections",
        load: secured(128, Course::KeepAlive),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.77),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
            P50_NOT_ABOVE_HAPROXY,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
    Workload {
        name: "tls-16k",
        title: "GET over TLS, answered with 16 KiB, on 64 connections",
        load: secured(16 * KIB, Course::KeepAlive),
        connections: 64,
        work: Work::Exchanges,
        targets: &[
            cpu_over_haproxy(0.60),
            CPU_NOT_ABOVE_TUNED_HAPROXY,
            CPU_NOT_ABOVE_NGINX,
            P50_NOT_ABOVE_HAPROXY,
            P99_NOT_ABOVE_HAPROXY,
        ],
    },
];

const CPU_NOT_ABOVE_TUNED_HAPROXY: Target = Target::over(Rival::HaproxyTuned, Figure::Cpu, 1.0);

const CPU_NOT_ABOVE_NGINX: Target = Target::over(Rival::Nginx, Figure::Cpu, 1.0);

const P50_NOT_ABOVE_HAPROXY: Target = Target::over(Rival::Haproxy, Figure::P50, 1.0);

const P99_NOT_ABOVE_HAPROXY: Target = Target::over(Rival::Haproxy, Figure::P99, 1.0);

const fn cpu_over_haproxy(at_most: f64) -> Target {
    Target::over(Rival::Haproxy, Figure::Cpu, at_most)
}

const fn get(answer_bytes: u64, course: Course) -> Load {
    Load::Http(HttpLoad {
        request: Request::Get,
        answer_bytes,
        course,
        transport: Transport::Plain,
    })
}

const fn secured(answer_bytes: u64, course: Course) -> Load {
    Load::Http(HttpLoad {
        request: Request::Get,
        answer_bytes,
        course,
        transport: Transport::Tls,
    })
}
