//! Reloads: one at a time, each reading the configuration anew and putting it into force, or changing nothing.
//!
//! Whoever asks while one is under way is served by the next one, which reads what is there by then; all who have asked before it
//! begins share it. Before clients are served, all wait for that: a reload is no reason to serve them earlier. Files are read, and
//! sockets opened, on a thread that may wait for a disk. What a reload keeps is the proxy's business.

mod tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use evenkeel_proxy::control::protocol::{Appearance, Fault, FaultKind};
use evenkeel_proxy::control::reload_report::{ProblemReport, ReloadReport};
use evenkeel_proxy::settings::Settings;
use evenkeel_proxy::telemetry::Telemetry;
use evenkeel_proxy::telemetry::access_log::AccessLogError;
use evenkeel_proxy::{Change, Changes, Proxy, ReloadError};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

pub(crate) use tally::Counts;
use tally::{Tally, Verdict};

use crate::config::{self, Diagnostics, Loaded, ProblemRecord};
use crate::notify::Supervisor;
use crate::program_log::ProgramLog;
use crate::span::span;
use crate::{output, wording};

/// How long reading the configuration may take.
pub(crate) const READING_PATIENCE: Duration = Duration::from_secs(10);

/// AskedReloads that wait to be read; all of them share the next reload.
const REQUESTS_MAX: usize = 16;

/// What a process that can be reloaded was started from.
#[derive(Debug)]
pub struct Source {
    /// The configuration, absolute.
    file: PathBuf,
    /// Whose level the configuration sets.
    log: ProgramLog,
    read_at: Instant,
}

impl Source {
    /// A file that has just been read.
    pub(crate) fn new(file: &Path, log: ProgramLog) -> Self {
        Self {
            file: std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
            log,
            read_at: Instant::now(),
        }
    }
}

/// Where reloads are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Reloads {
    requests: Sender<Asked>,
    tally: Arc<Tally>,
}

/// Who wants to know how it went; nobody, for a signal.
#[derive(Debug)]
struct Asked(Option<(Appearance, oneshot::Sender<Answer>)>);

type Answer = Result<ReloadReport, Fault>;

impl Reloads {
    /// Asks for a reload, and leaves the result to the log.
    pub(crate) fn ask_by_signal(&self) {
        // A full house reads the configuration later than now, and so does for this one, too.
        if let Err(TrySendError::Closed(_)) = self.requests.try_send(Asked(None)) {
            tracing::error!("configuration not reloaded: this process was started without a file");
        }
    }

    /// Asks for a reload, and waits for how it went.
    pub(crate) async fn ask(self, appearance: Appearance) -> Answer {
        let (sender, answer) = oneshot::channel();
        let asked = Asked(Some((appearance, sender)));
        let asked = self.requests.try_send(asked);
        asked.map_err(|error| match error {
            TrySendError::Full(_) => refused("too many reloads are asked for: try again"),
            TrySendError::Closed(_) => refused("this process was started without a file"),
        })?;
        answer
            .await
            .unwrap_or_else(|_| Err(refused("the process is stopping")))
    }

    /// How those before have gone.
    pub(crate) fn counts(&self) -> Counts {
        self.tally.counts()
    }
}

fn refused(message: &str) -> Fault {
    Fault::new(FaultKind::Refused, message)
}

/// Carries reloads out.
pub(crate) struct Reloader {
    pub(crate) source: Source,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) supervisor: Supervisor,
    /// Set by the control plane.
    pub(crate) stopping: Arc<AtomicBool>,
    /// Whether clients are served; said by the control plane.
    pub(crate) opened: watch::Receiver<bool>,
}

/// Where reloads are asked for, and what is asked for there.
pub(crate) fn open() -> (Reloads, AskedReloads) {
    let (sender, requests) = channel(REQUESTS_MAX);
    let tally = Arc::new(Tally::started_at(SystemTime::now()));
    let reloads = Reloads {
        requests: sender,
        tally: Arc::clone(&tally),
    };
    (reloads, AskedReloads { requests, tally })
}

