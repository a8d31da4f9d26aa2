//! Packets of the MySQL client/server protocol: the error that stands in for a greeting, and a client that checks a server.

mod answer;
mod capability;
mod client;
mod error;
mod greeting;
mod login;
mod packet;
#[cfg(test)]
mod tests;

pub use answer::ServerError;
pub use client::{COLUMNS_MAX, Client, Event, ROWS_MAX};
pub use error::{MESSAGE_BYTES_MAX, UNKNOWN_ERROR, error_instead_of_greeting};
pub use login::Account;
pub use packet::{Malformed, PAYLOAD_BYTES_MAX};
