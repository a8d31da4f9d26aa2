//! The TCP path, with real sockets on loopback: one proxy in this process, endpoints and clients as threads.
//!
//! The program around it is tested end to end elsewhere. Every wait has a deadline that only a fault reaches.

mod admitting;
mod announcing;
mod bulk;
mod closing;
mod failing;
mod handing_over;
mod layer7;
mod limits;
mod placing;
mod reloading;
mod running;
#[path = "../support/settings.rs"]
mod settings;
mod spreading;
mod streaming;
mod unix;
mod world;
