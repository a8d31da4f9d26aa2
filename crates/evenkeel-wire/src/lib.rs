//! PARSE: bytes to frames and back, without IO.
//!
//! Nothing here reads a socket, allocates without a limit, or panics on any bytes.

#![forbid(unsafe_code)]

pub mod certificate;
pub mod client_hello;
pub mod http1;
pub mod mysql;
pub mod proxy_protocol;
