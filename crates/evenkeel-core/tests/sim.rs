//! Seeded simulation of the whole core: sessions, failures, recoveries, probes, overrides, reloads, queueing, time; one
//! thread, no clock.
//!
//! A run is a few hundred random steps in a small world, with probes and an operator in it. After each one, a shadow model that knows only what sessions
//! hold and who waits is compared with what the cluster says of itself. At the end all endpoints are repaired, and
//! everybody must come back in bounded time. `EVENKEEL_SIM_SEED=42 cargo test -p evenkeel-core sim` repeats one run.
//!
//! That it bites is a test of its own: every [`Fault`] that can be put into the core is found.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;

use crate::fault::{Fault, inject};
use crate::units::{Address, EndpointId, HashKey, Time, Weight};
use crate::{
    Acquired, Awaited, Balance, Cluster, ClusterSpec, ClusterStatus, Duty, EjectionPolicy,
    EndpointSpec, EndpointState, EndpointStatus, Failback, FailbackRefusal, Failure, HashPolicy,
    HealthChange, HealthPolicy, Judgement, Lease, Outcome, Override, ProbeResult, Refusal, Request,
    Service, Ticket, TrialPolicy, Tried, Waiter, WhenNone,
};

macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(Violation(format!($($what)+)));
        }
    };
}

#[path = "sim/checks.rs"]
mod checks;
#[path = "sim/outside.rs"]
mod outside;
#[path = "sim/specs.rs"]
mod specs;

use checks::{is_in_service, is_room_for};
use outside::{Orders, Run, is_usable};
use specs::{RISE_MAX, change_spec, random_spec};

const SEEDS: u64 = 120;
const STEPS: usize = 600;

/// Many runs, in the order of their seeds on two threads.
#[test]
fn the_core_keeps_its_promises() {
    if let Some(seed) = seed_to_replay() {
        assert_eq!(run(seed), Ok(()));
        return;
    }
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                for seed in (half..SEEDS).step_by(2) {
                    if let Err(Violation(what)) = run(seed) {
                        panic!("EVENKEEL_SIM_SEED={seed} finds: {what}");
                    }
                }
            });
        }
    });
}

/// The same seed is the same run, or a seed would be worth nothing.
#[test]
fn a_run_is_repeatable() {
    let history = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.act_many().unwrap();
        let totals = simulation.status().endpoints.into_iter();
        totals
            .map(|endpoint| (endpoint.leases, endpoint.failures))
            .collect::<Vec<_>>()
    };
    assert_eq!(history(3), history(3));
}

fn seed_to_replay() -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "replaying a seed is asked for from outside"
    )]
    let seed = std::env::var("EVENKEEL_SIM_SEED").ok()?;
    Some(seed.parse().expect("EVENKEEL_SIM_SEED is a number"))
}

/// The simulation with one fault in the core, on as many seeds as it takes.
fn finds(fault: Fault) {
    inject(Some(fault));
    let found = (0..SEEDS).find_map(|seed| run(seed).err());
    inject(None);
    assert!(found.is_some(), "{fault:?} goes unnoticed");
}

macro_rules! finds {
    ($($name:ident: $fault:ident,)*) => {
        $(#[test]
        fn $name() {
            finds(Fault::$fault);
        })*
    };
}

