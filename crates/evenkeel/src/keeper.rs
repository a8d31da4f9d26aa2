//! Who keeps the state file: writes it when what it holds has changed, on request, and at the end.
//!
//! A task of the control plane; the disk is waited for on another thread, so that a slow one delays nothing but the answer
//! to whoever asked. A disk that refuses is told once, counted, and tried again; nothing else follows from it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::KeptCluster;
use evenkeel_proxy::Proxy;
use evenkeel_proxy::control::operator::Kept;
use evenkeel_proxy::control::report::StateFileReport;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{interval, timeout};

use crate::state_file;

/// How often it is looked for changes that nobody asked to be kept: backups that took over, a reload.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long whoever asks waits for the disk.
const PATIENCE: Duration = Duration::from_secs(2);
/// Requests that wait for the disk; the control socket serves no more connections at one time.
const REQUESTS_MAX: usize = 16;

/// The way to the keeper. Without a state file it leads nowhere, and says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeper(Option<Desk>);

#[derive(Clone, Debug)]
struct Desk {
    path: PathBuf,
    requests: mpsc::Sender<oneshot::Sender<Result<(), String>>>,
    counts: Arc<Counts>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    failed: AtomicU64,
}

impl Keeper {
    /// Begins to keep the state of `proxy`; ends with the runtime that this is called on.
    pub(crate) fn start(path: Option<PathBuf>, proxy: &Arc<Proxy>) -> Self {
        let Some(path) = path else {
            return Self(None);
        };
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let counts = Arc::new(Counts::default());
        let task = Task {
            path: path.clone(),
            proxy: Arc::clone(proxy),
            written: None,
            is_failing: false,
            counts: Arc::clone(&counts),
        };
        let task = tokio::spawn(task.run(requests)).abort_handle();
        Self(Some(Desk {
            path,
            requests: sender,
            counts,
            task,
        }))
    }

    /// Waits until the present state is on the disk, or for a while.
    pub(crate) async fn keep(&self) -> Kept {
        let Some(desk) = &self.0 else {
            return Kept::UntilRestart;
        };
        let path = desk.path.display();
        match timeout(PATIENCE, desk.ask()).await {
            Ok(Ok(())) => Kept::InFile(path.to_string()),
            Ok(Err(error)) => Kept::NotWritten(format!("{path}: {error}")),
            Err(_) => Kept::NotWritten(format!("{path}: the disk has not answered yet")),
        }
    }

    /// Leaves the file to the process that follows this one.
    pub(crate) fn leave(&self) {
        if let Some(desk) = &self.0 {
            desk.task.abort();
        }
    }

    /// `None` without a state file.
    pub(crate) fn report(&self) -> Option<StateFileReport> {
        let desk = self.0.as_ref()?;
        Some(StateFileReport {
            path: desk.path.display().to_string(),
            written: desk.counts.written.load(Ordering::Relaxed),
            failed: desk.counts.failed.load(Ordering::Relaxed),
        })
    }
}

impl Desk {
    async fn ask(&self) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let gone = || "it is no longer kept: the process is stopping".to_owned();
        self.requests.send(answer).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

struct Task {
    path: PathBuf,
    proxy: Arc<Proxy>,
    /// The last text that is on the disk.
    written: Option<Vec<u8>>,
    is_failing: bool,
    counts: Arc<Counts>,
}

impl Task {
    async fn run(mut self, mut requests: mpsc::Receiver<oneshot::Sender<Result<(), String>>>) {
        let mut looks = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = looks.tick() => drop(self.save().await),
                request = requests.recv() => match request {
                    // Whoever asked may have lost patience.
                    Some(answer) => drop(answer.send(self.save().await)),
                    None => return,
                },
            }
        }
    }

    /// Writes what is to be kept, unless it is on the disk already.
    async fn save(&mut self) -> Result<(), String> {
        let text = state_file::encode(&state_of(&self.proxy));
        if self.written.as_ref() == Some(&text) {
            return Ok(());
        }
        let path = self.path.clone();
        let copy = text.clone();
        let done = spawn_blocking(move || state_file::write(&path, &copy)).await;
        let done = done.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
        self.note(&done);
        done.map(|()| self.written = Some(text))
            .map_err(|error| error.to_string())
    }

    fn note(&mut self, done: &io::Result<()>) {
        let path = self.path.display();
        match done {
            Ok(()) => {
                self.counts.written.fetch_add(1, Ordering::Relaxed);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!(%path, "the state file is written again");
                }
            }
            Err(error) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%path, %error, "the state file cannot be written: a restart would forget what operators have set since");
                }
            }
        }
    }
}

/// What the operator said, and who has the work. Health and effective weights are found out anew.
fn state_of(proxy: &Proxy) -> Vec<KeptCluster> {
    let now = proxy.now();
    let clusters = proxy.clusters().into_iter();
    clusters.map(|cluster| cluster.export(now)).collect()
}

/// Gives the clusters what the process before has kept, before they have work. Nothing, with a line in the log, where that
/// cannot be read.
pub(crate) fn recall(proxy: &Proxy) {
    let settings = proxy.settings();
    let Some(path) = settings.process.state_file.as_deref() else {
        return;
    };
    match state_file::read(path) {
        Ok(kept) => give(proxy, &kept),
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, %error, "the state file is not used: what operators had set is forgotten");
        }
    }
}

fn give(proxy: &Proxy, kept: &[KeptCluster]) {
    for cluster in proxy.clusters() {
        let mut kept = kept.iter();
        if let Some(kept) = kept.find(|kept| kept.name == cluster.name()) {
            cluster.import(kept, proxy.now());
        }
    }
}
