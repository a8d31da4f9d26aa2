//! The reactor by itself, with real sockets.

mod pump;
mod stream;
mod support;
mod worker;
