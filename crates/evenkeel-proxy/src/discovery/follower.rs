//! Keeps asking: a task for each name that the settings have, on the control plane's runtime.
//!
//! A task asks, tells the directory what it learned, and rests until the answer is used up or a file of the system has
//! changed. What a reload adds is asked for at once; what it removes is asked for no more.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use super::answer::Memory;
use super::directory::{Directory, News};
use super::lookup::{Asker, QUESTIONS_MAX};
use super::pace::{Pace, Round};
use super::question::Question;
use super::sources::{FilesSeen, Sources};
use crate::settings::{DnsSettings, Settings};

/// How often the files of the system are looked at.
const FILES_LOOK: Duration = Duration::from_secs(1);

/// See the module's documentation. Its tasks end with it.
pub struct Follower {
    runtime: Handle,
    directory: Arc<Directory>,
    dns: watch::Sender<DnsSettings>,
    asking: Arc<Asking>,
    inquiries: HashMap<Question, Inquiry>,
    files: Option<Task>,
}

/// What all tasks share.
struct Asking {
    directory: Arc<Directory>,
    permits: Semaphore,
    /// `None` until the files have been read for the first time.
    sources: watch::Sender<Option<Arc<Sources>>>,
    dns: watch::Receiver<DnsSettings>,
}

/// Ends when it is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks for one name.
struct Inquiry {
    _task: Task,
    has_asked: Arc<AtomicBool>,
}

impl Inquiry {
    fn start(runtime: &Handle, asking: &Arc<Asking>, question: &Question) -> Self {
        let has_asked = Arc::new(AtomicBool::new(false));
        let inquiry = keep_asking(Arc::clone(asking), question.clone(), Arc::clone(&has_asked));
        Self {
            _task: Task(runtime.spawn(inquiry)),
            has_asked,
        }
    }
}

impl Follower {
    /// Follows nothing yet.
    pub fn new(runtime: Handle, directory: Arc<Directory>) -> Self {
        let (dns, dns_in_force) = watch::channel(DnsSettings::default());
        let asking = Asking {
            directory: Arc::clone(&directory),
            permits: Semaphore::new(QUESTIONS_MAX),
            sources: watch::Sender::new(None),
            dns: dns_in_force,
        };
        Self {
            runtime,
            directory,
            dns,
            asking: Arc::new(asking),
            inquiries: HashMap::new(),
            files: None,
        }
    }

    /// Asks from now on for what these settings name, and for nothing else.
    pub fn follow(&mut self, settings: &Settings) {
        let dns = &settings.dns;
        let names = settings.clusters.iter().flat_map(|cluster| &cluster.names);
        let questions: BTreeSet<Question> = names.map(|named| named.question.clone()).collect();
        self.directory.keep(&questions);
        self.dns.send_if_modified(|in_force| {
            let changes = in_force != dns;
            in_force.clone_from(dns);
            changes
        });
        self.inquiries
            .retain(|question, _| questions.contains(question));
        if questions.is_empty() {
            self.files = None;
            return;
        }
        let files = || Task(self.runtime.spawn(watch_files(Arc::clone(&self.asking))));
        self.files.get_or_insert_with(files);
        for question in questions {
            let start = || Inquiry::start(&self.runtime, &self.asking, &question);
            self.inquiries.entry(question.clone()).or_insert_with(start);
        }
    }

    /// Whether every name has been asked for once, whatever came of it.
    pub fn has_asked_everything(&self) -> bool {
        let mut inquiries = self.inquiries.values();
        inquiries.all(|inquiry| inquiry.has_asked.load(Ordering::Relaxed))
    }
}

/// Reads the files when they have changed, and when the settings have.
async fn watch_files(asking: Arc<Asking>) {
    let mut dns = asking.dns.clone();
    let mut read_at = None;
    loop {
        let settings = dns.borrow_and_update().clone();
        let seen = spawn_blocking(FilesSeen::now).await.unwrap_or_default();
        if read_at.as_ref() != Some(&(seen, settings.clone())) {
            let in_force = settings.clone();
            if let Ok(sources) = spawn_blocking(move || Sources::read(&in_force)).await {
                asking.sources.send_replace(Some(Arc::new(sources)));
                read_at = Some((seen, settings));
            }
        }
        tokio::select! {
            () = sleep(FILES_LOOK) => {}
            Ok(()) = dns.changed() => {}
        }
    }
}

async fn keep_asking(asking: Arc<Asking>, question: Question, has_asked: Arc<AtomicBool>) {
    let (mut memory, mut pace) = (Memory::default(), Pace::default());
    let mut sources = asking.sources.subscribe();
    loop {
        let Ok(present) = sources
            .wait_for(Option::is_some)
            .await
            .map(|present| present.clone())
        else {
            return;
        };
        let Some(present) = present else { continue };
        let round = asking.round(&present, &question, &mut memory).await;
        has_asked.store(true, Ordering::Relaxed);
        let pause = pace.pause_after(round, &asking.dns.borrow(), fastrand::f64());
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = sources.changed() => {}
        }
    }
}

impl Asking {
    async fn round(&self, sources: &Sources, question: &Question, memory: &mut Memory) -> Round {
        let asker = Asker {
            sources,
            permits: &self.permits,
            timeout: self.dns.borrow().timeout,
        };
        let (answer, ttl) = asker.ask(question).await;
        let learned = memory.learn(question, answer);
        let round = match learned.trouble {
            None => Round::Good { ttl },
            Some(_) => Round::Failed,
        };
        let news = self.directory.learn(question, learned, Instant::now());
        tell(question, &news);
        round
    }
}

fn tell(question: &Question, news: &News) {
    if !(news.added.is_empty() && news.removed.is_empty()) {
        let (added, removed) = (listed(&news.added), listed(&news.removed));
        tracing::info!(name = %question, added, removed, "a name leads elsewhere");
    }
    if let Some(trouble) = &news.trouble {
        tracing::warn!(name = %question, %trouble, "a name cannot be resolved: what it led to stays");
    }
    if news.recovered {
        tracing::info!(name = %question, "a name is resolved again");
    }
}

/// The first few; a log line has an end.
fn listed(addresses: &[std::net::SocketAddr]) -> String {
    const LISTED_MAX: usize = 8;
    let mut words: Vec<String> = addresses
        .iter()
        .take(LISTED_MAX)
        .map(ToString::to_string)
        .collect();
    if addresses.len() > LISTED_MAX {
        words.push(format!("and {} more", addresses.len() - LISTED_MAX));
    }
    words.join(" ")
}