/// What is asked for there.
pub(crate) struct AskedReloads {
    requests: Receiver<Asked>,
    /// Of what becomes of them.
    tally: Arc<Tally>,
}

/// How a reload went.
enum Outcome {
    Reloaded { changes: Changes, sessions: u64 },
    Invalid(Diagnostics),
    Failed(String),
}

impl Outcome {
    const fn verdict(&self) -> Verdict {
        match self {
            Self::Reloaded { changes, .. } if changes.made.is_empty() => Verdict::Unchanged,
            Self::Reloaded { .. } => Verdict::Done,
            Self::Invalid(_) | Self::Failed(_) => Verdict::Failed,
        }
    }
}

impl Reloader {
    /// Reloads whenever it is asked to, for as long as anybody can ask.
    pub(crate) async fn run(mut self, asked: AskedReloads) {
        let AskedReloads {
            mut requests,
            tally,
        } = asked;
        // Without anybody to say so, the process is ending.
        while let Some(first) = requests.recv().await
            && self.opened.wait_for(|opened| *opened).await.is_ok()
        {
            let mut asked = vec![first];
            while let Ok(another) = requests.try_recv() {
                asked.push(another);
            }
            let outcome = self.reload().await;
            tally.count(outcome.verdict(), SystemTime::now());
            self.log(&outcome);
            for Asked(wanted) in asked {
                if let Some((appearance, answer)) = wanted {
                    // Whoever has left needs none.
                    let _ = answer.send(Ok(self.report(&outcome, appearance)));
                }
            }
        }
    }

    async fn reload(&mut self) -> Outcome {
        if self.is_stopping() {
            return Outcome::Failed(ReloadError::Stopping.to_string());
        }
        self.supervisor.reloading();
        let outcome = self.read_and_apply().await;
        // Who is stopping is not ready any more.
        if !self.is_stopping() {
            self.supervisor.ready(&status(&outcome));
        }
        outcome
    }

    async fn read_and_apply(&mut self) -> Outcome {
        let begun = Instant::now();
        let file = self.source.file.clone();
        let reading = spawn_blocking(move || config::load(&file));
        let loaded = match timeout(READING_PATIENCE, reading).await {
            Ok(Ok(Ok(loaded))) => loaded,
            Ok(Ok(Err(diagnostics))) => return Outcome::Invalid(diagnostics),
            Ok(Err(panicked)) => return broken(&panicked),
            Err(_) => return Outcome::Failed(self.too_slow()),
        };
        let Loaded {
            settings,
            log_level,
        } = loaded;
        let (proxy, telemetry) = (Arc::clone(&self.proxy), Arc::clone(&self.telemetry));
        match spawn_blocking(move || apply(&proxy, &telemetry, settings)).await {
            Ok(Ok(mut changes)) => {
                self.source.read_at = begun;
                changes.made.extend(self.follow_level(log_level));
                let sessions = self.proxy.sessions();
                Outcome::Reloaded { changes, sessions }
            }
            Ok(Err(error)) => Outcome::Failed(output::with_causes(&error)),
            Err(panicked) => broken(&panicked),
        }
    }

