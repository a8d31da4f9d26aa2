//! The rounds to one endpoint: ask, note the result, pause, ask again. At most one question is open at any time.
//!
//! An endpoint that would count a conversation that is broken off is heard out, also when its answer is late: meanwhile each round
//! counts as failed, without another connection.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{Address, EndpointId};
use evenkeel_core::{Cluster, HealthChange, ProbeResult};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::dialogue::{WhenLate, dialogue};
use super::ledger::Finding;
use super::office::Office;
use super::schedule::{pause, second_pause, soon};
use super::secret;
use super::tls::Credentials;
use super::verdict::Verdict;
use super::visit::{Visit, greet, knock};
use crate::settings::{OnDown, ProbeSettings, ProxyVersion};

/// How long an answer that is late is waited for, where a conversation should not be broken off. A server that stands still
/// for longer counts one error for each such time.
const PATIENCE: Duration = Duration::from_secs(300);

/// Who is asked, and what.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) cluster: Arc<Cluster>,
    pub(super) cluster_name: Arc<str>,
    pub(super) endpoint: EndpointId,
    pub(super) name: Arc<str>,
    /// Where the question goes; not always the endpoint's own address.
    pub(super) address: Address,
    pub(super) settings: Arc<ProbeSettings>,
    pub(super) on_down: OnDown,
    /// What the conversation begins with.
    pub(super) header: Option<ProxyVersion>,
}

impl PartialEq for Subject {
    /// An endpoint's name never changes, nor does its cluster.
    fn eq(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint
            && self.address == other.address
            && self.settings == other.settings
            && self.on_down == other.on_down
            && self.header == other.header
    }
}

/// See the module's documentation.
pub(super) struct Patrol {
    /// As long as it is there, the patrol goes on; the subject may get other settings.
    pub(super) orders: watch::Receiver<Subject>,
    pub(super) office: Arc<Office>,
    pub(super) random: fastrand::Rng,
    /// What probes made of the endpoint.
    pub(super) is_down: bool,
}

/// What a question came to.
struct Answer {
    verdict: Verdict,
    took: Duration,
    rest: Rest,
}

/// What is left to be done on the connection once the answer is noted.
enum Rest {
    Nothing,
    Goodbye(Visit),
    /// The conversation is still to be brought to its end. With the right to be one of those.
    Late(Visit, OwnedSemaphorePermit),
}

/// Whether a patrol is still wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orders {
    Stand,
    Ended,
}

/// How a visit begins.
enum Begun {
    Visit(Visit),
    /// There is nothing more to say.
    Judged(Verdict),
}

impl Patrol {
    /// Goes on until its orders end.
    pub(super) async fn run(mut self, first_pause: Duration) {
        if self.wait_until(Instant::now() + first_pause).await == Orders::Ended {
            return;
        }
        let every = self.orders.borrow().settings.every;
        let mut next_pause = second_pause(every, &mut self.random);
        loop {
            let subject = self.orders.borrow_and_update().clone();
            let began = Instant::now();
            let answer = self.ask(&subject).await;
            self.note(&subject, answer.verdict, answer.took);
            self.office.has_been_asked(subject.endpoint);
            match answer.rest {
                Rest::Nothing => {}
                Rest::Goodbye(visit) => self.office.part(visit).await,
                Rest::Late(visit, _place) => self.hear_out(&subject, visit).await,
            }
            if self.wait_until(began + next_pause).await == Orders::Ended {
                return;
            }
            let every = self.orders.borrow().settings.every;
            next_pause = pause(every, &mut self.random);
        }
    }

    /// Waits for the next round, or for not too long once other settings have come.
    async fn wait_until(&mut self, next: Instant) -> Orders {
        tokio::select! {
            () = sleep_until(next) => return Orders::Stand,
            changed = self.orders.changed() => if changed.is_err() { return Orders::Ended },
        }
        let every = self.orders.borrow_and_update().settings.every;
        let soon = sleep(soon(every, &mut self.random));
        tokio::select! {
            () = soon => Orders::Stand,
            // Settings that have changed once more are read before the next question.
            changed = self.orders.changed() => changed.map_or(Orders::Ended, |()| Orders::Stand),
        }
    }

