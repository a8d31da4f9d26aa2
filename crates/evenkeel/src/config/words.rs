//! The closed lists of words that some keys take.

use evenkeel_core::{Failback, WhenNone};
use evenkeel_proxy::discovery::Family;
use evenkeel_proxy::settings::{
    ExpectAt, Forward, HttpMethod, KeySource, LogFormat, OnDown, ProxyVersion, RedisRole, Splice,
};

/// A type whose values the user writes as words.
pub(super) trait Words: Copy + PartialEq + Sized + 'static {
    /// Each word and what it means, in the order of the reference.
    const ALL: &'static [(&'static str, Self)];

    fn of(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    }

    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, value)| *value == self);
        debug_assert!(
            found.is_some(),
            "every value of a word type is listed in ALL"
        );
        found.map_or("", |(name, _)| name)
    }
}

/// The words of a type, for a table of keys that cannot be generic.
pub(super) fn names<T: Words>() -> Vec<&'static str> {
    T::ALL.iter().map(|(name, _)| *name).collect()
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Http,
}

impl Words for Protocol {
    const ALL: &'static [(&'static str, Self)] = &[("tcp", Self::Tcp), ("http", Self::Http)];
}

/// What is done with a header that tells of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardName {
    Leave,
    Append,
    Replace,
}

impl Words for ForwardName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("leave", Self::Leave),
        ("append", Self::Append),
        ("replace", Self::Replace),
    ];
}

impl From<ForwardName> for Forward {
    fn from(name: ForwardName) -> Self {
        match name {
            ForwardName::Leave => Self::Leave,
            ForwardName::Append => Self::Append,
            ForwardName::Replace => Self::Replace,
        }
    }
}

impl From<Forward> for ForwardName {
    fn from(forward: Forward) -> Self {
        match forward {
            Forward::Leave => Self::Leave,
            Forward::Append => Self::Append,
            Forward::Replace => Self::Replace,
        }
    }
}

/// A version of the PROXY header, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderName {
    Off,
    V1,
    V2,
}

impl Words for HeaderName {
    const ALL: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("v1", Self::V1), ("v2", Self::V2)];
}

impl From<HeaderName> for Option<ProxyVersion> {
    fn from(name: HeaderName) -> Self {
        match name {
            HeaderName::Off => None,
            HeaderName::V1 => Some(ProxyVersion::V1),
            HeaderName::V2 => Some(ProxyVersion::V2),
        }
    }
}

impl From<Option<ProxyVersion>> for HeaderName {
    fn from(version: Option<ProxyVersion>) -> Self {
        match version {
            None => Self::Off,
            Some(ProxyVersion::V1) => Self::V1,
            Some(ProxyVersion::V2) => Self::V2,
        }
    }
}

/// A balancing algorithm by name alone; its policy is in keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BalanceName {
    RoundRobin,
    Random,
    TwoChoices,
    LeastConnections,
    SourceHash,
    Hash,
}

impl Words for BalanceName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("round-robin", Self::RoundRobin),
        ("random", Self::Random),
        ("two-choices", Self::TwoChoices),
        ("least-connections", Self::LeastConnections),
        ("source-hash", Self::SourceHash),
        ("hash", Self::Hash),
    ];
}

/// What a probe asks, by name alone; the rest is in keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckName {
    Tcp,
    Http,
    Mysql,
    Redis,
    SendExpect,
}

impl Words for CheckName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("tcp", Self::Tcp),
        ("http", Self::Http),
        ("mysql", Self::Mysql),
        ("redis", Self::Redis),
        ("send-expect", Self::SendExpect),
    ];
}

impl Words for HttpMethod {
    const ALL: &'static [(&'static str, Self)] = &[("GET", Self::Get), ("HEAD", Self::Head)];
}

impl Words for RedisRole {
    const ALL: &'static [(&'static str, Self)] =
        &[("master", Self::Master), ("replica", Self::Replica)];
}

impl Words for ExpectAt {
    const ALL: &'static [(&'static str, Self)] =
        &[("start", Self::Start), ("anywhere", Self::Anywhere)];
}

impl Words for OnDown {
    const ALL: &'static [(&'static str, Self)] = &[("keep", Self::Keep), ("close", Self::Close)];
}

impl Words for KeySource {
    const ALL: &'static [(&'static str, Self)] = &[
        ("source-address", Self::SourceAddress),
        ("first-line", Self::FirstLine),
    ];
}

impl Words for Family {
    const ALL: &'static [(&'static str, Self)] = &[
        ("prefer-ipv4", Self::PreferIpv4),
        ("ipv4", Self::Ipv4),
        ("ipv6", Self::Ipv6),
        ("any", Self::Any),
    ];
}

impl Words for Splice {
    const ALL: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("off", Self::Off)];
}

impl Words for WhenNone {
    const ALL: &'static [(&'static str, Self)] = &[("fail", Self::Fail), ("use-all", Self::UseAll)];
}

impl Words for Failback {
    const ALL: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("manual", Self::Manual)];
}

impl Words for LogFormat {
    const ALL: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

/// How much the program says about itself on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What an operator must act on.
    Error,
    /// And what the program recovered from by itself.
    Warn,
    /// And what changed: starts, stops, endpoints that leave and return.
    #[default]
    Info,
    /// And every decision.
    Debug,
}

impl Words for LogLevel {
    const ALL: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}
