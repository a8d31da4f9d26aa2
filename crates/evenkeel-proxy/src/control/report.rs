//! What the control socket tells: plain values, the same in `--json`, on the socket and under the tables.
//!
//! Also how they are made from the core's own status and explanation. How a table looks is the program's business.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::units::Time;
use evenkeel_core::{ClusterStatus, EndpointState, EndpointStatus, Explanation, Failure, Verdict};
use serde::{Deserialize, Serialize};

use super::operator::{OverridesReport, duty_code, failback_code, judgement_code};
use super::upgrade_report::PredecessorReport;
use crate::SpliceStatus;
use crate::discovery::NameStatus;
use crate::probe::{Finding, Ledger, Verdict as ProbeVerdict};
use crate::settings::RouteSettings;
use crate::telemetry::access_log::AccessLogCounts;
use crate::telemetry::counters::Tally;
use crate::telemetry::reason::Reason;

/// A running process as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The program's version.
    pub program: String,
    /// Its process id.
    pub pid: u32,
    /// Whether it still accepts.
    pub phase: Phase,
    /// Milliseconds since its start.
    pub uptime_ms: u64,
    /// One for each that is configured: it has a thread on either layer.
    pub workers: Vec<WorkerReport>,
    /// In the order of the file.
    pub listeners: Vec<ListenerReport>,
    /// In the order of the file.
    pub clusters: Vec<ClusterReport>,
    /// Names of endpoints, and what they lead to.
    #[serde(default)]
    pub names: Vec<NameReport>,
    /// What went through pipes, and what could not.
    pub splice: SpliceReport,
    /// `None` where it is off.
    pub access_log: Option<AccessLogReport>,
    /// `None` where there is none.
    #[serde(default)]
    pub state_file: Option<StateFileReport>,
    /// The process that this one has followed, while it lets its sessions finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<PredecessorReport>,
}

/// Whether a process accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It does.
    Running,
    /// It no longer does; sessions are finishing.
    Stopping,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerReport {
    /// Its name.
    pub name: String,
    /// Where it really listens.
    pub address: String,
    /// The cluster its sessions go to unless a route says otherwise; `None` is nowhere.
    pub to: Option<String>,
    /// Where they go by what is known of them.
    #[serde(default)]
    pub routes: Vec<RuleReport>,
    /// Sessions now.
    pub sessions: u64,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Whether nobody can connect, because the file of its Unix socket was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_lost_its_file: bool,
    /// What ended so far.
    pub ended: EndedReport,
}