    fn follow_level(&mut self, level: config::LogLevel) -> Option<Change> {
        if self.source.log.level() == level {
            return None;
        }
        self.source.log.set_level(level);
        let keys = vec!["level".to_owned()];
        Some(Change::LogChanged { keys })
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn too_slow(&self) -> String {
        format!(
            "{} and what it includes could not be read within {} s: is the disk there?",
            output::shown_path(&self.source.file),
            READING_PATIENCE.as_secs()
        )
    }

    fn report(&self, outcome: &Outcome, appearance: Appearance) -> ReloadReport {
        match outcome {
            Outcome::Reloaded { changes, sessions } => ReloadReport::Reloaded {
                file: self.source.file.display().to_string(),
                changes: changes.made.clone(),
                after_restart: changes.deferred.clone(),
                sessions: *sessions,
            },
            Outcome::Invalid(diagnostics) => ReloadReport::Invalid {
                diagnostics: diagnostics.render(appearance_of(appearance)),
                error_count: diagnostics.count(),
                errors: diagnostics.records().into_iter().map(problem).collect(),
            },
            Outcome::Failed(message) => ReloadReport::Failed {
                message: message.clone(),
            },
        }
    }

    fn log(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Reloaded { changes, sessions } => {
                let summary = wording::summary(&changes.made, *sessions);
                tracing::info!("configuration reloaded: {summary}");
                for change in &changes.made {
                    tracing::debug!("{}", wording::line(change));
                }
                for deferred in &changes.deferred {
                    tracing::warn!("{}", wording::deferral(deferred));
                }
            }
            Outcome::Invalid(diagnostics) => {
                self.log_failure(&format!("it has errors: {}", diagnostics.count()));
                for problem in diagnostics.records() {
                    tracing::error!("{}", one_line(&problem));
                }
            }
            Outcome::Failed(message) => self.log_failure(message),
        }
    }

    fn log_failure(&self, why: &str) {
        let millis = self.source.read_at.elapsed().as_millis();
        let age = span(u64::try_from(millis).unwrap_or(u64::MAX));
        tracing::error!(
            "configuration not reloaded: still running the one of {age} ago, since {why}"
        );
    }
}

/// Why a configuration that is right could not be put into force.
#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(transparent)]
    AccessLog(#[from] AccessLogError),
    #[error(transparent)]
    Reload(#[from] ReloadError),
}

/// The access log is opened first and used last, so that whatever fails changes nothing. While both configurations are at
/// work, both are counted.
fn apply(proxy: &Proxy, telemetry: &Telemetry, settings: Settings) -> Result<Changes, ApplyError> {
    let before = proxy.settings();
    let has_other_log = settings.access_log != before.access_log;
    let access_log = has_other_log.then(|| telemetry.open_access_log(&settings.access_log));
    let access_log = access_log.transpose()?;
    telemetry.follow(&[&before, &settings]);
    let reloaded = proxy.reload(settings);
    telemetry.follow(&[&proxy.settings()]);
    match (&reloaded, access_log) {
        (Ok(_), Some(access_log)) => telemetry.go_over_to(access_log),
        (Err(_), Some(access_log)) => access_log.undo(),
        (_, None) => {}
    }
    Ok(reloaded?)
}

fn broken(panicked: &JoinError) -> Outcome {
    Outcome::Failed(format!(
        "this is a fault of evenkeel, please report it: {panicked}"
    ))
}

fn status(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reloaded { changes, sessions } => {
            format!("reloaded: {}", wording::summary(&changes.made, *sessions))
        }
        Outcome::Invalid(diagnostics) => format!(
            "not reloaded, the configuration has errors: {}",
            diagnostics.first_message()
        ),
        Outcome::Failed(message) => format!("not reloaded: {message}"),
    }
}

const fn appearance_of(appearance: Appearance) -> config::Appearance {
    match appearance {
        Appearance::Plain => config::Appearance::Plain,
        Appearance::Coloured => config::Appearance::Coloured,
    }
}

fn problem(record: ProblemRecord) -> ProblemReport {
    let ProblemRecord {
        file,
        line,
        column,
        message,
        help,
    } = record;
    ProblemReport {
        file,
        line,
        column,
        message,
        help,
    }
}

fn one_line(problem: &ProblemRecord) -> String {
    let place = match (&problem.file, problem.line, problem.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
        (Some(file), ..) => format!("{file}: "),
        _ => String::new(),
    };
    let help = problem.help.as_ref();
    let help = help.map_or_else(String::new, |help| format!(" ({help})"));
    format!("{place}{}{help}", problem.message)
}
