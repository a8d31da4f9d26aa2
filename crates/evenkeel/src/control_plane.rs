//! The control plane: one thread that waits for signals and requests, lets time pass in the clusters, and ends the process.
//!
//! No byte of a session passes here. When it is late, sessions go on; only ejections end later and tables are older.

mod files;
mod succession;

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use evenkeel_proxy::Proxy;
use evenkeel_proxy::control::operator::Kept;
use evenkeel_proxy::control::protocol::StopMode;
use evenkeel_proxy::control::socket::ControlSocket;
use evenkeel_proxy::discovery::{Directory, Follower};
use evenkeel_proxy::probe::Prober;
use evenkeel_proxy::settings::Settings;
use evenkeel_proxy::telemetry::Telemetry;
use evenkeel_proxy::telemetry::access_log::Stopped;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle as TaskHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use files::Files;

use crate::admin::{self, AdminListener, Doors, Pages, health};
use crate::desk::Desk;
use crate::keeper::Keeper;
use crate::lookout::Lookout;
use crate::notify::Supervisor;
use crate::reload::{self, Reloader, Reloads, Source};
use crate::signals::{Signals, Wish};
use crate::span::span;
use crate::upgrade::endowment::{MayUpgrade, Succession};
use crate::upgrade::underway::{UpgradeCounter, Upgrades};
use crate::upgrade::{Line, Predecessor};
use crate::watch::Watch;

/// How often time passes for clusters, and how exact a stop's deadline is.
const TICK: Duration = Duration::from_millis(100);
/// How many ticks lie between two looks for changes of endpoints: half a second.
const TICKS_PER_LOOK: u32 = 5;
/// How many ticks lie between two questions to the workers whether they are well: a second.
const TICKS_PER_PULSE: u32 = 10;
/// How long clients wait, at the start, for the first answers to names and for the first probes to end.
const FIRST_ANSWERS_MAX: Duration = Duration::from_secs(2);
/// Requests to stop that wait to be read; the thread reads them as soon as it has answered.
const STOP_REQUESTS_MAX: usize = 16;
/// How many ticks lie between two lines about a stop that goes on: five seconds.
const TICKS_PER_PROGRESS: u32 = 50;
/// How long answers on the control socket may take to be fetched from a process whose place another one has taken.
const ANSWERS_PATIENCE: Duration = Duration::from_secs(1);
/// How long the log writer may take for what is queued when everything else has ended.
const LOG_PATIENCE: Duration = Duration::from_secs(2);

/// What it looks after.
pub(crate) struct Charge {
    /// The data path.
    pub proxy: Arc<Proxy>,
    /// Where the names of endpoints lead.
    pub directory: Arc<Directory>,
    /// Counters and access log.
    pub telemetry: Arc<Telemetry>,
    /// The control socket, where there is one.
    pub socket: Option<ControlSocket>,
    /// The admin listener, where there is one.
    pub admin: Option<AdminListener>,
    /// Whether another process may take over.
    pub upgrades: MayUpgrade,
    /// What is to be settled with the process before, where there is one.
    pub succession: Option<Succession>,
    /// What the process was started from; without it, nothing can be reloaded.
    pub source: Option<Source>,
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    thread: JoinHandle<()>,
    stop_requests: Sender<StopMode>,
}

impl ControlPlane {
    /// Starts the thread; when this returns, signals and requests are attended to.
    ///
    /// # Errors
    ///
    /// The system gives no thread or no descriptor.
    pub(crate) fn start(charge: Charge, lookout: Lookout) -> io::Result<Self> {
        let (stop_requests, requests) = channel(STOP_REQUESTS_MAX);
        let (report, started) = std_mpsc::sync_channel(1);
        let sender = stop_requests.clone();
        let thread =
            thread::Builder::new().name("ek-control".to_owned()).spawn(
                move || match Plane::prepare(charge, lookout, sender, requests) {
                    Ok((runtime, plane)) => {
                        runtime.block_on(plane.run(report));
                        // A thread that waits for a disk would hold up the end.
                        runtime.shutdown_background();
                    }
                    Err(error) => drop(report.send(Err(error))),
                },
            )?;
        // A thread that panicked before it reported has said why on standard error.
        started
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the control thread ended")))?;
        Ok(Self {
            thread,
            stop_requests,
        })
    }

    /// Asks for the end, as `evenkeel stop` does.
    pub(crate) fn stop(&self, mode: StopMode) {
        // Full or closed: it is stopping already.
        let _ = self.stop_requests.try_send(mode);
    }

    /// Waits until everything has ended.
    ///
    /// # Errors
    ///
    /// The thread panicked; sessions may have been cut.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.thread.join()
    }
}

