//! What a cluster tells people: its status, and a dry run that says who would get a session and why nobody else.
//!
//! Never on a session's path: these take the roster's lock and allocate.

use std::sync::Arc;

use crate::acquire::{Cluster, Request};
use crate::cluster::{EndpointSpec, Failback};
use crate::condition::{Condition, SHARE_SCALE, Standing};
use crate::duty::Duty;
use crate::endpoint::{Endpoint, Losses};
use crate::health::Judgement;
use crate::lease::Failure;
use crate::overrides::{EndpointOverrides, Service};
use crate::retry::Candidates;
use crate::roster::{Member, Roster};
use crate::snapshot::{Field, Snapshot};
use crate::tried::Tried;
use crate::units::{Address, EndpointId, Time, Weight};

/// A cluster at one moment.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// The cluster's name.
    pub name: Arc<str>,
    /// Sessions in the wait queue.
    pub waiting: usize,
    /// The most that may wait.
    pub queue_max: usize,
    /// Who has the work back once primaries have returned.
    pub failback: Failback,
    /// Who has, or had last, the work.
    pub duty: Duty,
    /// Backups have the work, though a primary is usable: the operator is to say when that ends ([`Cluster::fail_back`]).
    pub awaits_failback: bool,
    /// In the order of the configuration; then those that a reload has removed.
    pub endpoints: Vec<EndpointStatus>,
}

/// An endpoint at one moment.
#[derive(Clone, Debug)]
pub struct EndpointStatus {
    /// Its identity.
    pub id: EndpointId,
    /// Its name.
    pub name: Arc<str>,
    /// Where it listens.
    pub address: Address,
    /// Whether and how it takes work.
    pub state: EndpointState,
    /// The part of its weight that it has come to, while it is in [`EndpointState::SlowStart`].
    pub slow_start_percent: Option<u32>,
    /// Used only when no other is usable.
    pub backup: bool,
    /// What the operator has set, with the configured values.
    pub overrides: EndpointOverrides,
    /// Whether the operator lets it work.
    pub service: Service,
    /// What probes led to; `None` where nothing probes.
    pub judgement: Option<Judgement>,
    /// As configured, or as the operator has set it.
    pub weight: Weight,
    /// Between 0 and `weight`.
    pub effective_weight: u32,
    /// Leases at this moment.
    pub in_flight: u32,
    /// The most leases at one time; `None` is no limit.
    pub max_connections: Option<u32>,
    /// Leases given out since process start.
    pub leases: u64,
    /// Leases whose first answer byte came, since process start.
    pub established: u64,
    /// Leases that failed before it, since process start.
    pub failures: u64,
    /// The same by kind, with those that ended otherwise, and ejections.
    pub losses: Losses,
    /// The last of these failures.
    pub last_failure: Option<(Failure, Time)>,
}

/// Whether and how an endpoint takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// It takes its share.
    Up,
    /// New or returned, it takes a growing part of its share.
    SlowStart,
    /// At effective weight 0: while another is above 0 and can take a session, it takes timed trials only.
    OnTrial,
    /// Out, after failures in a row.
    Ejected {
        /// When it returns.
        until: Time,
    },
    /// Has a probe, and none has ended yet: gets nothing.
    Unknown,
    /// Probes failed: gets nothing.
    Down,
    /// The operator lets it finish what runs and gives it nothing new; it is probed.
    Draining,
    /// Taken out by the operator; it is not probed.
    Disabled,
    /// Removed by a reload; its leases are finishing.
    Removed,
}

/// The answer of [`Cluster::explain`].
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Who would get the session; `None` if nobody, or if chance decides.
    pub chosen: Option<EndpointId>,
    /// Every endpoint, in the order of the configuration.
    pub verdicts: Vec<(EndpointId, Arc<str>, Verdict)>,
}

/// Why an endpoint would, or would not, get a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It would.
    Chosen,
    /// It would, as its trial.
    ChosenOnTrial,
    /// It would, at effective weight 0: none that is above it can take the session.
    ChosenFaded,
    /// It could; the text says why another is preferred, or what its chances are.
    Usable(String),
    /// Its configured weight is 0.
    WeightZero,
    /// The operator gives it nothing new.
    Draining,
    /// Taken out by the operator.
    Disabled,
    /// No probe of it has ended yet.
    Unknown,
    /// Probes found it down.
    Down,
    /// Out, after failures in a row.
    Ejected {
        /// When it returns.
        until: Time,
    },
    /// At its `max_connections`.
    Full {
        /// Leases at this moment.
        in_flight: u32,
        /// The limit.
        max: u32,
    },
    /// At effective weight 0 while another is above and can take the session: it gets one when its trial is due.
    OnTrial {
        /// When that is.
        next: Time,
    },
    /// A backup, while the primaries have the work.
    BackupIdle,
    /// A primary, while the backups have the work until the operator says otherwise.
    AwaitsFailback,
    /// This session has tried it, and another is left.
    AlreadyTried,
    /// It holds more than its bounded load.
    OverBoundedLoad,
}

