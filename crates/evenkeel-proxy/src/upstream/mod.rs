//! The side toward the endpoints: making a connection, and knowing who uses which endpoint.

mod attempt;
mod connect;
mod index;
pub(crate) mod pool;

pub(crate) use attempt::{Attempt, ConnectError, failure_of};
pub(crate) use connect::{Unwatched, connect};
pub(crate) use index::{Seat, SessionIndex};