/// Where in its life the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Still accepting since then, and telling whoever looks that this will end.
    Leaving {
        since: Instant,
    },
    /// Accepting nothing new since then; sessions finish.
    Draining {
        since: Instant,
    },
    /// The same, with another process in this one's place.
    Superseded {
        since: Instant,
    },
    /// Everything ends now.
    Closing,
}

/// What is answered on, as soon as it is this process's turn to.
struct Entrances {
    control: Option<UnixListener>,
    admin: Option<Doors>,
}

struct Plane {
    charge: Charge,
    requests: Receiver<StopMode>,
    signals: Signals,
    supervisor: Supervisor,
    phase: Phase,
    stopping: Arc<AtomicBool>,
    reloads: Reloads,
    /// Reloads wait for it.
    opened: watch::Sender<bool>,
    watch: Watch,
    prober: Prober,
    started: Instant,
    keeper: Keeper,
    /// Resolves the names of endpoints.
    follower: Follower,
    /// The settings whose names it follows.
    followed: Arc<Settings>,
    ticks: u32,
    entrances: Option<Entrances>,
    desk: Arc<Desk>,
    /// An operator has said something of an endpoint.
    ordered: Arc<Notify>,
    /// Serves the control socket; ends with the runtime.
    server: Option<TaskHandle<()>>,
    /// Serves the admin listener, as long.
    admin: Option<TaskHandle<()>>,
    /// Has the server leave the control socket to another process.
    leave: Option<oneshot::Sender<()>>,
    upgrade_counter: UpgradeCounter,
    upgrades: Upgrades,
    /// The process before, while it lets its sessions finish.
    predecessor: Option<Predecessor>,
    /// What was said about files of sockets.
    files: Files,
    /// To the process that has taken over.
    successor: Option<Line>,
}

