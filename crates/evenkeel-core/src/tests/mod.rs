//! The rules of the core, one by one, against the public interface.
//!
//! "Fault #n" names a kind of fault that other balancers have had; the numbers are listed in
//! `docs/decisions/0002-balancing.md`.

pub(crate) mod world;

mod availability;
mod balancing;
mod ejection;
mod explain;
mod failback;
mod fallback;
mod hashing;
mod health;
mod limits;
mod overrides;
mod reload;
mod threads;
mod weight;