impl Cluster {
    /// The cluster's name; a reload never changes it.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.snapshot.load().spec.name)
    }

    /// The cluster and its endpoints at `now`.
    pub fn status(&self, now: Time) -> ClusterStatus {
        let roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        let present =
            (0..snapshot.len()).map(|position| present_status(&roster, &snapshot, position, now));
        let removed = roster
            .removed
            .iter()
            .filter(|member| member.endpoint.in_flight() > 0)
            .map(removed_status);
        let awaits_failback =
            roster.duty == Duty::Backups && roster.outlook(&snapshot, Duty::Primaries).usable;
        ClusterStatus {
            name: Arc::clone(&snapshot.spec.name),
            waiting: self.queue.len(),
            queue_max: snapshot.spec.queue_max,
            failback: snapshot.spec.failback,
            duty: roster.duty,
            awaits_failback,
            endpoints: present.chain(removed).collect(),
        }
    }

    /// Dry run: who would get this request at `now`, and why not each other one. Changes nothing.
    pub fn explain(&self, request: &Request<'_>, now: Time) -> Explanation {
        let roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        let field = Field::new(&snapshot, request.key, request.tried);
        let chosen = roster.due_trial(&field, now).or_else(|| preview(&field));
        let verdicts = (0..field.len()).map(|position| {
            let verdict = if chosen == Some(position) {
                verdict_on_chosen(&roster, &field, position)
            } else {
                verdict(&roster, &field, position)
            };
            let endpoint = &snapshot.endpoints[position];
            (endpoint.id(), Arc::clone(endpoint.name()), verdict)
        });
        Explanation {
            verdicts: verdicts.collect(),
            chosen: chosen.map(|position| snapshot.endpoints[position].id()),
        }
    }

    /// What is left for a session that has tried `tried`, `repeats` of its attempts having been repetitions.
    pub fn candidates(&self, tried: &Tried, repeats: u32) -> Candidates {
        // Not while the work passes from primaries to backups, when for a moment nobody is usable.
        let _settled = self.roster.lock();
        let snapshot = self.snapshot.load();
        let usable = |&position: &usize| snapshot.is_usable(position);
        let mut positions = (0..snapshot.len()).filter(usable);
        if !snapshot.is_any_usable() {
            Candidates::Nobody
        } else if positions.any(|position| !tried.contains(snapshot.endpoints[position].id())) {
            Candidates::Another
        } else {
            Candidates::TriedOnly { repeats }
        }
    }
}

/// As [`Cluster::acquire`] chooses, apart from trials.
fn preview(field: &Field<'_>) -> Option<usize> {
    let balancer = &field.snapshot.balancer;
    if field.is_any_open() {
        balancer.preview(field)
    } else {
        balancer.preview_fallback(&field.fallback())
    }
}

/// What is strongest of all that can be said: the operator's word, then probes, then what sessions found.
fn state(service: Service, spec: &EndpointSpec, condition: &Condition) -> EndpointState {
    match (service, condition.health().judgement()) {
        (Service::Disabled, _) => EndpointState::Disabled,
        (Service::Draining, _) => EndpointState::Draining,
        (Service::InService, Some(Judgement::Down)) => EndpointState::Down,
        (Service::InService, Some(Judgement::Unknown)) => EndpointState::Unknown,
        (Service::InService, Some(Judgement::Up) | None) => state_by_sessions(spec, condition),
    }
}

fn state_by_sessions(spec: &EndpointSpec, condition: &Condition) -> EndpointState {
    match condition.standing() {
        Standing::Ejected { until } => EndpointState::Ejected { until },
        _ if condition.fade().is_floored() && spec.weight > Weight::ZERO => EndpointState::OnTrial,
        Standing::SlowStart { .. } => EndpointState::SlowStart,
        Standing::Up => EndpointState::Up,
    }
}