/// Sessions that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedReport {
    /// How many ended for which reason; reasons that never occurred are left out.
    pub by_reason: BTreeMap<String, u64>,
    /// Bytes from clients to endpoints.
    pub bytes_up: u64,
    /// Bytes from endpoints to clients.
    pub bytes_down: u64,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterReport {
    /// Its name.
    pub name: String,
    /// Sessions that wait for a free slot.
    pub waiting: usize,
    /// The most that may wait.
    pub queue_max: usize,
    /// `auto` or `manual`.
    pub failback: String,
    /// `primaries` or `backups`: who has, or had last, the work.
    pub on_duty: String,
    /// A primary is usable, and the backups keep the work until `evenkeel failback`.
    pub awaits_failback: bool,
    /// What ended so far.
    pub ended: EndedReport,
    /// In the order of the file; then those that a reload has removed.
    pub endpoints: Vec<EndpointReport>,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointReport {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// `up`, `slow-start`, `on-trial`, `ejected`, `unknown`, `down`, `draining`, `disabled` or `removed`.
    pub state: String,
    /// `unknown`, `up` or `down`, as probes say; `None` where nothing probes.
    pub health: Option<String>,
    /// How long an ejection still lasts.
    pub ejected_for_ms: Option<u64>,
    /// The part of its weight that an endpoint in slow start has come to.
    #[serde(default)]
    pub slow_start_percent: Option<u32>,
    /// Used only when no other is usable.
    pub backup: bool,
    /// As configured, or as an operator has set it.
    pub weight: u32,
    /// What an operator has set.
    #[serde(default)]
    pub overrides: OverridesReport,
    /// As failures and successes have made it.
    pub effective_weight: u32,
    /// Sessions now.
    pub in_flight: u32,
    /// The most sessions at one time.
    pub max_connections: Option<u32>,
    /// Sessions put onto it since the start.
    pub sessions: u64,
    /// Those of them that it answered.
    pub established: u64,
    /// Those of them that failed before an answer.
    pub failures: u64,
    /// The last of the failures.
    pub last_failure: Option<FailureReport>,
    /// How its last probe went; `None` where nothing probes it, or the first probe has not ended.
    pub probe: Option<ProbeReport>,
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// `passed`, `failed`, or `not_asked` when this machine could not ask.
    pub result: String,
    /// Why it did not pass.
    pub reason: Option<String>,
    /// From the connecting to the verdict.
    pub took_us: u64,
    /// How long ago the verdict was.
    pub age_ms: u64,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureReport {
    /// `refused`, `unreachable`, `connect_timeout`, `reset`, `closed` or `first_byte_timeout`.
    pub kind: String,
    /// How long ago.
    pub age_ms: u64,
}

/// A name that stands for endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameReport {
    /// What is asked: a host and a port, or `srv` and a service.
    pub name: String,
    /// What it leads to.
    pub addresses: Vec<String>,
    /// How long ago the last good answer came; `None` if there was none.
    pub resolved_ago_ms: Option<u64>,
    /// What is wrong with the last answer. What the name led to before stays.
    pub trouble: Option<String>,
    /// For how long something has been wrong.
    pub trouble_for_ms: Option<u64>,
}

/// A worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Sessions now.
    pub sessions: usize,
}

/// Bytes that were spliced, and what stood in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpliceReport {
    /// Bytes that went through pipes since the start.
    pub bytes: u64,
    /// Pipes now.
    pub pipes: usize,
    /// The most there may be.
    pub pipes_max: usize,
    /// How often bytes were copied because all pipes were in use.
    pub over_budget: u64,
    /// How often bytes were copied because the kernel refused a pipe.
    pub refused: u64,
    /// Pipes that the kernel made smaller than asked for.
    pub smaller: u64,
}

/// Lines of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLogReport {
    /// Written since the start.
    pub written: u64,
    /// Lost since the start.
    pub dropped: u64,
}

/// A rule of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// The name that the client asks for, or a pattern for it.
    pub sni: String,
    /// The cluster that it goes to.
    pub to: String,
}

impl From<&RouteSettings> for RuleReport {
    fn from(rule: &RouteSettings) -> Self {
        Self {
            sni: rule.server_name.to_string(),
            to: rule.to.to_string(),
        }
    }
}

/// The file in which overrides outlive the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFileReport {
    /// Where it is.
    pub path: String,
    /// How often it was written since the start.
    pub written: u64,
    /// How often it could not be.
    pub failed: u64,
}

/// Who would get a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReport {
    /// The listener asked about.
    pub listener: String,
    /// The cluster it goes to; `None` if no route is for it.
    pub cluster: Option<String>,
    /// The rule that leads there; `None` if it is the listener's `to`.
    #[serde(default)]
    pub rule: Option<RuleReport>,
    /// Whether connections are accepted at all.
    pub phase: Phase,
    /// Whether the cluster hashes what a client sends first.
    pub by_first_line: bool,
    /// Whether the listener goes by the name that a TLS client asks for.
    #[serde(default)]
    pub by_server_name: bool,
    /// Sessions that wait for a free slot.
    pub waiting: usize,
    /// The most that may wait.
    pub queue_max: usize,
    /// The endpoint's name; `None` when no endpoint would get it, or when chance decides.
    pub chosen: Option<String>,
    /// Every endpoint of the cluster.
    pub verdicts: Vec<VerdictReport>,
}

/// Why an endpoint would, or would not, get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictReport {
    /// The endpoint's name.
    pub endpoint: String,
    /// For programs.
    pub verdict: String,
    /// For people.
    pub why: String,
}

/// A process that is going to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// Its process id, to wait for.
    pub pid: u32,
    /// Sessions that still run.
    pub sessions: u64,
    /// When it ends at the latest.
    pub deadline_ms: u64,
}

