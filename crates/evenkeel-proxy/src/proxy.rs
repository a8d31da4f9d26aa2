//! A running proxy: started whole or not at all, watched while it runs, drained, closed, joined.
//!
//! It owns the worker threads and what they share. What a session does is in [`session`](crate::session); the control plane
//! (signals, the control socket) calls the methods here and is not known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use evenkeel_core::units::{Address, EndpointId, Time};
use evenkeel_core::{Cluster, Explanation, KeptCluster, Request, Tried};
use evenkeel_reactor::{Clock, Mail, Origin, PipeBudget, can_splice};

use crate::SessionSink;
use crate::capacity::Capacity;
use crate::crew::Crew;
use crate::discovery::Directory;
use crate::kernel;
use crate::listener::{Inheritance, ListenerState, open_all};
use crate::names::{compositions, tell_what_is_left_out};
use crate::pauses::PauseStatus;
use crate::present::Present;
use crate::pulse::WorkerPulse;
use crate::route::Route;
use crate::settings::{
    Layer, ListenerSettings, OnDown, ProbeSettings, ProxyVersion, RouteSettings, Settings,
};
use crate::start_error::StartError;
use crate::tier::{BalanceTier, Placement};
use crate::worker::{Instruction, time_of};
use crate::workers::WorkerHandle;

/// A listener, as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Where it listens, with the port the kernel chose if 0 was asked for.
    pub address: Address,
    /// The cluster its sessions go to unless a route says otherwise; `None` is nowhere.
    pub to: Option<Arc<str>>,
    /// Where they go by what is known of them.
    pub routes: Vec<RouteSettings>,
    /// Sessions that have not ended.
    pub sessions: u64,
    /// Sessions begun since the start.
    pub accepted: u64,
    /// The most sessions at one time; `None` is no limit.
    pub max_connections: Option<u32>,
    /// Whether the file of its Unix socket was removed, so that nobody can connect.
    pub has_lost_its_file: bool,
    /// How often and for how long it has accepted nobody for want of a place or a descriptor.
    pub pauses: PauseStatus,
}

/// What splicing came to since the start, over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpliceStatus {
    /// Bytes that went through pipes.
    pub bytes: u64,
    /// Pipes there are now.
    pub pipes: usize,
    /// The most there may be; 0 where the kernel cannot splice.
    pub pipes_max: usize,
    /// How often bytes were copied because all pipes were in use.
    pub over_budget: u64,
    /// How often bytes were copied because the kernel refused a pipe.
    pub refused: u64,
    /// Pipes that the kernel made smaller than asked for.
    pub smaller: u64,
}

/// A session that does not exist, to ask who would get it.
#[derive(Clone, Copy, Debug)]
pub struct AskedSession<'a> {
    /// The listener it would come to.
    pub listener: &'a str,
    /// Who would connect.
    pub client: Origin,
    /// What would come first.
    pub first_bytes: &'a [u8],
    /// The name that its TLS handshake would ask for, in lower case.
    pub server_name: Option<&'a str>,
}

/// The answer to a dry run.
pub struct RouteAnswer {
    /// Where the session would go; `None` is nowhere.
    pub goal: Option<RouteGoal>,
    /// The rule that leads there; `None` if it is the listener's `to`.
    pub rule: Option<RouteSettings>,
    /// Whether the cluster hashes what a client sends first.
    pub by_first_line: bool,
    /// Whether the listener goes by the name that a TLS client asks for.
    pub by_server_name: bool,
}

/// Where a session would go.
pub struct RouteGoal {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// Who would get it there, and why not each other one.
    pub explanation: Explanation,
}

/// A cluster whose endpoints are probed.
pub(crate) struct ProbedCluster {
    pub(crate) name: Arc<str>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) settings: Arc<ProbeSettings>,
    pub(crate) on_down: OnDown,
    /// What connections to its endpoints begin with.
    pub(crate) header: Option<ProxyVersion>,
}

