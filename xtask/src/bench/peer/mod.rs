//! Who is measured: evenkeel and its peers, each with one worker, two endpoints in turn, and a line in a log for every
//! connection or, with HTTP, for every exchange.

pub(crate) mod caddy;
mod evenkeel;
mod haproxy;
pub(crate) mod nginx;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use evenkeel_bench::Load;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use super::inside::{Programs, is_secured};
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
    /// With `option splice-auto`; TCP alone.
    HaproxySplice,
    /// With larger buffers; HTTP alone.
    HaproxyTuned,
    /// At its defaults.
    Nginx,
    /// With larger buffers; HTTP alone.
    NginxTuned,
    /// HTTP alone.
    Caddy,
}

/// Whom evenkeel is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    Haproxy,
    HaproxyTuned,
    Nginx,
}

impl Rival {
    /// The ways it is run; of those that the bench has, the better one counts.
    pub(crate) const fn variants(self) -> &'static [Peer] {
        match self {
            Self::Haproxy => &[Peer::Haproxy, Peer::HaproxySplice],
            Self::HaproxyTuned => &[Peer::HaproxyTuned],
            Self::Nginx => &[Peer::Nginx, Peer::NginxTuned],
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
            Self::HaproxyTuned => "haproxy-tuned",
            Self::Nginx => "nginx",
            Self::NginxTuned => "nginx-tuned",
            Self::Caddy => "caddy",
        }
    }

    /// Whether it has a part in such a load: there are no endpoints with TLS.
    pub(crate) fn can_serve(self, load: Load) -> bool {
        self != Self::Direct || !is_secured(load)
    }

    /// Starts it; none for the connection without a proxy.
    pub(crate) fn start(self, setting: &Setting<'_>) -> Result<Option<Proxy>> {
        if self == Self::Direct {
            return Ok(None);
        }
        let launch = match setting.load {
            Load::Tcp(_) => self.tcp(setting),
            Load::Http(_) => self.http(setting),
        };
        let proxy = launch.and_then(|launch| launch.start(setting));
        proxy
            .with_context(|| format!("cannot run {}", self.name()))
            .map(Some)
    }

    fn tcp(self, setting: &Setting<'_>) -> Result<Launch> {
        Ok(match self {
            Self::Evenkeel => evenkeel::tcp(setting),
            Self::Haproxy => haproxy::tcp(setting, haproxy::Splicing::Default),
            Self::HaproxySplice => haproxy::tcp(setting, haproxy::Splicing::Auto),
            Self::Nginx => nginx::tcp(setting),
            Self::Direct | Self::HaproxyTuned | Self::NginxTuned | Self::Caddy => {
                bail!("it has no part in the bench of TCP")
            }
        })
    }

    fn http(self, setting: &Setting<'_>) -> Result<Launch> {
        Ok(match self {
            Self::Evenkeel => evenkeel::http(setting)?,
            Self::Haproxy => haproxy::http(setting, Buffers::Default),
            Self::HaproxyTuned => haproxy::http(setting, Buffers::Large),
            Self::Nginx => nginx::http(setting, Buffers::Default),
            Self::NginxTuned => nginx::http(setting, Buffers::Large),
            Self::Caddy => caddy::http(setting)?,
            Self::Direct | Self::HaproxySplice => bail!("it has no part in the bench of HTTP"),
        })
    }
}

/// Where a peer is to listen, where its endpoints are, and where it may leave files.
pub(crate) struct Setting<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) load: Load,
    pub(crate) listen: SocketAddr,
    pub(crate) endpoints: &'a [SocketAddr],
    pub(crate) folder: &'a std::path::Path,
    /// What it shows, where connections to it are secured by TLS.
    pub(crate) certificate: Option<&'a Certificate>,
}

impl Setting<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The buffers of a peer that can be given others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffers {
    Default,
    /// Such that a body of 16 KiB fits into one.
    Large,
}

/// How a peer is started and ended.
struct Launch {
    config: String,
    command: Command,
    /// Where its lines for connections or exchanges go.
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
