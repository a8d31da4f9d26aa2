//! The HTTP path, with real sockets on loopback: one proxy in this process, endpoints and clients as threads.
//!
//! The program around it is tested end to end elsewhere. Every wait has a deadline that only a fault reaches.

mod answering;
mod carrying;
mod failing;
mod hostile;
#[path = "../support/settings.rs"]
mod settings;
mod tunneling;
mod world;
