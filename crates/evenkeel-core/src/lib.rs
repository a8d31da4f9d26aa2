//! DECIDE: which endpoint, wait or refuse, when an endpoint is out.
//!
//! Plain synchronous values that are given the time, a random source and facts, and return a decision. This crate never
//! reads a clock, a random source or a socket, and no request type of any protocol reaches it.
//!
//! Where to read: [`Cluster::acquire`] in `acquire.rs` is the one critical section, in which an endpoint is chosen and
//! counted. `balance/` holds an algorithm per file; `snapshot.rs` what they see; `roster.rs` and `condition.rs` how
//! failures, successes, probes and time change it; `wait.rs` the queue of those who found every endpoint full. What an
//! operator and probes say comes in by `operate.rs`.
//!
//! What decides whether an endpoint gets work, from the strongest on: the operator (`overrides.rs`), probes (`health.rs`),
//! ejection (`condition.rs`), who is on duty (`duty.rs`), effective weight (`fade.rs`), the balancer, limits.
//!
//! Locks, in the order in which they may be taken (each is left out where it is not needed): the plan, the wait queue's
//! line, the roster, a balancer's rotation. None is held while a [`Waiter`] is called.

#![forbid(unsafe_code)]

mod acquire;
mod balance;
mod cluster;
mod condition;
mod counts;
mod duty;
mod ejection;
mod endpoint;
mod fade;
mod fault;
mod health;
mod kept;
mod lease;
mod operate;
mod overrides;
mod reconfigure;
mod report;
mod retry;
mod roster;
mod snapshot;
mod stripe;
mod tried;
pub mod units;
mod wait;

#[cfg(test)]
#[path = "../tests/sim.rs"]
mod sim;
#[cfg(test)]
mod tests;

pub use acquire::{Acquired, Cluster, Refusal, Request};
pub use cluster::*;
pub use duty::Duty;
pub use endpoint::Losses;
pub use health::{HealthChange, Judgement, ProbeResult};
pub use kept::{KeptCluster, KeptEndpoint, KeptStanding};
pub use lease::{Failure, Lease, Outcome};
pub use operate::FailbackRefusal;
pub use overrides::{EndpointOverrides, Overridden, Override, Service, UnknownEndpoint};
pub use report::{ClusterStatus, EndpointState, EndpointStatus, Explanation, Verdict};
pub use retry::{AttemptPolicy, Candidates, NextAttempt};
pub use tried::Tried;
pub use wait::{Ticket, Waiter};
