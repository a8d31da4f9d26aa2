//! What every name leads to now. The follower writes it, the proxy reads it, and neither waits for the other.
//!
//! It asks nobody and forgets nothing by itself: what a name led to stays until it leads elsewhere, or nobody asks any more.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::answer::{Learned, Trouble};
use super::question::{Question, Target};

/// See the module's documentation. One for each process, shared.
#[derive(Debug, Default)]
pub struct Directory {
    entries: Mutex<BTreeMap<Question, Entry>>,
    version: AtomicU64,
}

/// What a question leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The last good answer.
    Targets(Arc<[Target]>),
    /// Nowhere, as a name server has said, and never elsewhere.
    Nothing,
    /// No name server has answered yet.
    NotAnswered,
}

#[derive(Debug, Default)]
struct Entry {
    targets: Option<Arc<[Target]>>,
    /// Whether a name server has ever answered, if only that there is nothing.
    is_answered: bool,
    resolved_at: Option<Instant>,
    trouble: Option<Trouble>,
    trouble_since: Option<Instant>,
    failures: u64,
}

/// A name, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStatus {
    /// What is asked.
    pub question: Question,
    /// What it leads to, in order.
    pub addresses: Vec<SocketAddr>,
    /// How long ago the last good answer came; `None` if there was none.
    pub resolved_ago: Option<Duration>,
    /// What is wrong with the last answer.
    pub trouble: Option<String>,
    /// Since when something has been wrong.
    pub trouble_for: Option<Duration>,
    /// Rounds in which something was wrong.
    pub failures: u64,
}

/// What a round has changed, for the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) added: Vec<SocketAddr>,
    pub(super) removed: Vec<SocketAddr>,
    /// A trouble that was not there, or was another one.
    pub(super) trouble: Option<Trouble>,
    /// The trouble that was there is over.
    pub(super) recovered: bool,
}

impl Directory {
    /// What the question leads to.
    pub(crate) fn found(&self, question: &Question) -> Found {
        let entries = self.entries.lock();
        match entries.get(question) {
            Some(Entry {
                targets: Some(targets),
                ..
            }) => Found::Targets(Arc::clone(targets)),
            Some(Entry {
                is_answered: true, ..
            }) => Found::Nothing,
            _ => Found::NotAnswered,
        }
    }

    /// Grows with every change of what a question leads to, and when it is known that it leads nowhere.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Every name, in alphabetical order.
    pub fn status(&self, now: Instant) -> Vec<NameStatus> {
        let entries = self.entries.lock();
        let status = |(question, entry): (&Question, &Entry)| entry.status(question, now);
        entries.iter().map(status).collect()
    }

    /// Has these entries and no others.
    pub(crate) fn keep(&self, questions: &BTreeSet<Question>) {
        let mut entries = self.entries.lock();
        entries.retain(|question, _| questions.contains(question));
        for question in questions {
            entries.entry(question.clone()).or_default();
        }
    }

    /// As if a round had brought these.
    #[cfg(test)]
    pub(crate) fn learn_addresses(&self, question: &Question, addresses: &[&str]) {
        let target = |address: &&str| Target {
            priority: 0,
            weight: None,
            address: address.parse().unwrap(),
        };
        let learned = Learned {
            targets: Some(addresses.iter().map(target).collect()),
            trouble: None,
        };
        self.learn(question, learned, Instant::now());
    }

    /// Takes what a round has brought. A question that nobody asks any more is left alone.
    pub(super) fn learn(&self, question: &Question, learned: Learned, now: Instant) -> News {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(question) else {
            return News::default();
        };
        let mut news = News::default();
        let was_awaited = !entry.is_answered;
        entry.is_answered |= learned.is_answer();
        entry.failures += u64::from(learned.trouble.is_some());
        entry.learn_trouble(learned.trouble, now, &mut news);
        let Some(targets) = learned.targets else {
            if was_awaited && entry.is_answered {
                self.version.fetch_add(1, Ordering::Release);
            }
            return news;
        };
        entry.resolved_at = Some(now);
        if entry.targets.as_deref() != Some(&targets[..]) {
            let before = entry.addresses();
            entry.targets = Some(targets.into());
            let after = entry.addresses();
            news.added = without(&after, &before);
            news.removed = without(&before, &after);
            self.version.fetch_add(1, Ordering::Release);
        }
        news
    }
}

