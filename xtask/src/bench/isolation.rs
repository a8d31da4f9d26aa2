//! Where a measurement takes place: in namespaces of its own, which the kernel clears away with everything in them.
//!
//! Each measurement has its own network, so that none inherits connections in `TIME_WAIT` or used-up ports from the one
//! before, and its own process numbers, so that whatever it started ends with it: also when it is killed, and when the bench
//! is.

use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// The core of the load and the endpoints.
pub(crate) const LOAD_CORE: usize = 1;

/// Descriptors a process may open: 4,000 pairs of connections take two each in the load as well as in the proxy.
const DESCRIPTORS_MAX: usize = 16_384;

/// Every kernel has it and allows it in every namespace.
pub(crate) const CONGESTION_CONTROL: &str = "reno";

/// What is set in the new network. An operator of so many short connections would widen the range of ports, too.
const SETTINGS: &[(&str, &str)] = &[
    ("tcp_congestion_control", CONGESTION_CONTROL),
    ("ip_local_port_range", "10000 65000"),
];

/// This program with other arguments, in new namespaces and on the core of the load.
pub(crate) fn enter(arguments: &[&str]) -> Result<Command> {
    let mut enter = Command::new("setpriv");
    enter
        .args(["--pdeathsig", "KILL", "--"])
        .args([
            "unshare",
            "--net",
            "--pid",
            "--mount-proc",
            "--kill-child",
            "--",
        ])
        .args([
            "prlimit",
            &format!("--nofile={DESCRIPTORS_MAX}:{DESCRIPTORS_MAX}"),
            "--",
        ])
        .args(["taskset", "--cpu-list", &LOAD_CORE.to_string()])
        .arg(std::env::current_exe()?)
        .args(arguments);
    Ok(enter)
}

/// Makes the new network usable; to be called inside.
pub(crate) fn prepare() -> Result<()> {
    let mut loopback = Command::new("ip");
    loopback.args(["link", "set", "lo", "up"]);
    let status = loopback.status().context("cannot start ip")?;
    command::expect_success(&loopback, status)?;
    for (name, value) in SETTINGS {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
            .with_context(|| format!("cannot set {name} to {value}"))?;
    }
    Ok(())
}
