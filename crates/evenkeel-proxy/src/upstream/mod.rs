//! The side toward the endpoints: making a connection, and knowing who uses which endpoint.

mod attempt;
mod index;

pub(crate) use attempt::{Attempt, ConnectError, failure_of};
pub(crate) use index::{Seat, SessionIndex};