impl From<SpliceStatus> for SpliceReport {
    fn from(status: SpliceStatus) -> Self {
        Self {
            bytes: status.bytes,
            pipes: status.pipes,
            pipes_max: status.pipes_max,
            over_budget: status.over_budget,
            refused: status.refused,
            smaller: status.smaller,
        }
    }
}

impl From<NameStatus> for NameReport {
    fn from(status: NameStatus) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: status.question.to_string(),
            addresses: status.addresses.iter().map(ToString::to_string).collect(),
            resolved_ago_ms: status.resolved_ago.map(millis),
            trouble: status.trouble,
            trouble_for_ms: status.trouble_for.map(millis),
        }
    }
}

impl From<AccessLogCounts> for AccessLogReport {
    fn from(counts: AccessLogCounts) -> Self {
        Self {
            written: counts.written,
            dropped: counts.dropped,
        }
    }
}

impl From<&Tally> for EndedReport {
    fn from(tally: &Tally) -> Self {
        let counts = Reason::ALL
            .iter()
            .map(|reason| (reason.code().to_owned(), tally.ended(*reason)));
        Self {
            by_reason: counts.filter(|(_, count)| *count > 0).collect(),
            bytes_up: tally.bytes_up(),
            bytes_down: tally.bytes_down(),
        }
    }
}

impl ClusterReport {
    /// From what the core and the counters say of a cluster.
    pub fn new(status: &ClusterStatus, tally: Option<&Tally>, probes: &Ledger, now: Time) -> Self {
        let endpoints = status.endpoints.iter();
        Self {
            name: status.name.to_string(),
            waiting: status.waiting,
            queue_max: status.queue_max,
            failback: failback_code(status.failback).to_owned(),
            on_duty: duty_code(status.duty).to_owned(),
            awaits_failback: status.awaits_failback,
            ended: tally.map(EndedReport::from).unwrap_or_default(),
            endpoints: endpoints
                .map(|endpoint| EndpointReport {
                    probe: probes.last(endpoint.id).as_deref().map(Into::into),
                    ..EndpointReport::new(endpoint, now)
                })
                .collect(),
        }
    }
}

impl EndpointReport {
    /// From what the core says of it.
    pub fn new(status: &EndpointStatus, now: Time) -> Self {
        Self {
            name: status.name.to_string(),
            address: status.address.to_string(),
            state: state_code(status.state).to_owned(),
            health: status
                .judgement
                .map(|judgement| judgement_code(judgement).to_owned()),
            ejected_for_ms: match status.state {
                EndpointState::Ejected { until } => Some(millis_between(now, until)),
                _ => None,
            },
            slow_start_percent: status.slow_start_percent,
            backup: status.backup,
            weight: status.weight.get(),
            overrides: OverridesReport::from(&status.overrides),
            effective_weight: status.effective_weight,
            in_flight: status.in_flight,
            max_connections: status.max_connections,
            sessions: status.leases,
            established: status.established,
            failures: status.failures,
            last_failure: status.last_failure.map(|(failure, at)| FailureReport {
                kind: failure_code(failure).to_owned(),
                age_ms: millis_between(at, now),
            }),
            probe: None,
        }
    }
}