impl Entry {
    fn learn_trouble(&mut self, trouble: Option<Trouble>, now: Instant, news: &mut News) {
        if trouble == self.trouble {
            return;
        }
        news.recovered = trouble.is_none();
        news.trouble.clone_from(&trouble);
        self.trouble_since = match trouble {
            None => None,
            Some(_) => self.trouble_since.or(Some(now)),
        };
        self.trouble = trouble;
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let targets = self.targets.iter().flat_map(|targets| targets.iter());
        targets.map(|target| target.address).collect()
    }

    fn status(&self, question: &Question, now: Instant) -> NameStatus {
        let since = |then: Instant| now.saturating_duration_since(then);
        NameStatus {
            question: question.clone(),
            addresses: self.addresses(),
            resolved_ago: self.resolved_at.map(since),
            trouble: self.trouble.as_ref().map(ToString::to_string),
            trouble_for: self.trouble_since.map(since),
            failures: self.failures,
        }
    }
}

fn without(all: &[SocketAddr], others: &[SocketAddr]) -> Vec<SocketAddr> {
    let others: BTreeSet<&SocketAddr> = others.iter().collect();
    let left = all.iter().filter(|address| !others.contains(address));
    left.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::name::DnsName;
    use super::super::question::Family;
    use super::*;

    fn question() -> Question {
        Question::Host {
            name: DnsName::parse("db").unwrap(),
            port: 3306,
            family: Family::Any,
        }
    }

    fn directory() -> Directory {
        let directory = Directory::default();
        directory.keep(&BTreeSet::from([question()]));
        directory
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 3306))
    }

    fn good(lasts: &[u8]) -> Learned {
        let target = |last: &u8| Target {
            priority: 0,
            weight: None,
            address: address(*last),
        };
        Learned {
            targets: Some(lasts.iter().map(target).collect()),
            trouble: None,
        }
    }

    fn bad(trouble: Trouble) -> Learned {
        Learned {
            targets: None,
            trouble: Some(trouble),
        }
    }

    /// A failure leaves what was found, and is told once.
    #[test]
    fn a_failure_leaves_what_was_found() {
        let (directory, now) = (directory(), Instant::now());
        directory.learn(&question(), good(&[1, 2]), now);
        let version = directory.version();

        let first = directory.learn(&question(), bad(Trouble::TimedOut), now);
        let second = directory.learn(&question(), bad(Trouble::TimedOut), now);

        assert_eq!(first.trouble, Some(Trouble::TimedOut));
        assert_eq!(second, News::default());
        assert!(matches!(directory.found(&question()), Found::Targets(all) if all.len() == 2));
        assert_eq!(directory.version(), version);
        assert!(directory.learn(&question(), good(&[1, 2]), now).recovered);
    }

    /// Whoever waits for the first answer hears that there is none, once.
    #[test]
    fn a_first_failure_shows_in_the_version() {
        let (directory, now) = (directory(), Instant::now());
        let version = directory.version();
        assert_eq!(directory.found(&question()), Found::NotAnswered);
        directory.learn(&question(), bad(Trouble::NoSuchName), now);
        directory.learn(&question(), bad(Trouble::TimedOut), now);
        assert_eq!(directory.found(&question()), Found::Nothing);
        assert_eq!(directory.version(), version + 1);
    }

    /// A name server that nobody hears from has not said that there is nothing: who waits for the name waits on.
    #[test]
    fn silence_is_no_answer() {
        let (directory, now) = (directory(), Instant::now());
        let version = directory.version();
        directory.learn(&question(), bad(Trouble::TimedOut), now);
        directory.learn(
            &question(),
            bad(Trouble::ServerFailed("SERVFAIL".into())),
            now,
        );
        assert_eq!(directory.found(&question()), Found::NotAnswered);
        assert_eq!(directory.version(), version);
    }

    /// What came and went is told, and the version shows it.
    #[test]
    fn a_change_is_told() {
        let (directory, now) = (directory(), Instant::now());
        directory.learn(&question(), good(&[1, 2]), now);
        let version = directory.version();

        let news = directory.learn(&question(), good(&[2, 3]), now);

        assert_eq!(
            (news.added, news.removed),
            (vec![address(3)], vec![address(1)])
        );
        assert!(directory.version() > version);
    }

    /// A name that a reload has removed is forgotten, and a late answer to it does no harm.
    #[test]
    fn a_question_that_is_over_is_forgotten() {
        let (directory, now) = (directory(), Instant::now());
        directory.keep(&BTreeSet::new());

        directory.learn(&question(), good(&[1]), now);

        assert_eq!(directory.found(&question()), Found::NotAnswered);
        assert!(directory.status(now).is_empty());
    }
}
