//! Packets of the MySQL client/server protocol.

mod error;

pub use error::{MESSAGE_BYTES_MAX, UNKNOWN_ERROR, error_instead_of_greeting};
