//! Other settings for a proxy that runs: everything that can fail is done first, then everything changes, and nothing that
//! stays is touched.
//!
//! Sockets go by their address, counts of sessions by the listener's name, clusters by theirs, endpoints by name and address.
//! A session keeps the settings that it was accepted under until it ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use evenkeel_core::units::Time;
use evenkeel_core::{Cluster, ClusterSpec};
use evenkeel_reactor::{Listener, Mail};

use crate::changes::{Change, Changes};
use crate::discovery::Composition;
use crate::listener::{
    Bound, Counts, ListenerState, Source, ToBind, bind_all, sources, stream_options,
};
use crate::names::{compositions, tell_what_is_left_out};
use crate::present::{Leaving, Present};
use crate::proxy::{Proxy, routes};
use crate::route::Route;
use crate::settings::{ClusterSettings, ListenerSettings, Settings};
use crate::start_error::StartError;
use crate::tier::BalanceTier;
use crate::worker::{Instruction, Relisten};

/// How long the workers may take to do as they are told; they take a turn of their loop.
pub(crate) const WORKERS_PATIENCE: Duration = Duration::from_secs(5);

/// Why other settings were not taken. Everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A listener has no target, or its address cannot be had.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another reload, or an upgrade, is not done yet.
    #[error("another reload or an upgrade is under way: try again when it is done")]
    Underway,
    /// The workers have not begun, and would not answer.
    #[error("clients are not served yet: try again when they are")]
    NotOpen,
    /// The proxy accepts nothing more.
    #[error("the process is stopping")]
    Stopping,
}

impl Proxy {
    /// Goes over to other settings. When this returns, every new session is served by them; those that run go on as they were
    /// accepted. Blocks for as long as it takes to bind sockets and to build tables: not for a worker's thread.
    ///
    /// What takes a restart stays as it is, and is named in the answer.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`]; nothing has changed then.
    pub fn reload(&self, settings: Settings) -> Result<Changes, ReloadError> {
        let _turn = ReloadTurn::take(&self.reloading)?;
        if self.is_stopping() {
            return Err(ReloadError::Stopping);
        }
        if !self.is_open() {
            return Err(ReloadError::NotOpen);
        }
        let before = self.present.load_full();
        let mut changes = Changes::between(&before.settings, &settings);
        let restored = restored(&before, &settings);
        let settings = with_what_takes_a_restart(settings, &before.settings);
        if settings != *before.settings || !restored.is_empty() {
            self.go_over(&before, settings)?;
        }
        changes.made.extend(restored);
        Ok(changes)
    }

    /// First what can fail, then the rest.
    fn go_over(&self, before: &Present, settings: Settings) -> Result<(), StartError> {
        let now = self.now();
        let (compositions, names_version) = compositions(&settings, &self.directory);
        let successors = self.successors(before, &compositions, now);
        let tiers: Vec<_> = successors
            .iter()
            .map(|successor| Arc::clone(&successor.tier))
            .collect();
        let routes = routes(&settings.listeners, &tiers)?;
        let held = before.listeners.iter().map(|listener| listener.held());
        let sources = sources(held, &settings.listeners);
        let workers = before.settings.process.workers;
        let bound = bind_all(to_bind(&settings.listeners, &sources), workers)?;
        // Nothing fails from here on.
        self.capacity.set_max(settings.process.max_connections);
        tell_what_is_left_out(&before.compositions, &compositions);
        for successor in successors {
            successor.take_effect(now);
        }
        let mut listeners = Succession::new(before, &settings.listeners, bound);
        for ((listener, route), source) in settings.listeners.iter().zip(routes).zip(sources) {
            listeners.succeed(listener, route, source, self);
        }
        let (listeners, next_number) = self.relisten(listeners);
        self.present.store(Arc::new(Present {
            version: before.version + 1,
            leaving: leaving(before, &tiers),
            settings: Arc::new(settings),
            compositions,
            names_version,
            listeners,
            tiers,
            next_number,
        }));
        Ok(())
    }

    /// For every cluster of the new settings, what it is made of.
    fn successors(
        &self,
        before: &Present,
        compositions: &[Composition],
        now: Time,
    ) -> Vec<Successor> {
        let in_force: HashMap<&str, &ClusterSpec> = before
            .compositions
            .iter()
            .map(|composition| &composition.settings.spec)
            .map(|spec| (&*spec.name, spec))
            .collect();
        let successor = |settings: &ClusterSettings| {
            let spec = &settings.spec;
            if let Some(tier) = before.tier(&spec.name) {
                let is_changed = in_force.get(&*spec.name) != Some(&spec);
                return Successor {
                    tier: tier.under(settings),
                    spec: is_changed.then(|| spec.clone()),
                };
            }
            match before.leaving(&spec.name) {
                Some(cluster) => Successor {
                    tier: BalanceTier::of(cluster, settings),
                    spec: Some(spec.clone()),
                },
                None => Successor {
                    tier: BalanceTier::start(settings, fastrand::u64(..), now),
                    spec: None,
                },
            }
        };
        let clusters = compositions.iter().map(|composition| &composition.settings);
        clusters.map(successor).collect()
    }

