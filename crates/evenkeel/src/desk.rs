//! Who answers on the control socket: reads the running proxy, and passes the wish to stop on to the control plane.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use evenkeel_proxy::control::operator::{EndpointAct, EndpointAnswer};
use evenkeel_proxy::control::protocol::{Answer, Fault, FaultKind, Request, StopMode};
use evenkeel_proxy::control::report::{
    ClusterReport, EndedReport, ListenerReport, Phase, RouteReport, StatusReport, StopReport,
    WorkerReport,
};
use evenkeel_proxy::control::server::{Answering, ControlHandler};
use evenkeel_proxy::probe::Ledger;
use evenkeel_proxy::settings::Layer;
use evenkeel_proxy::telemetry::Telemetry;
use evenkeel_proxy::{AskedSession, ListenerStatus, Origin, Proxy};
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use crate::admin::health::{Stage, Vitals};
use crate::keeper::Keeper;
use crate::orders;
use crate::reload::Reloads;
use crate::upgrade::Remainder;
use crate::upgrade::underway::UpgradeCounter;

/// The version that `--version` and `status` tell, with the commit where it is known.
pub(crate) const VERSION: &str = env!("EVENKEEL_VERSION");

/// What the answers are made from.
pub(crate) struct Desk {
    /// The data path.
    pub proxy: Arc<Proxy>,
    /// Its counters.
    pub telemetry: Arc<Telemetry>,
    /// The last results of probes.
    pub probes: Arc<Ledger>,
    /// When the process was ready.
    pub started: Instant,
    /// The same by the clock on the wall.
    pub started_at: SystemTime,
    /// Set by the control plane.
    pub stopping: Arc<AtomicBool>,
    /// What the process before still has.
    pub remainder: Arc<Remainder>,
    /// Who keeps what operators set.
    pub keeper: Keeper,
    /// To the control plane.
    pub stop_requests: Sender<StopMode>,
    /// The same, for upgrades.
    pub upgrades: UpgradeCounter,
    /// To whoever carries reloads out.
    pub reloads: Reloads,
    /// Tells the control plane that an operator has said something of an endpoint.
    pub ordered: Arc<Notify>,
}

impl ControlHandler for Desk {
    fn answer(&self, request: Request) -> Answering {
        match request {
            Request::Status => at_once(Ok(Answer::Status(self.status()))),
            Request::Route {
                listener,
                from,
                first_line,
                server_name,
            } => {
                let server_name = server_name.map(|name| name.to_ascii_lowercase());
                let asked = AskedSession {
                    listener: &listener,
                    client: from.map_or(Origin::Unix, |ip| SocketAddr::new(ip, 0).into()),
                    first_bytes: first_line.as_deref().unwrap_or_default().as_bytes(),
                    server_name: server_name.as_deref(),
                };
                at_once(self.route(&asked).map(Answer::Route))
            }
            Request::Endpoint { endpoint, act } => self.order(&endpoint, act),
            Request::Failback { cluster } => self.fail_back(&cluster),
            Request::Upgrade { binary, wait_ms } => {
                let upgrades = self.upgrades.clone();
                let patience = Duration::from_millis(wait_ms);
                Box::pin(async move { Ok(Answer::Upgrade(upgrades.ask(binary, patience).await)) })
            }
            Request::Reload { appearance } => {
                let reloads = self.reloads.clone();
                Box::pin(async move { reloads.ask(appearance).await.map(Answer::Reload) })
            }
            Request::Stop { mode } => at_once(self.stop(mode).map(Answer::Stop)),
        }
    }
}

fn at_once(answer: Result<Answer, Fault>) -> Answering {
    Box::pin(ready(answer))
}

impl Desk {
    /// What was ordered is in force at once; the answer says whether it is kept, and waits for the disk.
    fn order(&self, endpoint: &str, act: EndpointAct) -> Answering {
        let may = match act {
            EndpointAct::Show => Ok(()),
            _ => self.takes_orders(),
        };
        let done = may.and_then(|()| orders::order(&self.proxy, endpoint, act));
        self.ordered.notify_one();
        let keeper = self.keeper.clone();
        Box::pin(async move {
            let answer = done?;
            let kept = keeper.keep().await;
            Ok(Answer::Endpoint(EndpointAnswer { kept, ..answer }))
        })
    }

    fn fail_back(&self, cluster: &str) -> Answering {
        let may = self.takes_orders();
        let done = may.and_then(|()| orders::fail_back(&self.proxy, cluster));
        let keeper = self.keeper.clone();
        Box::pin(async move {
            let answer = done?;
            keeper.keep().await;
            Ok(Answer::Failback(answer))
        })
    }

