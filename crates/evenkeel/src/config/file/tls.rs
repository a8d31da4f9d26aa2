//! The raw form of `tls`.

use evenkeel_proxy::discovery::DnsName;

use super::Maybe;
use crate::config::read::TableReader;

/// `tls` toward endpoints.
#[derive(Debug)]
pub(in crate::config) struct EndpointTls {
    pub(in crate::config) ca: Maybe<String>,
    pub(in crate::config) server_name: Maybe<DnsName>,
    pub(in crate::config) verify: Maybe<bool>,
    pub(in crate::config) certificate: Maybe<String>,
    pub(in crate::config) key: Maybe<String>,
}

impl EndpointTls {
    pub(super) fn read(table: &TableReader<'_>) -> Self {
        Self {
            ca: table.file("ca"),
            server_name: table.host_name("server_name"),
            verify: table.flag("verify"),
            certificate: table.file("certificate"),
            key: table.file("key"),
        }
    }
}