impl From<&Finding> for ProbeReport {
    fn from(finding: &Finding) -> Self {
        Self {
            result: verdict_code(&finding.verdict).to_owned(),
            reason: finding.verdict.reason().map(ToString::to_string),
            took_us: u64::try_from(finding.took.as_micros()).unwrap_or(u64::MAX),
            age_ms: u64::try_from(finding.at.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// How a probe went, in one word.
pub fn verdict_code(verdict: &ProbeVerdict) -> &'static str {
    match verdict {
        ProbeVerdict::Passed => "passed",
        ProbeVerdict::Failed(_) => "failed",
        ProbeVerdict::NotAsked(_) => "not_asked",
    }
}

impl RouteReport {
    /// As if connections were accepted, and no route were for this one.
    pub fn nowhere(listener: &str) -> Self {
        Self {
            listener: listener.to_owned(),
            cluster: None,
            rule: None,
            phase: Phase::Running,
            by_first_line: false,
            by_server_name: false,
            waiting: 0,
            queue_max: 0,
            chosen: None,
            verdicts: Vec::new(),
        }
    }

    /// From the core's explanation, as if connections were accepted and nothing of a client were hashed.
    pub fn new(
        listener: &str,
        cluster: &ClusterStatus,
        explanation: &Explanation,
        now: Time,
    ) -> Self {
        let name_of = |id| {
            let verdicts = explanation.verdicts.iter();
            let mut named = verdicts.filter(|(endpoint, _, _)| *endpoint == id);
            named.next().map(|(_, name, _)| name.to_string())
        };
        let verdicts = explanation.verdicts.iter();
        Self {
            cluster: Some(cluster.name.to_string()),
            waiting: cluster.waiting,
            queue_max: cluster.queue_max,
            chosen: explanation.chosen.and_then(name_of),
            verdicts: verdicts
                .map(|(_, name, verdict)| VerdictReport::new(name, verdict, now))
                .collect(),
            ..Self::nowhere(listener)
        }
    }
}

impl VerdictReport {
    fn new(endpoint: &str, verdict: &Verdict, now: Time) -> Self {
        let (code, why) = describe(verdict, now);
        Self {
            endpoint: endpoint.to_owned(),
            verdict: code.to_owned(),
            why,
        }
    }
}

/// A verdict's code, and the words for it.
fn describe(verdict: &Verdict, now: Time) -> (&'static str, String) {
    match verdict {
        Verdict::Chosen => ("chosen", "gets it".to_owned()),
        Verdict::ChosenOnTrial => ("chosen", "gets it: its trial is due".to_owned()),
        Verdict::ChosenFaded => (
            "chosen",
            "gets it, though its effective weight is 0: none above it can take it".to_owned(),
        ),
        Verdict::Usable(why) => ("usable", why.clone()),
        Verdict::WeightZero => (
            "weight-zero",
            "its weight is 0: it gets no new work".to_owned(),
        ),
        Verdict::Disabled => ("disabled", "an operator took it out".to_owned()),
        Verdict::Draining => (
            "draining",
            "an operator lets it finish what runs, and nothing more".to_owned(),
        ),
        Verdict::Unknown => ("unknown", "no probe of it has passed yet".to_owned()),
        Verdict::Down => ("down", "its probes fail".to_owned()),
        Verdict::Ejected { until } => (
            "ejected",
            format!(
                "failed too often in a row; out for another {}",
                seconds_between(now, *until)
            ),
        ),
        Verdict::Full { in_flight, max } => {
            ("full", format!("has {in_flight} of at most {max} sessions"))
        }
        Verdict::OnTrial { next } => (
            "on-trial",
            format!(
                "its effective weight is 0; next trial in {}",
                seconds_between(now, *next)
            ),
        ),
        Verdict::BackupIdle => (
            "backup-idle",
            "a backup: used only when no primary is usable".to_owned(),
        ),
        Verdict::AwaitsFailback => (
            "awaits-failback",
            "the backups have taken over, and keep the work until an operator gives it back"
                .to_owned(),
        ),
        Verdict::AlreadyTried => ("already-tried", "was tried before".to_owned()),
        Verdict::OverBoundedLoad => (
            "over-bounded-load",
            "holds more than its bounded share".to_owned(),
        ),
    }
}

/// Every word that [`state_code`] has.
pub const STATE_CODES: [&str; 9] = [
    "up",
    "slow-start",
    "on-trial",
    "ejected",
    "unknown",
    "down",
    "disabled",
    "draining",
    "removed",
];

/// An endpoint's state in one word.
pub fn state_code(state: EndpointState) -> &'static str {
    match state {
        EndpointState::Up => "up",
        EndpointState::SlowStart => "slow-start",
        EndpointState::OnTrial => "on-trial",
        EndpointState::Ejected { .. } => "ejected",
        EndpointState::Unknown => "unknown",
        EndpointState::Down => "down",
        EndpointState::Disabled => "disabled",
        EndpointState::Draining => "draining",
        EndpointState::Removed => "removed",
    }
}

/// A failure in one word.
pub fn failure_code(failure: Failure) -> &'static str {
    match failure {
        Failure::Refused => "refused",
        Failure::Unreachable => "unreachable",
        Failure::ConnectTimeout => "connect_timeout",
        Failure::Reset => "reset",
        Failure::Closed => "closed",
        Failure::FirstByteTimeout => "first_byte_timeout",
    }
}

fn millis_between(earlier: Time, later: Time) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}

