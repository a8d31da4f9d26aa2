//! DECIDE: which endpoint, wait or refuse, when an endpoint is out.
//!
//! Plain synchronous values that are given the time, a random source and facts, and return a decision. This crate never
//! reads a clock, a random source or a socket, and no request type of any protocol reaches it.

#![forbid(unsafe_code)]

mod acquire;
mod cluster;
pub mod units;

pub use acquire::*;
pub use cluster::*;
