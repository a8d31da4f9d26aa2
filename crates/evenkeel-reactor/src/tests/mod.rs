//! The reactor by itself, with real sockets.

mod pump;
mod splice;
mod stream;
mod support;
mod worker;
