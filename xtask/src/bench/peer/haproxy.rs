//! HAProxy, at its defaults or with `option splice-auto`.
//!
//! It logs to its standard output, a file, which costs it least: 51 µs of CPU for each short connection, against 54 with a
//! syslog daemon on a Unix socket, which has to be woken (medians of six alternating runs on the machine of docs/performance.md).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::{Launch, STANDARD_OUTPUT, Setting, config_file, pinned};

/// How long it may take to answer on its statistics socket.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Bytes sent by splice; 2.6 has a slip of the pen in its name.
const SPLICED: &[&str] = &["TotalSplicedBytesOut", "TotalSplicdedBytesOut"];

/// Whether it is told to splice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splicing {
    Default,
    Auto,
}

pub(super) fn launch(setting: &Setting<'_>, splicing: Splicing) -> Launch {
    let statistics = setting.file("statistics.sock");
    let mut command = pinned("haproxy");
    command.arg("-db").arg("-f").arg(config_file(setting));
    Launch {
        config: config(setting, &statistics, splicing),
        command,
        access_log: setting.file(STANDARD_OUTPUT),
        processes: 1,
        end: Signal::USR1,
        statistics: (splicing == Splicing::Auto).then_some(statistics),
    }
}

fn config(setting: &Setting<'_>, statistics: &Path, splicing: Splicing) -> String {
    let splicing = match splicing {
        Splicing::Default => "",
        Splicing::Auto => "  option splice-auto\n",
    };
    let endpoints: String = (1..)
        .zip(setting.endpoints)
        .map(|(number, endpoint)| format!("  server endpoint{number} {endpoint}\n"))
        .collect();
    format!(
        "global
  nbthread 1
  maxconn 6000
  log stdout format raw local0
  stats socket {statistics}
defaults
  mode tcp
  log global
  option tcplog
{splicing}  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen bench
  bind {listen}
  balance roundrobin
{endpoints}",
        statistics = statistics.display(),
        listen = setting.listen,
    )
}

/// What it says itself of the bytes it has sent, from its start on.
pub(super) fn spliced_share(statistics: &Path) -> Result<f64> {
    let mut socket = UnixStream::connect(statistics)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    socket.write_all(b"show info\n")?;
    let mut information = String::new();
    socket.read_to_string(&mut information)?;
    let total = field(&information, "TotalBytesOut")?;
    let spliced = SPLICED
        .iter()
        .find_map(|name| field(&information, name).ok());
    let spliced = spliced.context("HAProxy says nothing of splicing")?;
    Ok(spliced / total.max(1.0))
}

fn field(information: &str, name: &str) -> Result<f64> {
    let mut fields = information.lines().filter_map(|line| line.split_once(": "));
    let value = fields.find(|(field, _)| *field == name);
    value
        .and_then(|(_, value)| value.trim().parse().ok())
        .with_context(|| format!("HAProxy says nothing of {name}"))
}
