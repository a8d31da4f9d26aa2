//! `health` as settings, with the defaults.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::HealthPolicy;
use evenkeel_proxy::settings::{
    Check, ExpectAt, HttpCheck, HttpMethod, MysqlCheck, ProbeSettings, ProbeTarget, RedisCheck,
    Secret, SendExpectCheck, StatusRange,
};

use super::tls::endpoint_tls;
use super::{limit, narrow, or, within};
use crate::config::diagnostics::Located;
use crate::config::file::Health;
use crate::config::read::Choice;
use crate::config::words::CheckName;

const EVERY: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const RISE: u32 = 2;
const FALL: u32 = 3;
const STATUS: StatusRange = StatusRange {
    first: 200,
    last: 399,
};

pub(super) fn probe(written: &Health, folder: &Path) -> Option<ProbeSettings> {
    let every = probe_every(written);
    Some(ProbeSettings {
        check: check(written, folder)?,
        every,
        timeout: limit(&[&written.timeout], None).unwrap_or_else(|| TIMEOUT.min(every)),
        target: target(written),
        tls: written.tls.as_ref().map(|tls| endpoint_tls(tls, folder)),
    })
}

/// How often probes are sent.
pub(in crate::config) fn probe_every(written: &Health) -> Duration {
    limit(&[&written.every], None).unwrap_or(EVERY)
}

pub(super) fn policy(written: &Health) -> HealthPolicy {
    let count = |written: &Option<Located<u64>>, default| {
        written
            .as_ref()
            .map_or(default, |count| narrow(count.value))
    };
    HealthPolicy {
        rise: count(&written.rise, RISE),
        fall: count(&written.fall, FALL),
    }
}

fn target(written: &Health) -> ProbeTarget {
    match (&written.address, &written.port) {
        (Some(address), _) => ProbeTarget::Address(address.value.clone()),
        (None, Some(port)) => ProbeTarget::Port(u16::try_from(port.value).unwrap_or(u16::MAX)),
        (None, None) => ProbeTarget::Endpoint,
    }
}

fn check(written: &Health, folder: &Path) -> Option<Check> {
    let Choice::Made(name) = &written.check else {
        return None;
    };
    Some(match name.value {
        CheckName::Tcp => Check::Tcp,
        CheckName::Http => Check::Http(http(written)),
        CheckName::Mysql => Check::Mysql(mysql(written, folder)?),
        CheckName::Redis => Check::Redis(redis(written, folder)),
        CheckName::SendExpect => Check::SendExpect(send_expect(written)?),
    })
}

fn http(written: &Health) -> HttpCheck {
    HttpCheck {
        method: or(&written.method, HttpMethod::default()),
        path: text(&written.path).unwrap_or_else(|| Arc::from("/")),
        host: text(&written.host).or_else(|| server_name(written)),
        status: written
            .status
            .as_ref()
            .map_or_else(|| vec![STATUS], |status| status.value.clone()),
    }
}

/// Who is asked for by name in the handshake is the host that is meant.
fn server_name(written: &Health) -> Option<Arc<str>> {
    let name = written.tls.as_ref()?.server_name.as_ref()?;
    Some(Arc::from(name.value.as_str()))
}

fn mysql(written: &Health, folder: &Path) -> Option<MysqlCheck> {
    Some(MysqlCheck {
        user: text(&written.user)?,
        password: secret(written, folder),
        query: text(&written.query),
    })
}

fn redis(written: &Health, folder: &Path) -> RedisCheck {
    RedisCheck {
        user: text(&written.user),
        password: secret(written, folder),
        role: written.role.as_ref().map(|role| role.value),
    }
}

fn send_expect(written: &Health) -> Option<SendExpectCheck> {
    let bytes = |text: &Located<Vec<u8>>| Arc::from(text.value.as_slice());
    Some(SendExpectCheck {
        send: written.send.as_ref().map(bytes),
        expect: written.expect.as_ref().map(bytes)?,
        at: or(&written.expect_at, ExpectAt::default()),
    })
}

fn secret(written: &Health, folder: &Path) -> Option<Secret> {
    let file = written.password_file.as_ref();
    let file = file.map(|path| Secret::File(within(folder, &path.value)));
    file.or_else(|| text(&written.password).map(Secret::Text))
}

fn text(written: &Option<Located<String>>) -> Option<Arc<str>> {
    written.as_ref().map(|text| Arc::from(text.value.as_str()))
}
