//! The harness: starts the real program and real servers, talks to them, and waits for states that can be seen.
//!
//! Everything here belongs to one test at a time: ports, directories and processes are its own, and end with it, also when
//! it panics. Nothing sleeps to let something happen; [`wait::until`] watches for it.

pub(crate) mod binary;
pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod deaf;
pub(crate) mod dnsmasq;
pub(crate) mod echo;
pub(crate) mod evenkeel;
pub(crate) mod haproxy;
pub(crate) mod http;
pub(crate) mod mariadb;
pub(crate) mod metrics;
pub(crate) mod namespace;
pub(crate) mod nginx;
pub(crate) mod nginx_stream;
pub(crate) mod openssl;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod redis;
pub(crate) mod service;
pub(crate) mod stream;
pub(crate) mod wait;