/// A running proxy. Dropping it closes it and waits for its threads.
pub struct Proxy {
    pub(crate) clock: Clock,
    pub(crate) present: ArcSwap<Present>,
    /// What names lead to.
    pub(crate) directory: Arc<Directory>,
    /// Taken by a reload while it runs.
    pub(crate) reloading: AtomicBool,
    stopping: AtomicBool,
    /// While another process is being given what this one has.
    pub(crate) lending: AtomicBool,
    /// Once another process serves.
    pub(crate) handed_over: AtomicBool,
    /// Set once the workers may begin.
    pub(crate) opened: Arc<OnceLock<()>>,
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) pipes: Arc<PipeBudget>,
    pub(crate) crew: Arc<Crew>,
    pub(crate) workers: Vec<WorkerHandle>,
}

impl Proxy {
    /// Binds every listener, then starts the workers. Each session's record goes to `sink`.
    ///
    /// # Errors
    ///
    /// An address cannot be had, or the machine lacks something. Nothing runs then.
    pub fn start(settings: Settings, sink: Arc<dyn SessionSink>) -> Result<Self, StartError> {
        let proxy = Self::prepare(Inheritance::default(), settings, Arc::default(), sink)?;
        proxy.open();
        Ok(proxy)
    }

    /// As [`Proxy::start`], on sockets that this process was given, as far as listeners want them; and nobody is served before
    /// [`Proxy::open`]: whoever connects waits in the backlog. Whoever resolves names writes what they lead to into the directory.
    ///
    /// # Errors
    ///
    /// As [`Proxy::start`].
    pub fn prepare(
        inheritance: Inheritance,
        settings: Settings,
        directory: Arc<Directory>,
        sink: Arc<dyn SessionSink>,
    ) -> Result<Self, StartError> {
        kernel::raise_descriptor_limit();
        let clock = Clock::start();
        let now = time_of(clock.now());
        // Round robin starts elsewhere in each process, or the first endpoint of a fleet's clusters gets all first clients.
        let mut random = fastrand::Rng::new();
        let (compositions, names_version) = compositions(&settings, &directory);
        tell_what_is_left_out(&[], &compositions);
        let tiers: Vec<Arc<BalanceTier>> = compositions
            .iter()
            .map(|cluster| BalanceTier::start(&cluster.settings, random.u64(..), now))
            .collect();
        recall(inheritance.known(), &tiers, now);
        let routes = routes(&settings.listeners, &tiers)?;
        let process = settings.process.clone();
        let bound = open_all(&settings.listeners, inheritance, process.workers)?;
        let capacity = Arc::new(Capacity::measure(
            process.workers,
            process.splice_pipes_max,
            settings.probed_endpoints(),
        ));
        capacity.set_max(process.max_connections);
        let numbered = (0..).zip(&settings.listeners).zip(&bound).zip(routes);
        let listeners: Vec<_> = numbered
            .map(|(((number, settings), bound), route)| {
                let counts = Arc::default();
                ListenerState::of(number, settings, bound, route, counts, &capacity)
            })
            .collect();
        let next_number = u32::try_from(listeners.len()).unwrap_or(u32::MAX);
        let mut proxy = Self {
            clock,
            present: ArcSwap::from_pointee(Present {
                version: 0,
                settings: Arc::new(settings),
                compositions,
                names_version,
                listeners,
                tiers,
                leaving: Vec::new(),
                next_number,
            }),
            directory,
            reloading: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            lending: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
            opened: Arc::default(),
            pipes: pipe_budget(capacity.pipes_max()),
            capacity,
            crew: Crew::of(process.workers)
                .map_err(|source| StartError::Worker { number: 0, source })?,
            workers: Vec::new(),
        };
        proxy.start_workers(bound, process.workers, &sink)?;
        Ok(proxy)
    }

    /// Lets the workers begin. Nothing more happens when they have begun already.
    pub fn open(&self) {
        // Set already: it is open.
        let _ = self.opened.set(());
    }

