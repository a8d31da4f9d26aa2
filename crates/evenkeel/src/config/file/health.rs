//! The raw form of `health`.

use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_proxy::settings::{ExpectAt, HttpMethod, RedisRole, StatusRange};

use super::{EndpointTls, Maybe, MaybeLimit};
use crate::config::diagnostics::Located;
use crate::config::read::{Choice, TableReader};
use crate::config::words::CheckName;

/// `health`.
#[derive(Debug)]
pub(in crate::config) struct Health {
    pub(in crate::config) check: Choice<CheckName>,
    pub(in crate::config) every: MaybeLimit<Duration>,
    pub(in crate::config) timeout: MaybeLimit<Duration>,
    pub(in crate::config) rise: Maybe<u64>,
    pub(in crate::config) fall: Maybe<u64>,
    pub(in crate::config) port: Maybe<u64>,
    pub(in crate::config) address: Maybe<Address>,
    pub(in crate::config) tls: Option<EndpointTls>,
    pub(in crate::config) method: Maybe<HttpMethod>,
    pub(in crate::config) path: Maybe<String>,
    pub(in crate::config) host: Maybe<String>,
    pub(in crate::config) status: Maybe<Vec<StatusRange>>,
    pub(in crate::config) user: Maybe<String>,
    pub(in crate::config) password: Maybe<String>,
    pub(in crate::config) password_file: Maybe<String>,
    pub(in crate::config) query: Maybe<String>,
    pub(in crate::config) role: Maybe<RedisRole>,
    pub(in crate::config) send: Maybe<Vec<u8>>,
    pub(in crate::config) expect: Maybe<Vec<u8>>,
    pub(in crate::config) expect_at: Maybe<ExpectAt>,
    /// Each key that goes with some checks alone and is written, and where.
    pub(in crate::config) particular: Vec<Located<Particular>>,
}

/// A key that goes with some checks alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Particular {
    pub(in crate::config) key: &'static str,
    pub(in crate::config) checks: &'static [CheckName],
}

const PARTICULAR: &[Particular] = &[
    only(
        "tls",
        &[
            CheckName::Tcp,
            CheckName::Http,
            CheckName::Redis,
            CheckName::SendExpect,
        ],
    ),
    only("method", &[CheckName::Http]),
    only("path", &[CheckName::Http]),
    only("host", &[CheckName::Http]),
    only("status", &[CheckName::Http]),
    only("user", &[CheckName::Mysql, CheckName::Redis]),
    only("password", &[CheckName::Mysql, CheckName::Redis]),
    only("password_file", &[CheckName::Mysql, CheckName::Redis]),
    only("query", &[CheckName::Mysql]),
    only("role", &[CheckName::Redis]),
    only("send", &[CheckName::SendExpect]),
    only("expect", &[CheckName::SendExpect]),
    only("expect_at", &[CheckName::SendExpect]),
];

const fn only(key: &'static str, checks: &'static [CheckName]) -> Particular {
    Particular { key, checks }
}

impl Health {
    pub(super) fn read(table: &TableReader<'_>) -> Self {
        let written = |particular: &Particular| {
            let span = table.key_place(particular.key)?;
            Some(Located {
                value: *particular,
                span,
            })
        };
        Self {
            check: table.choice("check"),
            every: table.duration("every"),
            timeout: table.duration("timeout"),
            rise: table.whole("rise"),
            fall: table.whole("fall"),
            port: table.whole("port"),
            address: table.address("address"),
            tls: table.table("tls").map(|tls| EndpointTls::read(&tls)),
            method: table.word("method"),
            path: table.text("path"),
            host: table.text("host"),
            status: table.status_codes("status"),
            user: table.text("user"),
            password: table.text("password"),
            password_file: table.file("password_file"),
            query: table.text("query"),
            role: table.word("role"),
            send: table.bytes("send"),
            expect: table.bytes("expect"),
            expect_at: table.word("expect_at"),
            particular: PARTICULAR.iter().filter_map(written).collect(),
        }
    }
}