    /// One question, when it is this endpoint's turn.
    async fn ask(&self, subject: &Subject) -> Answer {
        let _turn = self.office.turn().await;
        let began = Instant::now();
        let deadline = began + subject.settings.timeout;
        let mut visit = match timeout_at(deadline, begin(subject, &self.office.credentials)).await {
            Ok(Begun::Visit(visit)) => visit,
            Ok(Begun::Judged(verdict)) => return Answer::of(verdict, began),
            Err(_) => return Answer::of(silence(subject, "connection"), began),
        };
        match timeout_at(deadline, visit.verdict()).await {
            Ok(verdict) => Answer {
                rest: Rest::Goodbye(visit),
                ..Answer::of(verdict, began)
            },
            Err(_) => Answer {
                verdict: silence(subject, visit.waiting_for()),
                took: began.elapsed(),
                rest: self.keep_if_owed(visit),
            },
        }
    }

    fn keep_if_owed(&self, visit: Visit) -> Rest {
        let place = match visit.when_late() {
            WhenLate::Leave => None,
            WhenLate::Stay => self.office.place_for_late(),
        };
        place.map_or(Rest::Nothing, |place| Rest::Late(visit, place))
    }

    /// The answer is late. It is waited for with patience, and meanwhile each round counts as failed.
    async fn hear_out(&mut self, subject: &Subject, mut visit: Visit) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let round = sleep(pause(subject.settings.every, &mut self.random));
            tokio::select! {
                _late = visit.verdict() => return self.office.part(visit).await,
                changed = self.orders.changed() => if changed.is_err() { return },
                () = round => self.note_lateness(subject, visit.waiting_for(), began.elapsed()),
            }
        }
    }

    fn note_lateness(&mut self, subject: &Subject, waiting_for: &str, since: Duration) {
        let took = subject.settings.timeout + since;
        let verdict = Verdict::failed(format_args!("still no {waiting_for} after {took:.0?}"));
        self.note(subject, verdict, took);
    }

    /// Tells the core, and shows what came of it. An answer for an endpoint that is no longer probed says nothing.
    fn note(&mut self, subject: &Subject, verdict: Verdict, took: Duration) {
        if self.orders.has_changed().is_err() {
            return;
        }
        let result = match &verdict {
            Verdict::Passed => Some(ProbeResult::Passed),
            Verdict::Failed(_) => Some(ProbeResult::Failed),
            Verdict::NotAsked(_) => None,
        };
        let now = self.office.proxy.now();
        let change =
            result.and_then(|result| subject.cluster.probed(subject.endpoint, result, now));
        if let Some(change) = change {
            self.is_down = change == HealthChange::Down;
            tell(subject, change, &verdict);
        }
        if self.is_down && result == Some(ProbeResult::Failed) {
            self.office.found_down(subject);
        }
        let finding = Finding {
            verdict,
            took,
            at: std::time::Instant::now(),
        };
        self.office.ledger.enter(subject.endpoint, finding);
    }
}

impl Answer {
    fn of(verdict: Verdict, began: Instant) -> Self {
        Self {
            verdict,
            took: began.elapsed(),
            rest: Rest::Nothing,
        }
    }
}

async fn begin(subject: &Subject, credentials: &Credentials) -> Begun {
    let (check, address) = (&subject.settings.check, &subject.address);
    let password = match check.secret() {
        Some(secret) => match secret::reveal(secret).await {
            Ok(password) => Some(password),
            Err(error) => return Begun::Judged(Verdict::not_asked(error)),
        },
        None => None,
    };
    let credential = match &subject.settings.tls {
        Some(tls) => match credentials.of(tls, address).await {
            Ok(credential) => Some(credential),
            Err(verdict) => return Begun::Judged(verdict),
        },
        None => None,
    };
    match (dialogue(check, password.as_deref(), address), credential) {
        (None, None) => Begun::Judged(knock(address).await),
        (None, Some(credential)) => Begun::Judged(greet(address, subject.header, credential).await),
        (Some(dialogue), credential) => {
            match Visit::begin(address, subject.header, dialogue, credential).await {
                Ok(visit) => Begun::Visit(visit),
                Err(verdict) => Begun::Judged(verdict),
            }
        }
    }
}

fn silence(subject: &Subject, waiting_for: &str) -> Verdict {
    Verdict::silence(waiting_for, subject.settings.timeout)
}

fn tell(subject: &Subject, change: HealthChange, verdict: &Verdict) {
    let (cluster, endpoint) = (&*subject.cluster_name, &*subject.name);
    match (change, verdict.reason()) {
        (HealthChange::Down, Some(reason)) => {
            tracing::warn!(cluster, endpoint, %reason, "endpoint down: its probes failed");
        }
        (HealthChange::Down, None) => tracing::warn!(cluster, endpoint, "endpoint down"),
        (HealthChange::Up, _) => {
            tracing::info!(cluster, endpoint, "endpoint up: its probes passed");
        }
    }
}
