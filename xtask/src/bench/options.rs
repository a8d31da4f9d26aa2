//! What the command line of a bench says.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::inside::Probe;
use super::peer::Peer;
use super::workload::Workload;

const ROUNDS_DEFAULT: usize = 15;
const ROUNDS_MAX: usize = 1000;
const WINDOW_DEFAULT: Duration = Duration::from_secs(2);
const WINDOW_MAX: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_millis(500);

/// With `--quick`: enough to see that everything works, too little to learn anything.
const QUICK_ROUNDS: usize = 2;
const QUICK_WINDOW: Duration = Duration::from_millis(300);
const QUICK_WARM_UP: Duration = Duration::from_millis(100);

pub(crate) const USAGE: &str = "\
options: --rounds N         how often everything is measured (15)
         --seconds N        how long each measurement takes, beside half a second of warming up (2)
         --quick            2 short rounds: shows that it works, and nothing else
         --loads A,B,…      only these loads
         --peers A,B,…      only these peers
         --evenkeel FILE    measure this program instead of building one
         --syscalls         count system calls instead, each load once, under strace
         --json             print one JSON object instead of the report
         --svg FILE         also draw a plot";

/// Everything that can be chosen.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
    pub(crate) workloads: Vec<&'static Workload>,
    pub(crate) peers: Vec<Peer>,
    /// A program that is measured as it is.
    pub(crate) evenkeel: Option<PathBuf>,
    pub(crate) probe: Probe,
    pub(crate) format: Format,
    pub(crate) plot: Option<PathBuf>,
}

/// How the results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Options {
    /// `workloads` and `peers` are those that the bench has.
    pub(crate) fn parse(
        arguments: &[String],
        workloads: &'static [Workload],
        peers: &'static [Peer],
    ) -> Result<Self> {
        let mut options = Self {
            rounds: ROUNDS_DEFAULT,
            warm_up: WARM_UP,
            window: WINDOW_DEFAULT,
            workloads: workloads.iter().collect(),
            peers: peers.to_vec(),
            evenkeel: None,
            probe: Probe::Accounts,
            format: Format::Text,
            plot: None,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if let Err(fault) = options.take(word, &mut words) {
                bail!("{word}: {fault:#}\n\n{USAGE}");
            }
        }
        Ok(options)
    }

    /// The chosen ones that have a part in this load.
    pub(crate) fn peers_for(&self, workload: &Workload) -> Vec<Peer> {
        let peers = self.peers.iter().copied();
        peers.filter(|peer| peer.can_serve(workload.load)).collect()
    }

    fn take<'a>(&mut self, word: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<()> {
        match word {
            "--rounds" => self.rounds = number(rest.next(), ROUNDS_MAX)?,
            "--seconds" => {
                let seconds = number(rest.next(), WINDOW_MAX.as_secs())?;
                self.window = Duration::from_secs(seconds);
            }
            "--quick" => self.hurry(),
            "--loads" => self.workloads = chosen(rest.next(), &self.workloads, |load| load.name)?,
            "--peers" => self.peers = chosen(rest.next(), &self.peers, Peer::name)?,
            "--evenkeel" => self.evenkeel = Some(file(rest.next())?),
            "--syscalls" => self.probe = Probe::SystemCalls,
            "--json" => self.format = Format::Json,
            "--svg" => self.plot = Some(file(rest.next())?),
            _ => bail!("no such option"),
        }
        Ok(())
    }

    const fn hurry(&mut self) {
        self.rounds = QUICK_ROUNDS;
        self.window = QUICK_WINDOW;
        self.warm_up = QUICK_WARM_UP;
    }
}

/// Measurements take place in another folder.
fn file(word: Option<&String>) -> Result<PathBuf> {
    Ok(std::path::absolute(word.context("which file?")?)?)
}

/// A whole number from 1 to `max`.
fn number<T: FromStr + PartialOrd + From<u8>>(word: Option<&String>, max: T) -> Result<T> {
    word.and_then(|word| word.parse().ok())
        .filter(|number| *number >= T::from(1) && *number <= max)
        .context("needs a whole number, neither 0 nor too large")
}

/// Those of `all` that are named, in the order of `all`.
fn chosen<T: Copy>(
    words: Option<&String>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Vec<T>> {
    let words: Vec<&str> = words.context("which?")?.split(',').collect();
    let known: Vec<&str> = all.iter().map(|&one| name(one)).collect();
    if let Some(unknown) = words.iter().find(|word| !known.contains(word)) {
        bail!("no {unknown}; there are {}", known.join(", "));
    }
    let is_named = |one: &T| words.contains(&name(*one));
    Ok(all.iter().copied().filter(is_named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tcp::{PEERS, WORKLOADS};

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words, WORKLOADS, PEERS)
    }

    fn fault(line: &str) -> String {
        parse(line)
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default()
    }

    /// Without options: everything, 15 times.
    #[test]
    fn everything_is_measured_unless_told_otherwise() {
        let options = parse("").expect("that is right");
        assert_eq!(options.rounds, 15);
        assert_eq!(options.workloads.len(), WORKLOADS.len());
        assert_eq!(options.peers, PEERS);
    }

    #[test]
    fn loads_and_peers_can_be_chosen() {
        let options =
            parse("--loads bulk-1,connect --peers nginx --rounds 3").expect("that is right");
        let names: Vec<&str> = options.workloads.iter().map(|load| load.name).collect();
        assert_eq!(names, ["connect", "bulk-1"]);
        assert_eq!(options.peers, [Peer::Nginx]);
        assert_eq!(options.rounds, 3);
    }

    /// Whoever mistypes is told what there is.
    #[test]
    fn an_unknown_name_is_an_error_that_tells_the_known_ones() {
        assert!(fault("--peers ngnix").contains("no ngnix; there are direct, evenkeel"));
        assert!(fault("--round 3").contains("no such option"));
        assert!(fault("--rounds 0").contains("whole number"));
        assert!(fault("--svg").contains("which file?"));
    }
}
