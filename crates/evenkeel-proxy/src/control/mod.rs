//! The control socket: how `evenkeel status`, `route`, `reload`, `upgrade` and `stop` reach a running process.
//!
//! A Unix stream socket of mode 0600. One JSON object per line asks, one JSON object per line answers ([`protocol`]); what
//! the answers say is in [`report`], [`operator`] and [`reload_report`]. [`socket`] makes sure that one process owns the path and that a dead one's leavings
//! are replaced; [`server`] and [`client`] are the two ends. Nothing here acts on the process: whoever serves the socket
//! passes a [`ControlHandler`](server::ControlHandler).

pub mod client;
mod lock;
pub mod operator;
mod peer;
pub mod protocol;
pub mod reload_report;
pub mod report;
mod reserve;
pub mod server;
pub mod socket;
pub mod upgrade_report;
