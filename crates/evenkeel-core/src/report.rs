//! What a cluster tells people: its status, and a dry run that says who would get a session and why nobody else.
//!
//! Never on a session's path: these take the roster's lock and allocate.

use std::sync::Arc;

use crate::acquire::{Cluster, Request};
use crate::cluster::EndpointSpec;
use crate::condition::{Condition, SHARE_SCALE, Standing};
use crate::endpoint::Endpoint;
use crate::lease::Failure;
use crate::retry::Candidates;
use crate::roster::{Member, Roster};
use crate::snapshot::Field;
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
    /// In the order of the configuration; then those that drain.
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
    /// Used only when no other is usable.
    pub backup: bool,
    /// As configured.
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
    /// Taken out by the operator.
    Disabled,
    /// Removed by a reload; its leases are finishing.
    Draining,
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
    /// Taken out by the operator.
    Disabled,
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
    /// A backup, while another endpoint is usable.
    BackupIdle,
    /// This session has tried it, and another is left.
    AlreadyTried,
    /// It holds more than its bounded load.
    OverBoundedLoad,
}

impl Cluster {
    /// The cluster and its endpoints at `now`.
    pub fn status(&self, _now: Time) -> ClusterStatus {
        let roster = self.roster.lock();
        let snapshot = self.snapshot.load();
        let listed = snapshot.endpoints.iter().zip(&snapshot.spec.endpoints);
        let present = listed
            .zip(&roster.conditions)
            .map(|((endpoint, spec), condition)| {
                status_of(endpoint, spec, condition, state(spec, condition))
            });
        let draining = roster
            .draining
            .iter()
            .filter(|member| member.endpoint.in_flight() > 0)
            .map(draining_status);
        ClusterStatus {
            name: Arc::clone(&snapshot.spec.name),
            waiting: self.queue.len(),
            queue_max: snapshot.spec.queue_max,
            endpoints: present.chain(draining).collect(),
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

fn state(spec: &EndpointSpec, condition: &Condition) -> EndpointState {
    if spec.disabled {
        return EndpointState::Disabled;
    }
    match condition.standing() {
        Standing::Ejected { until } => EndpointState::Ejected { until },
        _ if condition.fade().is_floored() && spec.weight > Weight::ZERO => EndpointState::OnTrial,
        Standing::SlowStart { .. } => EndpointState::SlowStart,
        Standing::Up => EndpointState::Up,
    }
}

fn draining_status(member: &Member) -> EndpointStatus {
    let Member {
        endpoint,
        condition,
        spec,
    } = member;
    status_of(endpoint, spec, condition, EndpointState::Draining)
}

fn status_of(
    endpoint: &Endpoint,
    spec: &EndpointSpec,
    condition: &Condition,
    state: EndpointState,
) -> EndpointStatus {
    let totals = endpoint.totals();
    EndpointStatus {
        id: endpoint.id(),
        name: Arc::clone(endpoint.name()),
        address: endpoint.address().clone(),
        state,
        backup: spec.backup,
        weight: spec.weight,
        effective_weight: condition.fade().effective(),
        in_flight: endpoint.in_flight(),
        max_connections: spec.max_connections.map(u32::from),
        leases: totals.leases,
        established: totals.established,
        failures: totals.failures,
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
    let spec = &field.snapshot.spec.endpoints[position];
    if spec.disabled {
        Verdict::Disabled
    } else if spec.weight == Weight::ZERO {
        Verdict::WeightZero
    } else if !field.snapshot.is_usable(position) {
        verdict_on_unusable(&roster.conditions[position])
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

fn verdict_on_unusable(condition: &Condition) -> Verdict {
    match condition.standing() {
        Standing::Ejected { until } => Verdict::Ejected { until },
        _ => Verdict::BackupIdle,
    }
}