    /// What is said between the moment at which another process is told everything and the one at which it serves would be lost.
    fn takes_orders(&self) -> Result<(), Fault> {
        if self.proxy.takes_orders() {
            return Ok(());
        }
        Err(Fault::new(
            FaultKind::Refused,
            "another process is taking this one's place and would not hear of it: say it again in a moment",
        ))
    }

    fn status(&self) -> StatusReport {
        StatusReport {
            program: VERSION.to_owned(),
            pid: std::process::id(),
            phase: self.phase(),
            uptime_ms: millis(self.started.elapsed()),
            workers: self.workers(),
            listeners: self.listeners(),
            clusters: self.clusters(),
            names: self.proxy.names().into_iter().map(Into::into).collect(),
            splice: self.proxy.spliced().into(),
            access_log: self.telemetry.access_log_counts().map(Into::into),
            state_file: self.keeper.report(),
            predecessor: self.remainder.report(),
        }
    }

    /// What the admin listener decides by whether the process is alive and ready.
    pub(crate) fn vitals(&self) -> Vitals {
        let stage = match self.phase() {
            Phase::Running if !self.proxy.is_open() => Stage::Starting,
            Phase::Running => Stage::Serving,
            Phase::Stopping => Stage::Stopping,
        };
        Vitals {
            stage,
            workers: [Layer::Transport, Layer::Application]
                .into_iter()
                .flat_map(|layer| self.proxy.worker_pulses(layer))
                .collect(),
        }
    }

    fn workers(&self) -> Vec<WorkerReport> {
        let transport = self.proxy.worker_sessions(Layer::Transport).into_iter();
        let application = self.proxy.worker_sessions(Layer::Application);
        transport
            .zip(application)
            .map(|(transport, application)| WorkerReport {
                sessions: transport + application,
            })
            .collect()
    }

    fn phase(&self) -> Phase {
        if self.stopping.load(Ordering::Relaxed) {
            Phase::Stopping
        } else {
            Phase::Running
        }
    }

    fn listeners(&self) -> Vec<ListenerReport> {
        let counters = self.telemetry.counters();
        let report = |listener: ListenerStatus| ListenerReport {
            name: listener.name.to_string(),
            address: listener.address.to_string(),
            to: listener.to.as_deref().map(str::to_owned),
            routes: listener.routes.iter().map(Into::into).collect(),
            sessions: listener.sessions,
            accepted: listener.accepted,
            has_lost_its_file: listener.has_lost_its_file,
            ended: counters
                .listener(&listener.name)
                .map(|tally| EndedReport::from(&tally.sessions))
                .unwrap_or_default(),
        };
        self.proxy.listeners().into_iter().map(report).collect()
    }

    fn clusters(&self) -> Vec<ClusterReport> {
        let (now, counters) = (self.proxy.now(), self.telemetry.counters());
        let clusters = self
            .proxy
            .clusters()
            .into_iter()
            .map(|cluster| cluster.status(now));
        clusters
            .map(|status| {
                let tally = counters.cluster(&status.name);
                let tally = tally.as_ref().map(|tally| &tally.sessions);
                ClusterReport::new(&status, tally, &self.probes, now)
            })
            .collect()
    }

    fn route(&self, asked: &AskedSession<'_>) -> Result<RouteReport, Fault> {
        let answer = self.proxy.route(asked);
        let answer = answer.ok_or_else(|| self.unknown_listener(asked.listener))?;
        let now = self.proxy.now();
        let report = match &answer.goal {
            Some(goal) => {
                let cluster = goal.cluster.status(now);
                RouteReport::new(asked.listener, &cluster, &goal.explanation, now)
            }
            None => RouteReport::nowhere(asked.listener),
        };
        Ok(RouteReport {
            phase: self.phase(),
            rule: answer.rule.as_ref().map(Into::into),
            by_first_line: answer.by_first_line,
            by_server_name: answer.by_server_name,
            ..report
        })
    }

    fn unknown_listener(&self, listener: &str) -> Fault {
        let names: Vec<String> = self
            .proxy
            .listeners()
            .iter()
            .map(|known| known.name.to_string())
            .collect();
        Fault::new(
            FaultKind::UnknownListener,
            format_args!(
                "there is no listener {listener:?}; there are: {}",
                names.join(", ")
            ),
        )
    }

    fn stop(&self, mode: StopMode) -> Result<StopReport, Fault> {
        let asked = self.stop_requests.try_send(mode);
        asked.map_err(|error| {
            Fault::new(
                FaultKind::Internal,
                format_args!("cannot stop now: {error}"),
            )
        })?;
        let process = &self.proxy.settings().process;
        let deadline = match mode {
            StopMode::Graceful => process.ready_delay + process.stop_deadline,
            StopMode::Now => Duration::ZERO,
        };
        Ok(StopReport {
            pid: std::process::id(),
            sessions: self.proxy.sessions(),
            deadline_ms: millis(deadline),
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