    /// Whether clients are served, or were until a stop.
    pub fn is_open(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Grows with every change of listeners, clusters or endpoints that a reload or a name makes. Whoever follows them looks at it from
    /// time to time, before everything else: what is read after it is never older.
    pub fn version(&self) -> u64 {
        self.present.load().version
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.present.load().settings)
    }

    /// The listeners, in the order of the settings.
    pub fn listeners(&self) -> Vec<ListenerStatus> {
        let now = self.now();
        let status = |listener: &Arc<ListenerState>| ListenerStatus {
            name: Arc::clone(&listener.settings.name),
            address: listener.address.clone(),
            to: listener.settings.to.clone(),
            routes: listener.settings.routes.clone(),
            sessions: listener.sessions(),
            accepted: listener.accepted(),
            max_connections: listener.settings.max_connections.map(u32::from),
            has_lost_its_file: listener.has_lost_its_file(),
            pauses: listener.counts.pauses.status(now),
        };
        self.present.load().listeners.iter().map(status).collect()
    }

    /// The clusters, in the order of the settings.
    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        let present = self.present.load();
        let tiers = present.tiers.iter();
        tiers.map(|tier| Arc::clone(&tier.cluster)).collect()
    }

    /// The clusters whose endpoints are probed.
    pub(crate) fn probed_clusters(&self) -> Vec<ProbedCluster> {
        let present = self.present.load();
        let listed = present.settings.clusters.iter().zip(&present.tiers);
        listed
            .filter_map(|(settings, tier)| {
                Some(ProbedCluster {
                    name: Arc::clone(&settings.spec.name),
                    cluster: Arc::clone(&tier.cluster),
                    settings: settings.probe.clone()?,
                    on_down: settings.on_down,
                    header: settings.proxy_protocol,
                })
            })
            .collect()
    }

    /// Ends the sessions that use the endpoint, but for those that have had no answer and can go to another one.
    pub(crate) fn close_sessions_of(&self, endpoint: EndpointId) {
        if self.sessions_of(endpoint) > 0 {
            self.instruct_all(|| Instruction::CloseSessionsOf(endpoint));
        }
    }

    /// Sessions that have not ended, also those of listeners that have been removed.
    pub fn sessions(&self) -> u64 {
        self.capacity.sessions()
    }

    /// The most sessions there may be at one time: what is configured, or what there are descriptors for.
    pub fn sessions_max(&self) -> u64 {
        self.capacity.max()
    }

    /// Sessions that use the endpoint now, over all workers.
    pub fn sessions_of(&self, endpoint: EndpointId) -> usize {
        self.workers
            .iter()
            .map(|worker| worker.index.count(endpoint))
            .sum()
    }

    /// The sessions of each worker of a layer now.
    pub fn worker_sessions(&self, layer: Layer) -> Vec<usize> {
        self.crew
            .of_layer(layer)
            .map(|worker| self.crew.sessions(worker))
            .collect()
    }

    /// Asks each worker for a sign of life; to be called every second or so.
    pub fn ask_workers(&self) {
        let now = self.now();
        for (number, worker) in self.workers.iter().enumerate() {
            let mailbox = self.crew.mailbox(number);
            let question = Mail::Worker(Instruction::Answer);
            if worker.pulse.ask(now) && mailbox.post(question).is_err() {
                // It has ended, or has so much mail that it has to be asked again.
                worker.pulse.answer();
            }
        }
    }

    /// How each worker of a layer is, by its answer to [`Proxy::ask_workers`].
    pub fn worker_pulses(&self, layer: Layer) -> Vec<WorkerPulse> {
        let now = self.now();
        self.workers[self.crew.of_layer(layer)]
            .iter()
            .map(|worker| worker.pulse(now))
            .collect()
    }

    /// What splicing came to.
    pub fn spliced(&self) -> SpliceStatus {
        let none = SpliceStatus {
            pipes: self.pipes.open(),
            pipes_max: self.pipes.pipes_max(),
            ..SpliceStatus::default()
        };
        let counts = self
            .workers
            .iter()
            .filter_map(|worker| worker.spliced.as_ref());
        counts.fold(none, |sum, spliced| SpliceStatus {
            bytes: sum.bytes + spliced.bytes(),
            over_budget: sum.over_budget + spliced.over_budget(),
            refused: sum.refused + spliced.refused(),
            smaller: sum.smaller + spliced.smaller(),
            ..sum
        })
    }

    /// The time by which clusters and sessions count.
    pub fn now(&self) -> Time {
        time_of(self.clock.now())
    }

    /// Lets time pass for the clusters; to be called every 100 ms or so.
    pub fn tick(&self) {
        let now = self.now();
        for cluster in self.present.load().living_clusters() {
            cluster.tick(now);
        }
    }

    /// Who would get that session. Nothing is changed. `None` if there is no such listener.
    pub fn route(&self, asked: &AskedSession<'_>) -> Option<RouteAnswer> {
        let present = self.present.load();
        let listener = present.listener(asked.listener)?;
        let route = &listener.route;
        let by_server_name = route.goes_by_server_name();
        let (placement, rule) = if by_server_name {
            route.place_by_name(asked.client, asked.server_name).unzip()
        } else {
            (Some(route.place(asked.client, asked.first_bytes)), None)
        };
        let rules = &listener.settings.routes;
        Some(RouteAnswer {
            goal: placement.map(|placement| self.explain(&placement)),
            rule: rule.flatten().and_then(|rule| rules.get(rule).cloned()),
            by_first_line: route.needs_first_line(),
            by_server_name,
        })
    }

    fn explain(&self, placement: &Placement) -> RouteGoal {
        let cluster = Arc::clone(&placement.tier.cluster);
        let request = Request {
            key: placement.key,
            tried: &Tried::default(),
            waiter: None,
        };
        let explanation = cluster.explain(&request, self.now());
        RouteGoal {
            cluster,
            explanation,
        }
    }

    /// Accepts nothing more; sessions may finish. The threads end with the last one.
    pub fn drain(&self) {
        self.begin_to_stop(|| Instruction::Drain);
    }

    /// Accepts nothing more and ends all sessions now.
    pub fn close(&self) {
        self.begin_to_stop(|| Instruction::Close);
    }

    /// Waits until all threads have ended, which takes a [`Proxy::drain`] or [`Proxy::close`].
    pub fn join(&self) {
        for (number, worker) in self.workers.iter().enumerate() {
            let thread = worker.thread.lock().take();
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!(
                    worker = number,
                    "a worker has panicked: this is a fault of evenkeel"
                );
            }
        }
    }

    pub(crate) fn begin_to_stop(&self, instruction: impl Fn() -> Instruction) {
        self.stopping.store(true, Ordering::Relaxed);
        self.instruct_all(instruction);
        self.open();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// How many there are, of both layers.
    pub(crate) const fn workers(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn instruct_all(&self, instruction: impl Fn() -> Instruction) {
        for worker in 0..self.workers.len() {
            // A worker that has ended has nothing left to stop.
            let _ = self.crew.mailbox(worker).post(Mail::Worker(instruction()));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
        self.join();
    }
}

/// What the process before knew of these clusters.
fn recall(known: &[KeptCluster], tiers: &[Arc<BalanceTier>], now: Time) {
    for kept in known {
        if let Some(tier) = tiers.iter().find(|tier| *tier.name() == kept.name) {
            tier.cluster.import(kept, now);
        }
    }
}

/// Pipes for all workers; none where the kernel cannot splice as it should.
fn pipe_budget(pipes_max: usize) -> Arc<PipeBudget> {
    if pipes_max > 0 && !can_splice() {
        tracing::info!("this kernel cannot splice without blocking: all bytes are copied");
        return PipeBudget::new(0);
    }
    PipeBudget::new(pipes_max)
}

/// Where each listener's sessions go.
///
/// # Errors
///
/// See [`Route::of`].
pub(crate) fn routes(
    listeners: &[ListenerSettings],
    tiers: &[Arc<BalanceTier>],
) -> Result<Vec<Route>, StartError> {
    let route = |listener| Route::of(listener, tiers);
    listeners.iter().map(route).collect()
}
