//! The control plane: one thread that waits for signals and requests, lets time pass in the clusters, and ends the process.
//!
//! No byte of a session passes here. When it is late, sessions go on; only ejections end later and tables are older.

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
use evenkeel_proxy::control::server;
use evenkeel_proxy::control::socket::ControlSocket;
use evenkeel_proxy::discovery::{Directory, Follower};
use evenkeel_proxy::probe::Prober;
use evenkeel_proxy::settings::Settings;
use evenkeel_proxy::telemetry::Telemetry;
use evenkeel_proxy::telemetry::access_log::Stopped;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle as TaskHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::{AdminListener, Pages};
use crate::desk::Desk;
use crate::keeper::Keeper;
use crate::lookout::Lookout;
use crate::notify::Supervisor;
use crate::signals::{Signals, Wish};
use crate::span::span;
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
        let thread = thread::Builder::new()
            .name("ek-control".to_owned())
            .spawn(move || {
                let prepared = Plane::prepare(charge, lookout, sender, requests);
                match prepared {
                    Ok((runtime, plane)) => {
                        let _ = report.send(Ok(()));
                        runtime.block_on(plane.run());
                    }
                    Err(error) => drop(report.send(Err(error))),
                }
            })?;
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
    /// Everything ends now.
    Closing,
}

struct Plane {
    charge: Charge,
    requests: Receiver<StopMode>,
    signals: Signals,
    supervisor: Supervisor,
    phase: Phase,
    stopping: Arc<AtomicBool>,
    watch: Watch,
    prober: Prober,
    started: Instant,
    keeper: Keeper,
    /// Resolves the names of endpoints.
    follower: Follower,
    /// The settings whose names it follows.
    followed: Arc<Settings>,
    ticks: u32,
    /// Serves the control socket; ends with the runtime.
    server: Option<TaskHandle<()>>,
    /// Serves the admin listener, as long.
    admin: Option<TaskHandle<()>>,
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
        let desk = Arc::new(Desk {
            keeper: keeper.clone(),
            proxy: Arc::clone(&charge.proxy),
            telemetry: Arc::clone(&charge.telemetry),
            probes: prober.ledger(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            stopping: Arc::clone(&stopping),
            stop_requests: sender,
        });
        let listener = charge
            .socket
            .as_ref()
            .map(ControlSocket::listener)
            .transpose()?;
        let pages = Arc::new(Pages::new(Arc::clone(&desk)));
        let server = listener.map(|listener| runtime.spawn(serve(listener, desk)));
        let admin = charge.admin.take();
        let admin = admin.map(|listener| runtime.spawn(serve_admin(listener, pages)));
        let followed = charge.proxy.settings();
        let mut follower = Follower::new(runtime.handle().clone(), Arc::clone(&charge.directory));
        follower.follow(&followed);
        let plane = Self {
            charge,
            requests,
            signals,
            supervisor: Supervisor::from_environment(),
            phase: Phase::Running,
            stopping,
            watch: Watch::default(),
            prober,
            started: Instant::now(),
            keeper,
            follower,
            followed,
            ticks: 0,
            server,
            admin,
        };
        drop(guard);
        Ok((runtime, plane))
    }

    async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.prober.follow();
        self.open_if_ready();
        while !self.is_over() {
            tokio::select! {
                _ = ticks.tick() => self.tick(),
                wish = self.signals.next() => self.fulfil(wish),
                Some(mode) = self.requests.recv() => self.stop(mode),
            }
        }
        if let Kept::NotWritten(why) = self.keeper.keep().await {
            tracing::warn!(why, "stopping without having kept what operators set");
        }
        self.finish();
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
            self.charge.proxy.ask_workers();
        }
        // An operator's word changes no version: what is probed is looked at now and then all the same.
        if self.prober.is_behind() || self.ticks.is_multiple_of(TICKS_PER_LOOK) {
            self.prober.follow();
        }
        self.open_if_ready();
        if self.ticks.is_multiple_of(TICKS_PER_LOOK) {
            self.look();
        }
        if self.ticks.is_multiple_of(TICKS_PER_PROGRESS) && self.phase != Phase::Running {
            let sessions = self.charge.proxy.sessions();
            tracing::info!(sessions, "still stopping");
        }
    }

    /// Clients are served as soon as it is known who can serve them, or when that takes too long.
    fn open_if_ready(&mut self) {
        let proxy = &self.charge.proxy;
        let is_known = self.follower.has_asked_everything() && self.prober.has_asked_everybody();
        if proxy.is_open() || !(is_known || self.started.elapsed() >= FIRST_ANSWERS_MAX) {
            return;
        }
        if !is_known {
            tracing::warn!(
                "the first answers of name servers and probes take long: serving clients without them"
            );
        }
        proxy.open();
        let listeners = proxy.listeners().len();
        self.supervisor.ready(&format!("listeners: {listeners}"));
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
        for cluster in self.charge.proxy.clusters() {
            self.watch.look(&cluster.status(now), now);
        }
    }

    fn fulfil(&mut self, wish: Wish) {
        match (wish, self.phase) {
            (Wish::Stop, Phase::Running) => self.stop(StopMode::Graceful),
            (Wish::Stop, _) => self.stop(StopMode::Now),
            (Wish::ReopenLogs, _) => {
                tracing::info!("reopening the access log");
                self.charge.telemetry.reopen_logs();
            }
            (Wish::Reload, _) => {
                tracing::warn!(
                    "HUP ignored: the configuration cannot be reloaded yet; restart to apply changes"
                );
            }
        }
    }

    fn stop(&mut self, mode: StopMode) {
        let sessions = self.charge.proxy.sessions();
        match (mode, self.phase) {
            (StopMode::Graceful, Phase::Running) => {
                self.announce_stop(sessions);
                self.leave();
            }
            (StopMode::Now, Phase::Running | Phase::Leaving { .. } | Phase::Draining { .. }) => {
                tracing::info!(sessions, "stopping now: closing all sessions");
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
            Phase::Draining { since } => {
                let drained_for = since.elapsed();
                (drained_for >= TICK && self.charge.proxy.sessions() == 0)
                    || drained_for >= self.stop_deadline()
            }
            Phase::Closing => true,
        }
    }

    fn finish(self) {
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
        for task in [self.server, self.admin].into_iter().flatten() {
            task.abort();
        }
        drop(socket);
        tracing::info!("stopped");
    }
}

fn told(time: Duration) -> String {
    span(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Without its control socket the process goes on; an operator has signals left.
async fn serve(listener: UnixListener, desk: Arc<Desk>) {
    if let Err(error) = server::serve(listener, desk).await {
        tracing::error!(%error, "the control socket is not served");
    }
}

/// Without its admin listener the process goes on as well.
async fn serve_admin(listener: AdminListener, pages: Arc<Pages>) {
    if let Err(error) = listener.serve(pages).await {
        tracing::error!(%error, "the admin listener is not served");
    }
}
