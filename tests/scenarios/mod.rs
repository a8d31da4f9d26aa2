//! What a user may rely on, told as small stories.
//!
//! A test named `fault_N_…` stands for a kind of fault that users of other balancers reported; `docs/faults.md` lists them.

mod access_log;
mod admin;
mod broken_file;
mod chaos;
mod commands;
mod configuration;
mod distribution;
mod dns;
mod endings;
mod failover;
mod http_requests;
mod lifecycle;
mod limits;
mod lookup;
mod many_connections;
mod mysql;
mod mysql_probes;
mod overrides;
mod packaging;
mod pipes;
mod probes;
mod proxied_probes;
mod proxy_protocol;
mod queueing;
mod redis;
mod reload;
mod reload_keeps;
mod reload_under_load;
mod streams;
mod tidy;
mod tls_passthrough;
mod tls_probes;
mod unix;
mod upgrade;
