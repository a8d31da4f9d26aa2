//! Upgrades as the control plane sees them: asked for, under way on a thread of their own, done or failed. One at a time.

use std::fs::File;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenkeel_proxy::control::socket::HandedSocket;
use evenkeel_proxy::control::upgrade_report::UpgradeReport;
use evenkeel_proxy::{FileMark, LentSockets, Proxy, Stillness};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Belongings, Line, Program, Successor, UpgradeError, state};

/// How long a new program may take until it serves, unless somebody says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Requests that wait to be read; all but the first are refused at once.
const REQUESTS_MAX: usize = 16;
/// How long a process that stops waits until the new program that it has called off is gone.
const CALLED_OFF_PATIENCE: Duration = Duration::from_secs(2);

/// Where upgrades are asked for.
#[derive(Clone, Debug)]
pub(crate) struct UpgradeCounter(Sender<Asked>);

/// A wish for an upgrade.
#[derive(Debug)]
pub(crate) struct Asked {
    binary: Option<PathBuf>,
    patience: Duration,
    /// Nobody, for a signal.
    answer: Option<oneshot::Sender<UpgradeReport>>,
}

impl UpgradeCounter {
    /// Asks for an upgrade to whatever program is there by now, and leaves the result to the log.
    pub(crate) fn ask_by_signal(&self) {
        // Full or closed: it is being upgraded already, or stopping.
        let _ = self.0.try_send(Asked {
            binary: None,
            patience: PATIENCE,
            answer: None,
        });
    }

    /// Asks for an upgrade, and waits for how it went.
    pub(crate) async fn ask(self, binary: Option<PathBuf>, patience: Duration) -> UpgradeReport {
        let (sender, answer) = oneshot::channel();
        let asked = Asked {
            binary,
            patience,
            answer: Some(sender),
        };
        let failed = |message: &str| UpgradeReport::Failed {
            message: message.to_owned(),
        };
        if self.0.try_send(asked).is_err() {
            return failed("too many upgrades are asked for: try again");
        }
        answer
            .await
            .unwrap_or_else(|_| failed("the process is stopping"))
    }
}

impl Asked {
    /// Says how it went, to whoever asked and in the log.
    fn answer(self, report: UpgradeReport) {
        if let Some(answer) = self.answer {
            // Whoever has left needs none.
            let _ = answer.send(report);
        }
    }

    fn refuse(self, why: &str) {
        tracing::warn!("no upgrade: {why}");
        self.answer(UpgradeReport::Failed {
            message: why.to_owned(),
        });
    }
}

/// See the module's documentation.
pub(crate) struct Upgrades {
    requests: Receiver<Asked>,
    underway: Option<Underway>,
}

/// Something that the control plane has to attend to.
pub(crate) enum Event {
    /// Somebody wants an upgrade.
    Asked(Asked),
    /// A new program serves; or none does, and nothing has changed.
    Settled(Settled),
}

/// How an upgrade went, before anybody is told.
pub(crate) struct Settled {
    asked: Asked,
    line: Line,
    outcome: Result<u32, UpgradeError>,
    _still: Stillness,
}

struct Underway {
    asked: Asked,
    line: Line,
    outcome: oneshot::Receiver<Result<u32, UpgradeError>>,
    still: Stillness,
}

/// What a process hands over, but for what its workers lend at that moment.
pub(crate) struct Goods {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) control: Option<HandedSocket>,
    pub(crate) admin: Option<OwnedFd>,
    /// The admin listener's file.
    pub(crate) admin_file: Option<FileMark>,
}

impl Upgrades {
    /// And where they are asked for.
    pub(crate) fn new() -> (UpgradeCounter, Self) {
        let (sender, requests) = channel(REQUESTS_MAX);
        let underway = None;
        (UpgradeCounter(sender), Self { requests, underway })
    }

    /// The next event. Nothing is lost when this is dropped before it is done.
    pub(crate) async fn next(&mut self) -> Event {
        tokio::select! {
            Some(asked) = self.requests.recv() => Event::Asked(asked),
            outcome = settled(&mut self.underway) => Event::Settled(self.settle(outcome)),
        }
    }

    /// Begins an upgrade, unless that is refused.
    pub(crate) fn begin(&mut self, asked: Asked, goods: io::Result<Goods>) {
        if self.underway.is_some() {
            return asked.refuse("another upgrade is under way");
        }
        match start(&asked, goods) {
            Ok((line, outcome, still)) => {
                self.underway = Some(Underway {
                    asked,
                    line,
                    outcome,
                    still,
                });
            }
            Err(why) => asked.refuse(&why),
        }
    }

    /// Refuses what is asked of a process that cannot be upgraded.
    pub(crate) fn refuse(asked: Asked, why: &str) {
        asked.refuse(why);
    }

    /// Ends a new program that does not serve yet: this process is stopping.
    pub(crate) fn call_off(&mut self) {
        if let Some(underway) = &self.underway {
            underway.line.call_off();
        }
    }

    /// Waits, but not for long, until what was called off is gone: nobody would end it after this process, or tell whoever asked.
    pub(crate) async fn end(&mut self) {
        if self.underway.is_none() {
            return;
        }
        let gone = timeout(CALLED_OFF_PATIENCE, settled(&mut self.underway)).await;
        match gone.map(|outcome| self.settle(outcome)) {
            Ok(settled) => drop(settled.successor()),
            Err(_) => tracing::warn!("the new program that was called off may still be there"),
        }
    }