fn seconds_between(earlier: Time, later: Time) -> String {
    format!("{:.1}s", later.since(earlier).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_core::Losses;
    use evenkeel_core::units::{Address, EndpointId, Weight};
    use evenkeel_core::{Duty, EndpointOverrides, Failback, Service};

    use super::*;

    fn ejected() -> EndpointStatus {
        EndpointStatus {
            id: EndpointId(1),
            name: Arc::from("db1"),
            address: Address::Ip("10.0.0.11:3306".parse().unwrap()),
            state: EndpointState::Ejected {
                until: Time::from_micros(9_500_000),
            },
            slow_start_percent: None,
            backup: false,
            overrides: EndpointOverrides::default(),
            service: Service::InService,
            judgement: None,
            weight: Weight::new(3).unwrap(),
            effective_weight: 0,
            in_flight: 2,
            max_connections: Some(8),
            leases: 100,
            established: 90,
            failures: 10,
            losses: Losses::default(),
            last_failure: Some((Failure::Refused, Time::from_micros(3_000_000))),
        }
    }

    /// Whoever counts endpoints by state relies on the list: a new state has to be in it, and in this test.
    #[test]
    fn the_list_of_states_has_them_all() {
        let place = |state| match state {
            EndpointState::Up => 0,
            EndpointState::SlowStart => 1,
            EndpointState::OnTrial => 2,
            EndpointState::Ejected { .. } => 3,
            EndpointState::Unknown => 4,
            EndpointState::Down => 5,
            EndpointState::Disabled => 6,
            EndpointState::Draining => 7,
            EndpointState::Removed => 8,
        };
        let until = Time::ZERO;
        for state in [
            EndpointState::Up,
            EndpointState::SlowStart,
            EndpointState::OnTrial,
            EndpointState::Ejected { until },
            EndpointState::Unknown,
            EndpointState::Down,
            EndpointState::Disabled,
            EndpointState::Draining,
            EndpointState::Removed,
        ] {
            assert_eq!(STATE_CODES[place(state)], state_code(state));
        }
    }

    /// Moments become spans that a reader needs no clock for.
    #[test]
    fn moments_are_told_as_spans() {
        let report = EndpointReport::new(&ejected(), Time::from_micros(5_000_000));

        assert_eq!(report.state, "ejected");
        assert_eq!(report.ejected_for_ms, Some(4_500));
        let last = report.last_failure.unwrap();
        assert_eq!((last.kind.as_str(), last.age_ms), ("refused", 2_000));
    }

    /// The one who gets it is named, and everyone has a reason in words.
    #[test]
    fn a_route_names_the_chosen_and_explains_the_others() {
        let full = Verdict::Full {
            in_flight: 8,
            max: 8,
        };
        let explanation = Explanation {
            chosen: Some(EndpointId(2)),
            verdicts: vec![
                (EndpointId(1), Arc::from("db1"), full),
                (EndpointId(2), Arc::from("db2"), Verdict::Chosen),
            ],
        };

        let cluster = ClusterStatus {
            name: Arc::from("databases"),
            waiting: 0,
            queue_max: 0,
            failback: Failback::Auto,
            duty: Duty::Primaries,
            awaits_failback: false,
            endpoints: Vec::new(),
        };
        let report = RouteReport::new("mysql", &cluster, &explanation, Time::ZERO);

        assert_eq!(report.chosen.as_deref(), Some("db2"));
        assert_eq!(report.verdicts[0].verdict, "full");
        assert_eq!(report.verdicts[0].why, "has 8 of at most 8 sessions");
    }
}
