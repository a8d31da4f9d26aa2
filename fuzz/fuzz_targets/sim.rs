#![no_main]
//! Any history of a cluster: the bytes are sessions that come, are answered, fail and leave, probes, time that passes, and reloads.
//! After each step the counts must be those of the leases that are held.
//!
//! The core's own simulation walks long, likely histories from a seed; here the fuzzer looks for short, unlikely ones.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::units::{Address, EndpointId, HashKey, Time, Weight};
use evenkeel_core::{
    Acquired, Awaited, Balance, Cluster, ClusterSpec, EjectionPolicy, EndpointSpec, Failback,
    Failure, HashPolicy, HealthPolicy, Lease, Outcome, ProbeResult, Request, Ticket, TrialPolicy,
    Tried, Waiter, WhenNone,
};
use libfuzzer_sys::fuzz_target;

/// More would only make a history slower.
const STEPS_MAX: usize = 512;
const ENDPOINTS_MAX: u8 = 6;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Bytes(bytes);
    let mut world = World::new(&mut bytes);
    for _ in 0..STEPS_MAX {
        let Some(action) = bytes.next() else { break };
        world.act(action, &mut bytes);
        world.check();
    }
    world.leave();
});

/// The input, one byte after the other.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Where the input has ended, everything is 0.
    fn below(&mut self, bound: u8) -> u8 {
        self.next().unwrap_or(0) % bound
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// Waiters that have been granted a lease keep it here.
#[derive(Default)]
struct Granted(Mutex<Vec<Lease>>);

impl Waiter for Granted {
    fn grant(&self, _token: u64, lease: Lease) {
        self.0.lock().expect("no test panics with it").push(lease);
    }
}

struct World {
    cluster: Arc<Cluster>,
    granted: Arc<Granted>,
    waiter: Arc<dyn Waiter>,
    leases: Vec<Lease>,
    tickets: Vec<Ticket>,
    tried: Tried,
    now: Time,
    random: fastrand::Rng,
}

impl World {
    fn new(bytes: &mut Bytes<'_>) -> Self {
        let granted = Arc::new(Granted::default());
        let waiter: Arc<dyn Waiter> = Arc::clone(&granted) as _;
        let cluster = Cluster::new(spec(bytes), bytes.below(255).into(), Time::ZERO);
        Self {
            cluster,
            granted,
            waiter,
            leases: Vec::new(),
            tickets: Vec::new(),
            tried: Tried::default(),
            now: Time::ZERO,
            random: fastrand::Rng::with_seed(bytes.below(255).into()),
        }
    }

    fn act(&mut self, action: u8, bytes: &mut Bytes<'_>) {
        match action % 9 {
            0 | 1 => self.acquire(bytes),
            2 => self.establish(bytes),
            3 => self.finish(bytes),
            4 => self.pass_time(bytes),
            5 => self.cluster.reconfigure(spec(bytes), self.now),
            6 => drop(take(&mut self.tickets, bytes)),
            7 => self.probe(bytes),
            _ => self.tried = Tried::default(),
        }
        let mut granted = self.granted.0.lock().expect("no test panics with it");
        self.leases.append(&mut granted);
    }

    fn acquire(&mut self, bytes: &mut Bytes<'_>) {
        let key = bytes.flag().then(|| HashKey(bytes.below(16).into()));
        let waiter = bytes.flag().then_some((&self.waiter, 0));
        let request = Request {
            key,
            tried: &self.tried,
            waiter,
        };
        match self.cluster.acquire(&request, self.now, &mut self.random) {
            Acquired::Lease(lease) => {
                self.check_limit(lease.endpoint());
                self.tried.push(lease.endpoint());
                self.leases.push(lease);
            }
            Acquired::Wait(ticket) => self.tickets.push(ticket),
            Acquired::Refused(_) => {}
        }
    }

    fn establish(&mut self, bytes: &mut Bytes<'_>) {
        let index: usize = bytes.below(255).into();
        let count = self.leases.len().max(1);
        if let Some(lease) = self.leases.get_mut(index % count) {
            lease.established(self.now);
        }
    }

    fn finish(&mut self, bytes: &mut Bytes<'_>) {
        let Some(lease) = take(&mut self.leases, bytes) else {
            return;
        };
        match bytes.below(5) {
            0 => lease.finish(Outcome::Completed, self.now),
            1 => lease.finish(Outcome::Abandoned, self.now),
            2 => lease.finish(Outcome::Failed(Failure::Refused), self.now),
            3 => lease.finish(Outcome::Failed(Failure::Closed), self.now),
            _ => drop(lease),
        }
    }

    fn probe(&mut self, bytes: &mut Bytes<'_>) {
        let endpoints = self.cluster.status(self.now).endpoints;
        let index = usize::from(bytes.below(255)) % endpoints.len().max(1);
        let result = if bytes.flag() {
            ProbeResult::Passed
        } else {
            ProbeResult::Failed
        };
        if let Some(endpoint) = endpoints.get(index) {
            self.cluster.probed(endpoint.id, result, self.now);
        }
    }

    fn pass_time(&mut self, bytes: &mut Bytes<'_>) {
        self.now = self.now.after(Duration::from_millis(1 << bytes.below(20)));
        self.cluster.tick(self.now);
    }

    /// What is counted is what is held; limits hold; no effective weight is above its weight.
    fn check(&self) {
        let status = self.cluster.status(self.now);
        let mut held: HashMap<EndpointId, u32> = HashMap::new();
        for lease in &self.leases {
            *held.entry(lease.endpoint()).or_default() += 1;
        }
        for endpoint in &status.endpoints {
            let held = held.remove(&endpoint.id).unwrap_or(0);
            assert_eq!(endpoint.in_flight, held, "{}", endpoint.name);
            assert!(
                endpoint.effective_weight <= endpoint.weight.get(),
                "{}",
                endpoint.name
            );
        }
        assert!(status.waiting <= self.tickets.len());
    }

    /// A reload may lower a limit below what is held; but nothing is given out beyond it.
    fn check_limit(&self, endpoint: EndpointId) {
        let status = self.cluster.status(self.now);
        let given = status
            .endpoints
            .iter()
            .find(|status| status.id == endpoint)
            .expect("it was just chosen");
        assert!(
            given
                .max_connections
                .is_none_or(|max| given.in_flight <= max),
            "{}",
            given.name
        );
    }

    /// When everybody has left, nothing is counted any more.
    fn leave(mut self) {
        self.tickets.clear();
        self.leases.clear();
        self.granted
            .0
            .lock()
            .expect("no test panics with it")
            .clear();
        let status = self.cluster.status(self.now);
        assert_eq!(status.waiting, 0);
        assert!(
            status
                .endpoints
                .iter()
                .all(|endpoint| endpoint.in_flight == 0)
        );
    }
}

fn take<T>(from: &mut Vec<T>, bytes: &mut Bytes<'_>) -> Option<T> {
    let index: usize = bytes.below(255).into();
    (!from.is_empty()).then(|| from.swap_remove(index % from.len()))
}

fn spec(bytes: &mut Bytes<'_>) -> ClusterSpec {
    let count = 1 + bytes.below(ENDPOINTS_MAX);
    ClusterSpec {
        name: Arc::from("fuzz"),
        endpoints: (0..count).map(|number| endpoint(number, bytes)).collect(),
        balance: balance(bytes),
        trials: TrialPolicy {
            every: Duration::from_millis(10),
            every_max: Duration::from_secs(1),
        },
        ejection: bytes.flag().then(|| EjectionPolicy {
            failures: 1 + u32::from(bytes.below(3)),
            ..EjectionPolicy::default()
        }),
        slow_start: Duration::from_millis(u64::from(bytes.below(3)) * 500),
        queue_max: bytes.below(4).into(),
        when_none: if bytes.flag() {
            WhenNone::UseAll
        } else {
            WhenNone::Fail
        },
        health: bytes.flag().then_some(HealthPolicy { rise: 2, fall: 2 }),
        failback: if bytes.flag() {
            Failback::Manual
        } else {
            Failback::Auto
        },
        awaited: Awaited {
            primaries: bytes.below(8) == 7,
            backups: false,
        },
    }
}

fn endpoint(number: u8, bytes: &mut Bytes<'_>) -> EndpointSpec {
    EndpointSpec {
        name: Arc::from(format!("e{number}")),
        address: Address::Ip(([127, 0, 0, 1], 1000 + u16::from(bytes.below(2))).into()),
        weight: Weight::new(bytes.below(5).into()).unwrap_or(Weight::ONE),
        backup: bytes.below(4) == 3,
        disabled: bytes.below(8) == 7,
        max_connections: NonZeroU32::new(bytes.below(4).into()),
    }
}

fn balance(bytes: &mut Bytes<'_>) -> Balance {
    let policy = HashPolicy {
        bounded_load_percent: bytes.flag().then_some(125),
    };
    match bytes.below(6) {
        0 => Balance::RoundRobin,
        1 => Balance::Random,
        2 => Balance::TwoChoices,
        3 => Balance::LeastConnections,
        4 => Balance::SourceHash(policy),
        _ => Balance::Hash(policy),
    }
}
