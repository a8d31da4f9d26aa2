//! The bits by which client and server agree on how they speak.
//!
//! Source: MySQL Internals, "Capabilities Flags".

/// To MariaDB, which does not offer it, that the client is none of its own; to servers of long ago, a longer password.
pub(super) const LONG_PASSWORD: u32 = 1;
pub(super) const LONG_FLAG: u32 = 1 << 2;
pub(super) const PROTOCOL_41: u32 = 1 << 9;
pub(super) const TRANSACTIONS: u32 = 1 << 13;
pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
pub(super) const PLUGIN_AUTH: u32 = 1 << 19;

/// What this client asks for where the server offers it. Without `DEPRECATE_EOF`: the older form of results is understood by every server.
pub(super) const WANTED: u32 =
    LONG_FLAG | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH;