    /// Brings the listeners to the workers, and waits until all of them serve by them.
    fn relisten(&self, succession: Succession<'_>) -> (Vec<Arc<ListenerState>>, u32) {
        let closed = succession.closed();
        let Succession {
            listeners,
            changed,
            mut opened,
            next_number,
            ..
        } = succession;
        if changed.is_empty() && opened.is_empty() && closed.is_empty() {
            return (listeners, next_number);
        }
        let (sender, done) = sync_channel(self.workers());
        for worker in 0..self.workers() {
            let layer = self.crew.layer_of(worker);
            let opened = opened
                .iter_mut()
                .filter(|opened| opened.listener.layer() == layer);
            let changed = changed.iter().filter(|changed| changed.layer() == layer);
            let instruction = Instruction::Relisten(Box::new(Relisten {
                opened: opened.filter_map(Opened::for_a_worker).collect(),
                changed: changed.cloned().collect(),
                closed: closed.clone(),
                done: SyncSender::clone(&sender),
            }));
            // A worker that has ended listens to nothing.
            let _ = self.crew.mailbox(worker).post(Mail::Worker(instruction));
        }
        drop(sender);
        wait_for_workers(&done, self.workers());
        (listeners, next_number)
    }
}

/// The right to reload, of one at a time. No lock, so that nobody ever waits for a reload's system calls.
pub(crate) struct ReloadTurn<'a>(&'a AtomicBool);

impl<'a> ReloadTurn<'a> {
    pub(crate) fn take(taken: &'a AtomicBool) -> Result<Self, ReloadError> {
        if taken.swap(true, Ordering::Acquire) {
            return Err(ReloadError::Underway);
        }
        Ok(Self(taken))
    }
}

impl Drop for ReloadTurn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The listeners that stay where they are, and get the file of their socket anew.
fn restored(before: &Present, after: &Settings) -> Vec<Change> {
    let lost = before.listeners.iter();
    let lost = lost.filter(|listener| listener.has_lost_its_file());
    let stays = |listener: &&Arc<ListenerState>| {
        let mut after = after.listeners.iter();
        after.any(|settings| settings.bind == listener.address)
    };
    lost.filter(stays)
        .map(|listener| Change::ListenerRestored {
            listener: listener.settings.name.to_string(),
        })
        .collect()
}

/// Whoever may connect to a path that stays, from now on.
fn follow_permissions(before: &ListenerState, settings: &ListenerSettings) {
    let Some(file) = &before.file else {
        return;
    };
    if before.settings.permissions != settings.permissions
        && let Err(error) = file.set_permissions(settings.permissions)
    {
        let (listener, path) = (&settings.name, file.path.display());
        tracing::warn!(%listener, %path, %error, "the permissions of the socket stay as they are");
    }
}

fn with_what_takes_a_restart(mut settings: Settings, before: &Settings) -> Settings {
    settings.process.workers = before.process.workers;
    settings.process.splice_pipes_max = before.process.splice_pipes_max;
    settings.admin.clone_from(&before.admin);
    settings
        .process
        .control_socket
        .clone_from(&before.process.control_socket);
    let state_file = &before.process.state_file;
    settings.process.state_file.clone_from(state_file);
    settings.admin.clone_from(&before.admin);
    settings
}

fn to_bind<'a>(
    listeners: &'a [ListenerSettings],
    sources: &[Source],
) -> impl Iterator<Item = ToBind<'a>> {
    let listed = listeners.iter().zip(sources);
    listed.filter_map(|(settings, source)| match source {
        Source::TakenOver(_) => None,
        Source::Bound(neighbours) => Some(ToBind {
            settings,
            neighbours: *neighbours,
        }),
    })
}

/// A tier of the new settings, and what is still to be done to its cluster.
struct Successor {
    tier: Arc<BalanceTier>,
    /// `None` where the cluster is as it should be.
    spec: Option<ClusterSpec>,
}

impl Successor {
    fn take_effect(self, now: Time) {
        if let Some(spec) = self.spec {
            self.tier.cluster.reconfigure(spec, now);
        }
    }
}

/// A listener that is new to the workers, and its sockets.
struct Opened {
    listener: Arc<ListenerState>,
    sockets: std::vec::IntoIter<Listener>,
}

impl Opened {
    fn for_a_worker(&mut self) -> Option<(Arc<ListenerState>, Listener)> {
        Some((Arc::clone(&self.listener), self.sockets.next()?))
    }
}