finds! {
    finds_a_slot_that_leaks: SlotLeaks,
    finds_a_slot_that_is_freed_twice: SlotFreedTwice,
    finds_a_limit_that_is_passed: LimitIgnored,
    finds_a_lost_wake_up: WakeUpLost,
    finds_a_queue_that_serves_the_last_first: LastInFirstOut,
    finds_a_waiter_that_cannot_leave: LeaverStays,
    finds_an_ejection_without_end: EjectedForEver,
    finds_the_last_endpoint_ejected: LastOneEjected,
    finds_a_floored_endpoint_that_never_returns: NoTrials,
    finds_weight_that_decides_availability: WeightDecidesAvailability,
    finds_a_queue_beside_an_endpoint_at_effective_weight_zero: WeightKeepsOut,
    finds_a_key_that_never_comes_home: KeysFadeOneByOne,
    finds_a_reload_that_forgets: ReloadForgets,
    finds_a_weight_beyond_the_configured_one: WeightOvershoots,
    finds_a_disabled_endpoint_that_is_used: DisabledUsed,
    finds_an_endpoint_that_is_used_though_it_is_down: DownUsed,
    finds_an_endpoint_that_is_used_before_it_passed_a_probe: UnknownUsed,
    finds_an_endpoint_that_no_probe_brings_back: DownForEver,
    finds_probes_that_take_out_what_works: NewProbesTakeOut,
    finds_overrides_that_a_reload_forgets: OverridesForgotten,
    finds_overrides_that_outlive_the_file: OverridesOutliveTheFile,
    finds_primaries_that_take_the_work_back_unasked: FailsBackByItself,
    finds_work_that_nobody_takes_over: DutyNeverPassesOn,
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Violation(String);

type Checked = Result<(), Violation>;

fn run(seed: u64) -> Checked {
    let mut simulation = Simulation::new(seed);
    simulation.act_many()?;
    simulation.recover_one_key()?;
    simulation.recover()?;
    simulation.end()
}

/// The world: one cluster, its endpoints dead or alive, the sessions in it.
struct Simulation {
    rng: Rng,
    now: Time,
    spec: ClusterSpec,
    cluster: Arc<Cluster>,
    /// Names of endpoints that fail every session.
    dead: Vec<Arc<str>>,
    sessions: Vec<Session>,
    /// In the order in which they came.
    line: Vec<Waiting>,
    grants: Arc<Grants>,
    waiter: Arc<dyn Waiter>,
    next_token: u64,
    /// In this step; also if the operator changed something instead.
    has_reloaded: bool,
    /// In this step.
    has_failed_back: bool,
    orders: BTreeMap<Arc<str>, Orders>,
    runs: BTreeMap<EndpointId, Run>,
    shadow: BTreeMap<EndpointId, Shadow>,
}

/// A session that holds a lease.
struct Session {
    lease: Lease,
    established: bool,
    tried: Tried,
}

/// A session that waits.
struct Waiting {
    token: u64,
    tried: Tried,
    ticket: Ticket,
}

/// What must be true of an endpoint by what the sessions did.
#[derive(Clone, Debug, Default)]
struct Shadow {
    held: u32,
    leases: u64,
    effective: u32,
    last_trial: Option<Time>,
}

#[derive(Default)]
struct Grants(Mutex<Vec<(u64, Lease)>>);

impl Waiter for Grants {
    fn grant(&self, token: u64, lease: Lease) {
        self.0.lock().push((token, lease));
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// What happens

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let spec = random_spec(&mut rng, seed);
        let grants = Arc::new(Grants::default());
        let mut simulation = Self {
            now: Time::ZERO,
            cluster: Cluster::new(spec.clone(), rng.u64(..), Time::ZERO),
            spec,
            dead: Vec::new(),
            sessions: Vec::new(),
            line: Vec::new(),
            waiter: Arc::<Grants>::clone(&grants),
            grants,
            next_token: 0,
            has_reloaded: false,
            has_failed_back: false,
            orders: BTreeMap::new(),
            runs: BTreeMap::new(),
            shadow: BTreeMap::new(),
            rng,
        };
        simulation.adopt_weights();
        simulation
    }

    fn act_many(&mut self) -> Checked {
        for step in 0..STEPS {
            let before = self.status();
            let acted = self.act(&before).and_then(|()| self.check(&before));
            acted.map_err(|Violation(what)| Violation(format!("step {step}: {what}")))?;
        }
        Ok(())
    }

    fn act(&mut self, before: &ClusterStatus) -> Checked {
        match self.rng.u32(..130) {
            0..40 => self.arrive(Tried::default(), before),
            40..70 => self.progress(before),
            70..75 => self.abandon(before),
            75..80 => self.leave(),
            80..91 => {
                let moment = Duration::from_millis(self.rng.u64(1..500));
                self.pass_time(moment, before)
            }
            91..93 => {
                let long = Duration::from_secs(self.rng.u64(1..30));
                self.pass_time(long, before)
            }
            93..97 => self.kill_or_repair(),
            97..98 => self.reload_the_same(before),
            98..100 => self.reload(before),
            100..103 => self.override_one(before),
            103..104 => self.fail_back(before),
            _ => self.probe_one(before),
        }
    }

    fn arrive(&mut self, tried: Tried, before: &ClusterStatus) -> Checked {
        let key = HashKey(self.rng.u64(..));
        self.arrive_with(key, tried, before)
    }

    fn arrive_with(&mut self, key: HashKey, tried: Tried, before: &ClusterStatus) -> Checked {
        let token = self.next_token;
        self.next_token += 1;
        let request = Request {
            key: Some(key),
            tried: &tried,
            waiter: (self.rng.u32(..10) > 0).then_some((&self.waiter, token)),
        };
        let may_wait = request.waiter.is_some();
        let acquired = self.cluster.acquire(&request, self.now, &mut self.rng);
        self.collect_grants(before)?;
        match acquired {
            Acquired::Lease(lease) => self.begin(lease, tried, before),
            Acquired::Wait(ticket) => {
                ensure!(may_wait, "waits without a waiter");
                self.line.push(Waiting {
                    token,
                    tried,
                    ticket,
                });
                Ok(())
            }
            Acquired::Refused(refusal) => {
                let is_room = is_room_for(&tried, &self.roles(&self.status()));
                ensure!(!is_room, "{refusal:?} beside a free slot");
                self.check_refusal(refusal, may_wait, before)
            }
        }
    }

    /// A session holds a lease from here on.
    fn begin(&mut self, lease: Lease, tried: Tried, before: &ClusterStatus) -> Checked {
        self.check_lease(&lease, &tried, before)?;
        let shadow = self.shadow.entry(lease.endpoint()).or_default();
        shadow.held += 1;
        shadow.leases += 1;
        self.sessions.push(Session {
            lease,
            established: false,
            tried,
        });
        Ok(())
    }

    /// One session goes on: it fails, is answered for the first time, or ends.
    fn progress(&mut self, before: &ClusterStatus) -> Checked {
        let Some(index) = self.any_session() else {
            return Ok(());
        };
        let session = &mut self.sessions[index];
        if session.established {
            self.end_session(index, Outcome::Completed, before)
        } else if self.dead.contains(session.lease.name()) {
            self.fail(index, before)
        } else {
            session.established = true;
            session.lease.established(self.now);
            self.credit(index);
            self.collect_grants(before)
        }
    }

    fn credit(&mut self, index: usize) {
        let id = self.sessions[index].lease.endpoint();
        if let Some(weight) = self.weight_of(id) {
            let shadow = self.shadow.entry(id).or_default();
            shadow.effective = (shadow.effective + 1).min(weight);
        }
    }

    /// The endpoint fails; more often than not the session tries again.
    fn fail(&mut self, index: usize, before: &ClusterStatus) -> Checked {
        let id = self.sessions[index].lease.endpoint();
        if self.weight_of(id).is_some() {
            let shadow = self.shadow.entry(id).or_default();
            shadow.effective = shadow.effective.saturating_sub(1);
        }
        let mut tried = self.sessions[index].tried.clone();
        tried.push(id);
        self.end_session(index, Outcome::Failed(Failure::Refused), before)?;
        if self.rng.u32(..3) > 0 {
            let before = self.status();
            self.arrive(tried, &before)?;
        }
        Ok(())
    }

    fn end_session(&mut self, index: usize, outcome: Outcome, before: &ClusterStatus) -> Checked {
        let Session { lease, .. } = self.sessions.swap_remove(index);
        self.shadow.entry(lease.endpoint()).or_default().held -= 1;
        lease.finish(outcome, self.now);
        self.collect_grants(before)
    }

    fn abandon(&mut self, before: &ClusterStatus) -> Checked {
        let Some(index) = self.any_session() else {
            return Ok(());
        };
        let Session { lease, .. } = self.sessions.swap_remove(index);
        self.shadow.entry(lease.endpoint()).or_default().held -= 1;
        drop(lease);
        self.collect_grants(before)
    }

    /// A waiting session's time is over.
    fn leave(&mut self) -> Checked {
        if !self.line.is_empty() {
            let index = self.rng.usize(..self.line.len());
            drop(self.line.remove(index).ticket);
        }
        Ok(())
    }

    fn pass_time(&mut self, duration: Duration, before: &ClusterStatus) -> Checked {
        self.now = self.now.after(duration);
        self.cluster.tick(self.now);
        self.collect_grants(before)
    }

    fn kill_or_repair(&mut self) -> Checked {
        if self.dead.is_empty() || self.rng.bool() {
            let index = self.rng.usize(..self.spec.endpoints.len());
            self.dead.push(Arc::clone(&self.spec.endpoints[index].name));
        } else {
            let index = self.rng.usize(..self.dead.len());
            let repaired = self.dead.swap_remove(index);
            self.dead.retain(|name| *name != repaired);
        }
        Ok(())
    }

    fn reload_the_same(&mut self, before: &ClusterStatus) -> Checked {
        self.cluster.reconfigure(self.spec.clone(), self.now);
        self.collect_grants(before)
    }

    fn reload(&mut self, before: &ClusterStatus) -> Checked {
        self.has_reloaded = true;
        change_spec(&mut self.spec, &mut self.rng);
        self.drop_orders();
        self.cluster.reconfigure(self.spec.clone(), self.now);
        self.adopt_weights();
        self.check_identities(before)?;
        self.check_watched(before)?;
        self.collect_grants(before)
    }

    /// Whoever was granted a slot holds a lease now.
    fn collect_grants(&mut self, before: &ClusterStatus) -> Checked {
        let granted = std::mem::take(&mut *self.grants.0.lock());
        for (token, lease) in granted {
            let Some(index) = self.line.iter().position(|waiting| waiting.token == token) else {
                return Err(Violation(format!(
                    "{token} is granted a slot and does not wait"
                )));
            };
            let Waiting { tried, .. } = self.line.remove(index);
            self.check_turn(index, &lease, before)?;
            self.begin(lease, tried, before)?;
        }
        Ok(())
    }

    /// Only one client is left, its endpoint fails it a few times and is repaired: with a hash its traffic alone brings
    /// it home, where it would be in a cluster that has never failed.
    fn recover_one_key(&mut self) -> Checked {
        self.set_right()?;
        self.finish_all()?;
        self.find_well()?;
        if !matches!(self.spec.balance, Balance::Hash(_) | Balance::SourceHash(_)) {
            return Ok(());
        }
        let key = HashKey(self.rng.u64(..));
        let home = self.home_of(key);
        self.dead.extend(home.clone());
        for _ in 0..self.rng.u32(1..10) {
            let before = self.status();
            self.arrive_with(key, Tried::default(), &before)?;
            self.finish_all()?;
        }
        self.dead.clear();
        let mut last = None;
        for _ in 0..RECOVERY_SECONDS {
            let before = self.status();
            self.pass_time(Duration::from_secs(1), &before)?;
            self.find_well()?;
            let before = self.status();
            self.arrive_with(key, Tried::default(), &before)?;
            last = self
                .sessions
                .last()
                .map(|session| Arc::clone(session.lease.name()));
            self.finish_all()?;
        }
        ensure!(last == home, "a key is on {last:?} and belongs on {home:?}");
        Ok(())
    }

    fn home_of(&self, key: HashKey) -> Option<Arc<str>> {
        let unwatched = ClusterSpec {
            health: None,
            ..self.spec.clone()
        };
        let fresh = Cluster::new(unwatched, 0, Time::ZERO);
        let request = Request {
            key: Some(key),
            tried: &Tried::default(),
            waiter: None,
        };
        match fresh.acquire(&request, Time::ZERO, &mut Rng::with_seed(0)) {
            Acquired::Lease(lease) => Some(Arc::clone(lease.name())),
            Acquired::Wait(_) | Acquired::Refused(_) => None,
        }
    }

    fn finish_all(&mut self) -> Checked {
        while !self.sessions.is_empty() {
            let before = self.status();
            self.progress(&before)?;
            self.check(&before)?;
        }
        Ok(())
    }

    /// All is repaired: within the longest ejection, trial interval and slow start everybody is back.
    fn recover(&mut self) -> Checked {
        self.dead.clear();
        let begin = self.status();
        for _ in 0..RECOVERY_SECONDS {
            let before = self.status();
            self.pass_time(Duration::from_secs(1), &before)?;
            self.find_well()?;
            for _ in 0..2 * self.spec.endpoints.len() {
                let before = self.status();
                self.arrive(Tried::default(), &before)?;
                self.check(&before)?;
            }
            self.finish_all()?;
        }
        self.check_recovered(&begin)
    }

    /// Everybody goes home. Where nobody can be used, those who wait give up.
    fn end(&mut self) -> Checked {
        if !self.roles(&self.status()).iter().any(|role| role.works) {
            self.line.clear();
        }
        ensure!(self.line.is_empty(), "{} still wait", self.line.len());
        let before = self.status();
        self.pass_time(Duration::from_secs(1), &before)?;
        let status = self.status();
        ensure!(
            status.endpoints.len() == self.spec.endpoints.len(),
            "an endpoint drains without leases"
        );
        Ok(())
    }

    fn any_session(&mut self) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| self.rng.usize(..self.sessions.len()))
    }
}

/// Ejection at most 20 s, trials at most 8 s apart, slow start 5 s, and time to win a weight of 5 back by trials.
const RECOVERY_SECONDS: u32 = 60;
