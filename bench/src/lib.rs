//! The load and the endpoints of the benches: one process on a core of its own, which also reads what the proxy has used.
//!
//! It is given a [`Plan`], carries it out, and returns [`Figures`]. Every answer is checked and every byte is counted; a load
//! that lost or changed anything is an error, not a figure. Which proxies are compared, how often and in which order is decided
//! in `xtask`; nothing here knows a proxy by name.

mod connect;
mod drive;
mod endpoints;
mod histogram;
mod http;
mod pattern;
mod plan;
mod tcp;
mod watched;
mod window;

use anyhow::Result;

pub use plan::{
    Course, Figures, HttpLoad, Latency, Load, Plan, Request, TcpLoad, Transport, Usage,
};

/// Carries out the plan, in the time that it allows and a few seconds more.
///
/// # Errors
///
/// When a connection failed, an answer was wrong or late, or a watched process has gone.
pub fn run(plan: &Plan) -> Result<Figures> {
    match plan.load {
        Load::Tcp(load) => tcp::run(plan, load),
        Load::Http(load) => http::run(plan, load),
    }
}