/// How the listeners of the new settings follow those before.
struct Succession<'a> {
    before: &'a Present,
    /// Of all listeners after it.
    names: HashSet<Arc<str>>,
    bound: std::vec::IntoIter<Bound>,
    listeners: Vec<Arc<ListenerState>>,
    changed: Vec<Arc<ListenerState>>,
    opened: Vec<Opened>,
    next_number: u32,
}

impl<'a> Succession<'a> {
    fn new(before: &'a Present, after: &[ListenerSettings], bound: Vec<Bound>) -> Self {
        let names = after.iter().map(|settings| Arc::clone(&settings.name));
        Self {
            before,
            names: names.collect(),
            bound: bound.into_iter(),
            listeners: Vec::new(),
            changed: Vec::new(),
            opened: Vec::new(),
            next_number: before.next_number,
        }
    }

    fn succeed(
        &mut self,
        settings: &ListenerSettings,
        route: Route,
        source: Source,
        proxy: &Proxy,
    ) {
        let listener = match source {
            Source::TakenOver(position) => self.take_over(position, settings, route),
            Source::Bound(_) => self.open(settings, route, proxy),
        };
        self.listeners.extend(listener);
    }

    /// The sockets go on under these settings; if nothing is new about them, so does the value.
    fn take_over(
        &mut self,
        position: usize,
        settings: &ListenerSettings,
        route: Route,
    ) -> Option<Arc<ListenerState>> {
        let before = self.before.listeners.get(position)?;
        let options = stream_options(settings);
        if before.settings == *settings && before.route.is_same(&route) && before.options == options
        {
            return Some(Arc::clone(before));
        }
        follow_permissions(before, settings);
        let counts = self.counts_after(before, &settings.name);
        counts.limit_by(settings);
        let listener = Arc::new(ListenerState {
            number: before.number,
            settings: settings.clone(),
            address: before.address.clone(),
            file: before.file.clone(),
            route,
            options,
            counts,
            capacity: Arc::clone(&before.capacity),
            leaving: AtomicBool::new(false),
        });
        self.changed.push(Arc::clone(&listener));
        Some(listener)
    }

    fn open(
        &mut self,
        settings: &ListenerSettings,
        route: Route,
        proxy: &Proxy,
    ) -> Option<Arc<ListenerState>> {
        let bound = self.bound.next()?;
        let counts = self.counts_of(&settings.name);
        let number = self.next_number;
        let listener = ListenerState::of(number, settings, &bound, route, counts, &proxy.capacity);
        self.next_number += 1;
        self.opened.push(Opened {
            listener: Arc::clone(&listener),
            sockets: bound.sockets.into_iter(),
        });
        Some(listener)
    }

    /// The same; and where the listener only got this name, what was counted under the other one, so that its limit holds.
    fn counts_after(&self, before: &ListenerState, name: &str) -> Arc<Counts> {
        let is_new = self.before.listener(name).is_none();
        if is_new && !self.names.contains(&before.settings.name) {
            return Arc::clone(&before.counts);
        }
        self.counts_of(name)
    }

    /// What was counted under this name goes on.
    fn counts_of(&self, name: &str) -> Arc<Counts> {
        self.before
            .listener(name)
            .map(|listener| Arc::clone(&listener.counts))
            .unwrap_or_default()
    }

    /// The numbers of those before whose sockets nobody has taken over. They know from now on.
    fn closed(&self) -> Vec<u32> {
        let numbers = self.before.listeners.iter().map(|listener| listener.number);
        let is_kept = |number: u32| self.listeners.iter().any(|kept| kept.number == number);
        let closed: Vec<u32> = numbers.filter(|number| !is_kept(*number)).collect();
        let before = self.before.listeners.iter();
        for leaving in before.filter(|listener| closed.contains(&listener.number)) {
            leaving.leaving.store(true, Ordering::Relaxed);
        }
        closed
    }
}

/// The clusters that sessions may still use without their being configured.
fn leaving(before: &Present, tiers: &[Arc<BalanceTier>]) -> Vec<Leaving> {
    let is_configured = |name: &Arc<str>| tiers.iter().any(|tier| tier.name() == name);
    let removed = before.tiers.iter().map(|tier| Leaving {
        name: Arc::clone(tier.name()),
        cluster: Arc::<Cluster>::downgrade(&tier.cluster),
    });
    let still = before.leaving.iter().cloned();
    let in_use = still.filter(|leaving| leaving.cluster.strong_count() > 0);
    removed
        .chain(in_use)
        .filter(|leaving| !is_configured(&leaving.name))
        .collect()
}

fn wait_for_workers(done: &Receiver<()>, workers: usize) {
    let deadline = Instant::now() + WORKERS_PATIENCE;
    for _ in 0..workers {
        let left = deadline.saturating_duration_since(Instant::now());
        if done.recv_timeout(left).is_err() {
            tracing::error!(
                "a worker has not taken the new listeners yet: it serves its next connections by the old ones"
            );
            return;
        }
    }
}
