//! What the bench needs of the machine, and what a reader needs to know of it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::inside::Programs;
use super::isolation::{CONGESTION_CONTROL, LOAD_CORE};
use super::options::Options;
use super::peer::{PROXY_CORE, Peer, caddy, nginx::STREAM_MODULE};
use super::rounds;
use crate::{command, requirements};

/// Programs and files, and the Debian packages that have them.
const NEEDED: &[(&str, &str)] = &[
    ("haproxy", "haproxy"),
    ("ip", "iproute2"),
    ("nginx", "nginx"),
    (STREAM_MODULE, "libnginx-mod-stream"),
];

/// One for the proxy, one for the load.
const CORES_MIN: usize = 2;

/// Above this load average, the cores are not the bench's own.
const BUSY: f64 = 0.5;

/// What packages are made with.
const PROFILE: &str = "dist";

/// Installs what is missing and builds the programs.
pub(crate) fn prepare(options: &mut Options) -> Result<Programs> {
    requirements::install(NEEDED)?;
    if !requirements::is_root() {
        bail!(
            "the bench makes network namespaces and so needs root: sudo env PATH=\"$PATH\" cargo xtask bench …"
        );
    }
    let cores = std::thread::available_parallelism().context("how many cores are there?")?;
    if cores.get() < CORES_MIN {
        bail!("the bench needs {CORES_MIN} cores: one for the proxy, one for the load");
    }
    let mut programs = build(options.evenkeel.as_deref())?;
    if options.peers.contains(&Peer::Caddy) {
        match caddy::obtain(&rounds::folder(&programs)?.with_extension("caddy")) {
            Ok(caddy) => programs.caddy = Some(caddy),
            Err(error) => {
                eprintln!("caddy is left out: {error:#}");
                options.peers.retain(|&peer| peer != Peer::Caddy);
            }
        }
    }
    Ok(programs)
}

/// `evenkeel` is a program that is there already.
fn build(evenkeel: Option<&Path>) -> Result<Programs> {
    let mut build = command::cargo(["build", "--profile", PROFILE, "-p", "evenkeel-bench"]);
    if evenkeel.is_none() {
        build.args(["-p", "evenkeel"]);
    }
    command::run(build)?;
    let itself = std::env::current_exe()?;
    let target = itself.ancestors().nth(2);
    let built = target
        .context("this program lies in no target folder")?
        .join(PROFILE);
    Ok(Programs {
        evenkeel: evenkeel.map_or_else(|| built.join("evenkeel"), Path::to_owned),
        load: built.join("evenkeel-bench"),
        caddy: None,
    })
}

/// Some lines: the machine, the programs, and how it is measured.
pub(crate) fn describe(options: &Options, programs: &Programs) -> String {
    let evenkeel = programs.evenkeel.to_string_lossy();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}; Linux {}; {}",
        processor(),
        kernel(),
        neighbourhood()
    );
    for command in [["haproxy", "-v"], ["nginx", "-v"], [&evenkeel, "--version"]] {
        let _ = writeln!(text, "{}", version(command));
    }
    if let Some(caddy) = &programs.caddy {
        let _ = writeln!(
            text,
            "Caddy {}",
            version([&caddy.to_string_lossy(), "version"])
        );
    }
    let _ = writeln!(
        text,
        "{} rounds, {:?} each after {:?} of warming up; proxy on core {PROXY_CORE}, load and endpoints on core {LOAD_CORE}; \
         congestion control {CONGESTION_CONTROL}",
        options.rounds, options.window, options.warm_up,
    );
    if let Some(average) = load_average().filter(|&average| average > BUSY) {
        let _ = writeln!(
            text,
            "the load average is {average}: others use this machine, and the figures will not mean much"
        );
    }
    text
}

/// Of the last minute.
fn load_average() -> Option<f64> {
    let averages = fs::read_to_string("/proc/loadavg").ok()?;
    averages.split_whitespace().next()?.parse().ok()
}

fn processor() -> String {
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = information
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("an unknown processor", |(_, name)| name)
        .to_owned()
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Two threads of one core share what a proxy and its load should not.
fn neighbourhood() -> String {
    let topology = Path::new("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let siblings = fs::read_to_string(topology).unwrap_or_default();
    let load = LOAD_CORE.to_string();
    if siblings
        .trim()
        .split([',', '-'])
        .any(|sibling| sibling == load)
    {
        "cores 0 and 1 are two threads of one core: expect noise".to_owned()
    } else {
        "cores 0 and 1 are cores of their own".to_owned()
    }
}

/// The first line that it prints, wherever it prints it.
fn version([program, argument]: [&str; 2]) -> String {
    let output = command::program_in_root(program).arg(argument).output();
    let Ok(output) = output else {
        return format!("{program}: not there");
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or_default().to_owned()
}