    fn settle(&mut self, outcome: Result<u32, UpgradeError>) -> Settled {
        let Some(underway) = self.underway.take() else {
            unreachable!("only what is under way has an outcome");
        };
        Settled {
            asked: underway.asked,
            line: underway.line,
            outcome,
            _still: underway.still,
        }
    }
}

impl Settled {
    /// The new program's process id and the line to it, if it serves. Otherwise everybody is told why.
    pub(crate) fn successor(self) -> Option<Heir> {
        match self.outcome {
            Ok(pid) => Some(Heir {
                asked: self.asked,
                line: self.line,
                pid,
            }),
            Err(error) => {
                match error {
                    UpgradeError::CalledOff => tracing::warn!("no upgrade: {error}"),
                    _ => tracing::error!("no upgrade: this process goes on: {error}"),
                }
                self.asked.answer(report(&error));
                None
            }
        }
    }
}

/// A new process that serves, beside this one so far.
pub(crate) struct Heir {
    asked: Asked,
    pub(crate) line: Line,
    pub(crate) pid: u32,
}

impl Heir {
    /// Tells whoever asked that it serves alone from now on. The line is for what it may want to know later.
    pub(crate) fn announce(self, sessions: u64, deadline: Duration) -> Line {
        self.asked.answer(UpgradeReport::Upgraded {
            pid: self.pid,
            predecessor: std::process::id(),
            sessions,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        });
        self.line
    }

    /// Tells whoever asked that it has ended just before it could.
    pub(crate) fn gone(self, error: &io::Error) {
        let error = UpgradeError::HandOver(io::Error::new(error.kind(), error.to_string()));
        tracing::error!("no upgrade: this process goes on: {error}");
        self.asked.answer(report(&error));
    }
}

fn report(error: &UpgradeError) -> UpgradeReport {
    let message = match error {
        UpgradeError::CalledOff => error.to_string(),
        _ => format!("the running process goes on: {error}"),
    };
    match error {
        error if error.is_configuration() => UpgradeReport::Invalid { message },
        UpgradeError::TimedOut { .. } => UpgradeReport::TimedOut { message },
        _ => UpgradeReport::Failed { message },
    }
}

async fn settled(underway: &mut Option<Underway>) -> Result<u32, UpgradeError> {
    let Some(underway) = underway else {
        return pending().await;
    };
    let outcome = (&mut underway.outcome).await;
    outcome.unwrap_or_else(|_| Err(UpgradeError::HandOver(io::Error::other("the thread ended"))))
}

type Started = (
    Line,
    oneshot::Receiver<Result<u32, UpgradeError>>,
    Stillness,
);

fn start(asked: &Asked, goods: io::Result<Goods>) -> Result<Started, String> {
    let goods = goods.map_err(|error| error.to_string())?;
    let still = goods
        .proxy
        .keep_still()
        .map_err(|error| error.to_string())?;
    let told = |error: io::Error| error.to_string();
    let program = Program::of_this_process(asked.binary.clone()).map_err(told)?;
    let (line, theirs) = Line::new().map_err(told)?;
    let (sender, outcome) = oneshot::channel();
    let (patience, own) = (asked.patience, line.clone());
    tracing::info!(program = %program.path.display(), "upgrading: starting the new program");
    thread::Builder::new()
        .name("ek-upgrade".to_owned())
        .spawn(move || {
            let successor = Successor::start(&program, own, theirs)
                .and_then(|successor| successor.settle_with(goods, patience));
            match successor {
                Ok(successor) => accompany(successor, sender),
                Err(error) => drop(sender.send(Err(error))),
            }
        })
        .map_err(told)?;
    Ok((line, outcome, still))
}

impl Successor {
    fn settle_with(mut self, goods: Goods, patience: Duration) -> Result<Self, UpgradeError> {
        let lent = goods.proxy.lend().map_err(UpgradeError::HandOver);
        let LentSockets { sockets, files } = lent.inspect_err(|_| self.end())?;
        let named = |(name, socket): (Arc<str>, _)| (name.to_string(), socket);
        let admin = goods.admin.map(|socket| ("admin".to_owned(), socket));
        let belongings = Belongings {
            sockets: sockets.into_iter().map(named).chain(admin).collect(),
            files: files.into_iter().chain(goods.admin_file).collect(),
            control: goods.control,
            state: known(&goods.proxy),
        };
        self.settle(belongings, patience)?;
        Ok(self)
    }
}

/// What is known of endpoints. Without it, the new process finds it out anew.
fn known(proxy: &Proxy) -> Option<File> {
    let now = proxy.now();
    let clusters: Vec<_> = proxy
        .clusters()
        .iter()
        .map(|cluster| cluster.export(now))
        .collect();
    state::write(&clusters)
        .inspect_err(
            |error| tracing::warn!(%error, "what is known of endpoints cannot be handed over"),
        )
        .ok()
}

/// Stays with the new process for as long as this one lives, so that it leaves no zombie.
fn accompany(successor: Successor, sender: oneshot::Sender<Result<u32, UpgradeError>>) {
    let pid = successor.id();
    // The control plane has gone only if this process is ending.
    let _ = sender.send(Ok(pid));
    match successor.accompany() {
        Ok(status) => tracing::warn!(pid, %status, "the process that took over has ended"),
        Err(error) => {
            tracing::warn!(pid, %error, "the process that took over cannot be waited for");
        }
    }
}
