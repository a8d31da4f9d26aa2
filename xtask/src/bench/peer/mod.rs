//! Who is measured: evenkeel and its peers, each with one worker, two endpoints in turn, and a line in a log for every
//! connection.

mod evenkeel;
mod haproxy;
pub(crate) mod nginx;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::process::{self, Process, wait_until};

/// The core of the proxy and of nothing else.
pub(crate) const PROXY_CORE: usize = 0;

/// How long a proxy may take to be ready.
const READY_MAX: Duration = Duration::from_secs(10);

/// Where a peer's standard output goes.
const STANDARD_OUTPUT: &str = "stdout.log";

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Peer {
    /// No proxy: the client connects to an endpoint.
    Direct,
    Evenkeel,
    /// At its defaults.
    Haproxy,
    /// With `option splice-auto`.
    HaproxySplice,
    /// Its stream module.
    Nginx,
}

/// Whom evenkeel is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    Haproxy,
    Nginx,
}

impl Rival {
    /// The ways it is run; the better one counts.
    pub(crate) const fn variants(self) -> &'static [Peer] {
        match self {
            Self::Haproxy => &[Peer::Haproxy, Peer::HaproxySplice],
            Self::Nginx => &[Peer::Nginx],
        }
    }
}

impl Peer {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Evenkeel => "evenkeel",
            Self::Haproxy => "haproxy",
            Self::HaproxySplice => "haproxy-splice",
            Self::Nginx => "nginx",
        }
    }

    /// Starts it; none for the connection without a proxy.
    pub(crate) fn start(self, setting: &Setting<'_>) -> Result<Option<Proxy>> {
        let launch = match self {
            Self::Direct => return Ok(None),
            Self::Evenkeel => evenkeel::launch(setting),
            Self::Haproxy => haproxy::launch(setting, haproxy::Splicing::Default),
            Self::HaproxySplice => haproxy::launch(setting, haproxy::Splicing::Auto),
            Self::Nginx => nginx::launch(setting),
        };
        let proxy = launch.start(setting);
        proxy
            .with_context(|| format!("cannot run {}", self.name()))
            .map(Some)
    }
}

/// Where a peer is to listen, where its endpoints are, and where it may leave files.
pub(crate) struct Setting<'a> {
    pub(crate) evenkeel: &'a Path,
    pub(crate) listen: SocketAddr,
    pub(crate) endpoints: &'a [SocketAddr],
    pub(crate) folder: &'a Path,
}

impl Setting<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// How a peer is started and ended.
struct Launch {
    config: String,
    command: Command,
    /// Where its lines for connections go.
    access_log: PathBuf,
    /// Processes it consists of.
    processes: usize,
    /// Asks it to end when its connections have ended.
    end: Signal,
    /// Where it can be asked about splicing.
    statistics: Option<PathBuf>,
}

impl Launch {
    /// Writes its configuration, starts it, and waits until it listens.
    fn start(mut self, setting: &Setting<'_>) -> Result<Proxy> {
        fs::write(config_file(setting), &self.config)?;
        self.command
            .stdin(Stdio::null())
            .stdout(File::create(setting.file(STANDARD_OUTPUT))?)
            .stderr(File::create(setting.file("stderr.log"))?);
        let mut proxy = Proxy {
            process: Process::start(&mut self.command)?,
            access_log: self.access_log,
            end: self.end,
            statistics: self.statistics,
        };
        wait_until("it listens", READY_MAX, || {
            proxy.process.expect_running()?;
            let processes = proxy.process.family()?.len();
            Ok(processes == self.processes && is_listening(setting.listen)?)
        })?;
        Ok(proxy)
    }
}

fn config_file(setting: &Setting<'_>) -> PathBuf {
    setting.file("proxy.conf")
}

fn pinned(program: impl AsRef<std::ffi::OsStr>) -> Command {
    process::pinned(PROXY_CORE, program)
}

/// Seen without connecting: a connection would be one more session, for which there may be no endpoint yet.
fn is_listening(address: SocketAddr) -> Result<bool> {
    let port = format!(":{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp")?;
    Ok(table.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_port = columns.next().is_some_and(|local| local.ends_with(&port));
        is_port && columns.nth(1) == Some(LISTENING)
    }))
}

/// A peer at work.
pub(crate) struct Proxy {
    process: Process,
    access_log: PathBuf,
    end: Signal,
    statistics: Option<PathBuf>,
}

impl Proxy {
    pub(crate) fn processes(&self) -> Result<Vec<u32>> {
        self.process.family()
    }

    /// The share of its bytes that moved by splice, where it can be asked.
    pub(crate) fn spliced_share(&self) -> Result<Option<f64>> {
        self.statistics
            .as_deref()
            .map(haproxy::spliced_share)
            .transpose()
    }

    /// Lets it end, and counts the lines of its log.
    pub(crate) fn end(self) -> Result<u64> {
        self.process.end(self.end)?;
        let log = fs::read(&self.access_log).context("no access log")?;
        Ok(log.iter().filter(|&&byte| byte == b'\n').count() as u64)
    }
}
