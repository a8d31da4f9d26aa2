//! One measurement, inside of its namespaces: start the proxy, run the load, ask the proxy, let it end.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use evenkeel_bench::{Figures, Load, Plan, Transport};
use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use super::isolation;
use super::peer::{Peer, Proxy, Setting};
use super::trace::{Calls, Trace};

/// Below the range from which the kernel takes ports for outgoing connections.
const LISTEN: SocketAddr = local(8000);
const ENDPOINTS: [SocketAddr; 2] = [local(9001), local(9002)];

const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// What is to be measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) peer: Peer,
    pub(crate) load: Load,
    pub(crate) connections: usize,
    pub(crate) warm_up_millis: u64,
    pub(crate) window_millis: u64,
    pub(crate) probe: Probe,
    pub(crate) programs: Programs,
    /// For configurations and logs; emptied first.
    pub(crate) folder: PathBuf,
}

/// How the proxy is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Probe {
    /// From outside, for figures.
    Accounts,
    /// Under strace, which makes figures worthless.
    SystemCalls,
}

/// The programs that were built for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Programs {
    pub(crate) evenkeel: PathBuf,
    pub(crate) load: PathBuf,
    /// Where it is measured and could be had.
    pub(crate) caddy: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) figures: Figures,
    /// The share of bytes that moved by splice, where the proxy can be asked.
    pub(crate) spliced_share: Option<f64>,
    /// Lines in the proxy's log: one for a connection, or for an exchange of HTTP.
    pub(crate) log_lines: Option<u64>,
    /// With [`Probe::SystemCalls`] only.
    pub(crate) calls: Calls,
}

/// Measures what the request, JSON, says, and prints the measurement, JSON.
pub(crate) fn run(request: &str) -> Result<()> {
    let request: Request = serde_json::from_str(request)?;
    isolation::prepare()?;
    empty(&request.folder)?;
    let measurement = measure(&request)?;
    println!("{}", serde_json::to_string(&measurement)?);
    Ok(())
}

/// Logs are appended to: those of the measurement before must not be there.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

fn measure(request: &Request) -> Result<Measurement> {
    let certificate = is_secured(request.load).then(|| Certificate::make(&request.folder));
    let certificate = certificate.transpose()?;
    let setting = Setting {
        programs: &request.programs,
        load: request.load,
        listen: LISTEN,
        endpoints: &ENDPOINTS,
        folder: &request.folder,
        certificate: certificate.as_ref(),
    };
    let proxy = request.peer.start(&setting)?;
    let trace = proxy
        .as_ref()
        .filter(|_| request.probe == Probe::SystemCalls);
    let trace = trace.map(|proxy| Trace::attach(&proxy.processes()?, &request.folder));
    let trace = trace.transpose()?;
    let trusted = certificate.map(|certificate| certificate.certificate);
    let figures = run_load(request, proxy.as_ref(), trusted)?;
    let calls = trace.map(Trace::detach).transpose()?;
    let spliced_share = proxy.as_ref().map(Proxy::spliced_share).transpose()?;
    Ok(Measurement {
        figures,
        spliced_share: spliced_share.flatten(),
        log_lines: proxy.map(Proxy::end).transpose()?,
        calls: calls.unwrap_or_default(),
    })
}

/// Whether connections to the proxy are secured by TLS.
pub(crate) const fn is_secured(load: Load) -> bool {
    match load {
        Load::Tcp(_) => false,
        Load::Http(load) => matches!(load.transport, Transport::Tls),
    }
}

fn run_load(request: &Request, proxy: Option<&Proxy>, trusted: Option<PathBuf>) -> Result<Figures> {
    let plan = Plan {
        load: request.load,
        connections: request.connections,
        target: proxy.map_or(ENDPOINTS[0], |_| LISTEN),
        endpoints: ENDPOINTS.to_vec(),
        warm_up_millis: request.warm_up_millis,
        window_millis: request.window_millis,
        trusted,
        watched: proxy.map(Proxy::processes).transpose()?.unwrap_or_default(),
    };
    let output = Command::new(&request.programs.load)
        .arg(serde_json::to_string(&plan)?)
        .output()
        .context("cannot start the load")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the load printed no figures")
}