impl Plane {
    fn prepare(
        mut charge: Charge,
        lookout: Lookout,
        sender: Sender<StopMode>,
        requests: Receiver<StopMode>,
    ) -> io::Result<(Runtime, Self)> {
        let Lookout { runtime, signals } = lookout;
        let guard = runtime.enter();
        let stopping = Arc::new(AtomicBool::new(false));
        let prober = Prober::new(Arc::clone(&charge.proxy));
        let state_file = charge.proxy.settings().process.state_file.clone();
        let keeper = Keeper::start(state_file, &charge.proxy);
        let (upgrade_counter, upgrades) = Upgrades::new();
        let supervisor = Supervisor::from_environment();
        let opened = watch::Sender::new(false);
        let reloads = take_reloads(&mut charge, &runtime, &supervisor, &stopping, &opened);
        let ordered = Arc::new(Notify::new());
        let desk = Arc::new(Desk {
            ordered: Arc::clone(&ordered),
            keeper: keeper.clone(),
            proxy: Arc::clone(&charge.proxy),
            telemetry: Arc::clone(&charge.telemetry),
            probes: prober.ledger(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            stopping: Arc::clone(&stopping),
            stop_requests: sender,
            upgrades: upgrade_counter.clone(),
            remainder: Arc::default(),
            reloads: reloads.clone(),
        });
        let followed = charge.proxy.settings();
        let mut follower = Follower::new(runtime.handle().clone(), Arc::clone(&charge.directory));
        follower.follow(&followed);
        let (control, admin) = (charge.socket.as_ref(), charge.admin.as_ref());
        let entrances = Entrances {
            control: control.map(ControlSocket::listener).transpose()?,
            admin: admin.map(AdminListener::doors).transpose()?,
        };
        let plane = Self {
            charge,
            requests,
            signals,
            supervisor,
            phase: Phase::Running,
            stopping,
            reloads,
            opened,
            watch: Watch::default(),
            prober,
            started: Instant::now(),
            keeper,
            follower,
            followed,
            ticks: 0,
            entrances: Some(entrances),
            desk,
            ordered,
            server: None,
            admin: None,
            leave: None,
            upgrade_counter,
            upgrades,
            predecessor: None,
            files: Files::default(),
            successor: None,
        };
        drop(guard);
        Ok((runtime, plane))
    }

    async fn run(mut self, started: std_mpsc::SyncSender<io::Result<()>>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.prober.follow();
        let begun = self.begin(&mut ticks).await;
        let failed = begun.is_err();
        // Whoever started this waits for it.
        let _ = started.send(begun);
        if failed {
            return;
        }
        while !self.is_over() {
            tokio::select! {
                _ = ticks.tick() => self.tick(),
                wish = self.signals.next() => self.fulfil(wish),
                Some(mode) = self.requests.recv() => self.stop(mode),
                // At once: whoever is disabled and enabled again in a moment is unknown, and is not to wait for its next round.
                () = self.ordered.notified() => self.prober.follow(),
                event = self.upgrades.next() => self.attend_to(event),
            }
        }
        self.upgrades.end().await;
        self.prober.end().await;
        self.keep().await;
        self.finish().await;
    }

    async fn keep(&self) {
        if let Kept::NotWritten(why) = self.keeper.keep().await {
            tracing::warn!(why, "stopping without having kept what operators set");
        }
    }

    /// Where there is a process before this one, it goes on until it is known here who can serve clients, and then gives up what
    /// both have.
    async fn begin(&mut self, ticks: &mut Interval) -> io::Result<()> {
        if let Some(succession) = self.charge.succession.take() {
            while !self.may_open() {
                tokio::select! {
                    _ = ticks.tick() => {}
                    wish = self.signals.next() => self.fulfil_before_serving(wish)?,
                }
                succession.heed()?;
                self.charge.proxy.tick();
                self.follow_names();
                self.prober.follow();
            }
            self.charge.proxy.open();
            let (files, predecessor) = succession.take_over(self.charge.socket.as_mut())?;
            self.take_files(files);
            self.predecessor = Some(predecessor);
            self.say_ready();
        }
        self.serve();
        self.open_if_ready();
        Ok(())
    }

    /// Begins to answer on the control socket and the admin listener.
    fn serve(&mut self) {
        let Some(entrances) = self.entrances.take() else {
            return;
        };
        let Entrances { control, admin } = entrances;
        let desk = Arc::clone(&self.desk);
        let pages = Arc::new(Pages::new(Arc::clone(&desk)));
        self.admin =
            admin.map(|doors| tokio::spawn(async move { admin::serve(&doors, &pages).await }));
        if let Some(listener) = control {
            self.serve_on(listener);
        }
    }

    fn tick(&mut self) {
        self.charge.proxy.tick();
        self.ticks = self.ticks.wrapping_add(1);
        self.follow_names();
        if let Phase::Leaving { since } = self.phase
            && since.elapsed() >= self.ready_delay()
        {
            self.drain();
        }
        if self.ticks.is_multiple_of(TICKS_PER_PULSE) {
            self.give_sign_of_life();
            self.look_after_files();
        }
        // What has changed without a version is looked at now and then all the same.
        if self.prober.is_behind() || self.ticks.is_multiple_of(TICKS_PER_LOOK) {
            self.prober.follow();
        }
        self.open_if_ready();
        if self.ticks.is_multiple_of(TICKS_PER_LOOK) {
            self.look();
            self.exchange_remainders();
        }
        if self.ticks.is_multiple_of(TICKS_PER_PROGRESS) && self.phase != Phase::Running {
            let sessions = self.charge.proxy.sessions();
            tracing::info!(sessions, "still stopping");
        }
    }

    /// A supervisor that gets none for long starts the process anew: so none is given for workers that are stuck.
    fn give_sign_of_life(&self) {
        match health::alive(&self.desk.vitals()) {
            Ok(_) => self.supervisor.alive(),
            Err(why) => tracing::error!("not alive: {}", why.trim_end()),
        }
        self.charge.proxy.ask_workers();
    }

    /// Clients are served as soon as it is known who can serve them, or when that takes too long.
    fn open_if_ready(&mut self) {
        if !self.charge.proxy.is_open() && self.may_open() {
            self.charge.proxy.open();
            self.say_ready();
        }
    }

    fn may_open(&self) -> bool {
        if self.follower.has_asked_everything() && self.prober.has_asked_everybody() {
            return true;
        }
        let is_late = self.started.elapsed() >= FIRST_ANSWERS_MAX;
        if is_late {
            tracing::warn!(
                "the first answers of name servers and probes take long: serving clients without them"
            );
        }
        is_late
    }

    fn say_ready(&self) {
        let listeners = self.charge.proxy.listeners().len();
        self.supervisor.ready(&format!("listeners: {listeners}"));
        self.opened.send_replace(true);
    }

    fn follow_names(&mut self) {
        let settings = self.charge.proxy.settings();
        if !Arc::ptr_eq(&settings, &self.followed) {
            self.follower.follow(&settings);
            self.followed = settings;
        }
        self.charge.proxy.follow_names();
    }

    fn look(&mut self) {
        let now = self.charge.proxy.now();
        let clusters = self.charge.proxy.clusters();
        let clusters: Vec<_> = clusters.iter().map(|cluster| cluster.status(now)).collect();
        self.watch.look(&clusters, now);
    }

    fn fulfil(&mut self, wish: Wish) {
        match (wish, self.phase) {
            (Wish::Stop, Phase::Running | Phase::Superseded { .. }) => {
                self.stop(StopMode::Graceful);
            }
            (Wish::Stop, _) => self.stop(StopMode::Now),
            (Wish::ReopenLogs, _) => {
                tracing::info!("reopening the access log");
                self.charge.telemetry.reopen_logs();
            }
            (Wish::Upgrade, _) => self.upgrade_counter.ask_by_signal(),
            (Wish::Reload, _) => self.reloads.ask_by_signal(),
        }
    }

    fn stop(&mut self, mode: StopMode) {
        let sessions = self.charge.proxy.sessions();
        match (mode, self.phase) {
            (StopMode::Graceful, Phase::Running) => {
                self.upgrades.call_off();
                self.announce_stop(sessions);
                self.leave();
            }
            // The whole service is being stopped. What runs here has its deadline already.
            (StopMode::Graceful, Phase::Superseded { since }) => {
                self.phase = Phase::Draining { since };
            }
            (
                StopMode::Now,
                Phase::Running
                | Phase::Leaving { .. }
                | Phase::Draining { .. }
                | Phase::Superseded { .. },
            ) => {
                tracing::info!(sessions, "stopping now: closing all sessions");
                self.upgrades.call_off();
                self.announce_stop(sessions);
                self.phase = Phase::Closing;
            }
            // Asked twice to do what it does.
            (StopMode::Graceful, _) | (_, Phase::Closing) => {}
        }
    }

    fn stop_deadline(&self) -> Duration {
        self.charge.proxy.settings().process.stop_deadline
    }

    fn ready_delay(&self) -> Duration {
        self.charge.proxy.settings().process.ready_delay
    }

    /// Goes on accepting for the ready delay, if there is one.
    fn leave(&mut self) {
        let delay = self.ready_delay();
        if delay.is_zero() {
            return self.drain();
        }
        tracing::info!(
            delay = told(delay),
            "stopping: no longer ready, accepting for a while yet"
        );
        self.phase = Phase::Leaving {
            since: Instant::now(),
        };
    }

    fn drain(&mut self) {
        tracing::info!(
            sessions = self.charge.proxy.sessions(),
            deadline = told(self.stop_deadline()),
            "stopping: accepting nothing new, sessions may finish"
        );
        self.charge.proxy.drain();
        self.opened.send_replace(true);
        self.phase = Phase::Draining {
            since: Instant::now(),
        };
    }

    fn announce_stop(&self, sessions: u64) {
        self.stopping.store(true, Ordering::Relaxed);
        self.supervisor.stopping(&format!("sessions: {sessions}"));
    }

    /// Not before a tick after the drain began: connections that the kernel had accepted by then become sessions first.
    fn is_over(&self) -> bool {
        match self.phase {
            Phase::Running | Phase::Leaving { .. } => false,
            Phase::Draining { since } | Phase::Superseded { since } => {
                let drained_for = since.elapsed();
                (drained_for >= TICK && self.charge.proxy.sessions() == 0)
                    || drained_for >= self.stop_deadline()
            }
            Phase::Closing => true,
        }
    }

    async fn finish(self) {
        let Charge {
            proxy,
            telemetry,
            socket,
            ..
        } = self.charge;
        let cut = proxy.sessions();
        if cut > 0 {
            tracing::warn!(sessions = cut, "closing sessions that have not finished");
        }
        proxy.close();
        proxy.join();
        if telemetry.stop(LOG_PATIENCE) == Stopped::TimedOut {
            tracing::warn!("the access log did not take its last lines in time; they are lost");
        }
        if let Some(mut server) = self.server {
            // Only if the socket is another process's does it end by itself, with its last answers.
            let left = self.leave.is_none();
            if !left || timeout(ANSWERS_PATIENCE, &mut server).await.is_err() {
                server.abort();
            }
        }
        if let Some(admin) = self.admin {
            admin.abort();
        }
        drop(socket);
        tracing::info!("stopped");
    }
}

fn told(time: Duration) -> String {
    span(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Where reloads can be asked for; without a source nobody attends to it.
fn take_reloads(
    charge: &mut Charge,
    runtime: &Runtime,
    supervisor: &Supervisor,
    stopping: &Arc<AtomicBool>,
    opened: &watch::Sender<bool>,
) -> Reloads {
    let (reloads, asked) = reload::open();
    if let Some(source) = charge.source.take() {
        let reloader = Reloader {
            source,
            proxy: Arc::clone(&charge.proxy),
            telemetry: Arc::clone(&charge.telemetry),
            supervisor: supervisor.clone(),
            stopping: Arc::clone(stopping),
            opened: opened.subscribe(),
        };
        runtime.spawn(reloader.run(asked));
    }
    reloads
}
