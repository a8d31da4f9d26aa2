//! HAProxy: at its defaults, with `option splice-auto`, or with larger buffers.
//!
//! It logs to its standard output, a file, which costs it least: 51 µs of CPU for each short connection, against 54 with a
//! syslog daemon on a Unix socket, which has to be woken (medians of six alternating runs on the machine of docs/performance.md).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::{Buffers, Launch, STANDARD_OUTPUT, Setting, config_file, pinned};

/// How long it may take to answer on its statistics socket.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The socket on which it can be asked.
const STATISTICS: &str = "statistics.sock";

/// Bytes sent by splice; 2.6 has a slip of the pen in its name.
const SPLICED: &[&str] = &["TotalSplicedBytesOut", "TotalSplicdedBytesOut"];

/// Whether it is told to splice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splicing {
    Default,
    Auto,
}

pub(super) fn tcp(setting: &Setting<'_>, splicing: Splicing) -> Launch {
    let statistics = (splicing == Splicing::Auto).then(|| setting.file(STATISTICS));
    let splicing = match splicing {
        Splicing::Default => "",
        Splicing::Auto => "  option splice-auto\n",
    };
    let defaults = format!("  mode tcp\n  option tcplog\n{splicing}");
    let config = config(setting, "", &defaults, "");
    launch(setting, config, statistics)
}

/// It keeps connections to endpoints by itself. Its probe is evenkeel's.
pub(super) fn http(setting: &Setting<'_>, buffers: Buffers) -> Launch {
    let global = match buffers {
        Buffers::Default => "",
        Buffers::Large => "  tune.bufsize 65536\n",
    };
    let defaults = "  mode http\n  option httplog\n  option forwardfor\n";
    let config = config(setting, global, defaults, " check inter 1s rise 1");
    launch(setting, config, None)
}

fn launch(setting: &Setting<'_>, config: String, statistics: Option<PathBuf>) -> Launch {
    let mut command = pinned("haproxy");
    command.arg("-db").arg("-f").arg(config_file(setting));
    Launch {
        config,
        command,
        access_log: setting.file(STANDARD_OUTPUT),
        processes: 1,
        end: Signal::USR1,
        statistics,
    }
}

/// `global` and `defaults` are lines of those sections; `probe` is said of each endpoint.
fn config(setting: &Setting<'_>, global: &str, defaults: &str, probe: &str) -> String {
    let endpoints: String = (1..)
        .zip(setting.endpoints)
        .map(|(number, endpoint)| format!("  server endpoint{number} {endpoint}{probe}\n"))
        .collect();
    format!(
        "global
  nbthread 1
  maxconn 6000
  log stdout format raw local0
  stats socket {statistics}
{global}defaults
  log global
{defaults}  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen bench
  bind {listen}{secured}
  balance roundrobin
{endpoints}",
        statistics = setting.file(STATISTICS).display(),
        listen = setting.listen,
        secured = secured(setting),
    )
}

/// What follows the address that it listens on.
fn secured(setting: &Setting<'_>) -> String {
    setting.certificate.map_or_else(String::new, |certificate| {
        format!(" ssl crt {}", certificate.bundle.display())
    })
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