fn present_status(
    roster: &Roster,
    snapshot: &Snapshot,
    position: usize,
    now: Time,
) -> EndpointStatus {
    let spec = &snapshot.spec.endpoints[position];
    let condition = &roster.conditions[position];
    let service = snapshot.service(position);
    let status = status_of(&snapshot.endpoints[position], spec, condition);
    let state = state(service, spec, condition);
    let percent = || condition.percent(snapshot.spec.slow_start, now);
    EndpointStatus {
        state,
        slow_start_percent: (state == EndpointState::SlowStart).then(percent),
        overrides: snapshot.overrides[position],
        service,
        ..status
    }
}

fn removed_status(member: &Member) -> EndpointStatus {
    status_of(&member.endpoint, &member.spec, &member.condition)
}

/// Of an endpoint that is in no present snapshot; for another one, the rest is filled in.
fn status_of(endpoint: &Endpoint, spec: &EndpointSpec, condition: &Condition) -> EndpointStatus {
    let totals = endpoint.totals();
    EndpointStatus {
        id: endpoint.id(),
        name: Arc::clone(endpoint.name()),
        address: endpoint.address().clone(),
        state: EndpointState::Removed,
        slow_start_percent: None,
        backup: spec.backup,
        overrides: EndpointOverrides::default(),
        service: Service::Draining,
        judgement: condition.health().judgement(),
        weight: spec.weight,
        effective_weight: condition.fade().effective(),
        in_flight: endpoint.in_flight(),
        max_connections: spec.max_connections.map(u32::from),
        leases: totals.leases,
        established: totals.established,
        failures: totals.losses.failures(),
        losses: totals.losses,
        last_failure: condition.last_failure(),
    }
}

/// Where all are at effective weight 0 each has a share again, so that the share alone does not tell.
fn verdict_on_chosen(roster: &Roster, field: &Field<'_>, position: usize) -> Verdict {
    let is_above = !roster.conditions[position].fade().is_floored();
    if is_above {
        Verdict::Chosen
    } else if field.share(position) == 0 && field.is_any_open() {
        Verdict::ChosenOnTrial
    } else {
        Verdict::ChosenFaded
    }
}

fn verdict(roster: &Roster, field: &Field<'_>, position: usize) -> Verdict {
    let snapshot = field.snapshot;
    if snapshot.service(position) == Service::Disabled {
        Verdict::Disabled
    } else if snapshot.service(position) == Service::Draining {
        Verdict::Draining
    } else if snapshot.spec.endpoints[position].weight == Weight::ZERO {
        Verdict::WeightZero
    } else if !snapshot.is_usable(position) {
        verdict_on_unusable(snapshot, &roster.conditions[position], position)
    } else if field.share(position) == 0 && field.is_any_open() {
        Verdict::OnTrial {
            next: roster.conditions[position].fade().next_trial(),
        }
    } else {
        verdict_on_usable(field, position)
    }
}

fn verdict_on_usable(field: &Field<'_>, position: usize) -> Verdict {
    if field.is_avoided(position) {
        Verdict::AlreadyTried
    } else if !field.has_room(position) {
        Verdict::Full {
            in_flight: field.in_flight(position),
            max: field.snapshot.limit(position),
        }
    } else if field.share(position) == 0 {
        verdict_on_fallback(&field.fallback(), position)
    } else if field.snapshot.balancer.is_over_bound(field, position) {
        Verdict::OverBoundedLoad
    } else {
        let reason = field.snapshot.balancer.reason(field, position);
        let share = f64::from(field.share(position)) / f64::from(SHARE_SCALE);
        Verdict::Usable(format!("worth {share}; {reason}"))
    }
}

fn verdict_on_fallback(field: &Field<'_>, position: usize) -> Verdict {
    let reason = field.snapshot.balancer.fallback_reason(field, position);
    Verdict::Usable(format!(
        "at effective weight 0, and no other can take the session; {reason}"
    ))
}

fn verdict_on_unusable(snapshot: &Snapshot, condition: &Condition, position: usize) -> Verdict {
    match (condition.health().judgement(), condition.standing()) {
        (Some(Judgement::Down), _) => Verdict::Down,
        (Some(Judgement::Unknown), _) => Verdict::Unknown,
        (_, Standing::Ejected { until }) => Verdict::Ejected { until },
        _ if snapshot.spec.endpoints[position].backup => Verdict::BackupIdle,
        _ => Verdict::AwaitsFailback,
    }
}
