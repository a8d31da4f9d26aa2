//! Follows the endpoints that are to be probed: one patrol for each, from when it appears until it goes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::{Address, EndpointId};
use evenkeel_core::{EndpointState, EndpointStatus, Judgement};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ledger::Ledger;
use super::office::Office;
use super::patrol::{Patrol, Subject};
use super::schedule::first_pause;
use crate::Proxy;
use crate::proxy::ProbedCluster;
use crate::settings::{ProbeSettings, ProbeTarget, ProxyVersion};

/// How long the last questions may take when the process ends.
const END_MAX: Duration = Duration::from_secs(1);

/// Probes the endpoints of a proxy, on the runtime in which [`Prober::follow`] is called.
pub struct Prober {
    office: Arc<Office>,
    /// A patrol ends when its orders are dropped.
    orders: HashMap<EndpointId, watch::Sender<Subject>>,
    patrols: JoinSet<()>,
    random: fastrand::Rng,
    /// The version of what is in force at the last look.
    seen: Option<u64>,
}

impl Prober {
    /// A prober that probes nobody yet.
    pub fn new(proxy: Arc<Proxy>) -> Self {
        Self {
            office: Arc::new(Office::new(proxy, Arc::default())),
            orders: HashMap::new(),
            patrols: JoinSet::new(),
            random: fastrand::Rng::new(),
            seen: None,
        }
    }

    /// Where the last results are.
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.office.ledger)
    }

    /// Whether a reload has changed something since [`Prober::follow`] last looked.
    pub fn is_behind(&self) -> bool {
        self.seen != Some(self.office.proxy.version())
    }

    /// Looks at what there is to probe now, and begins or ends patrols. To be called from time to time, within a runtime.
    pub fn follow(&mut self) {
        self.seen = Some(self.office.proxy.version());
        while self.patrols.try_join_next().is_some() {}
        let wanted = self.wanted();
        self.dismiss_all_but(&wanted);
        let new = wanted
            .keys()
            .filter(|endpoint| !self.orders.contains_key(endpoint))
            .count();
        for (endpoint, (subject, is_down)) in wanted {
            match self.orders.get(&endpoint) {
                Some(orders) => {
                    orders.send_if_modified(|given| replace_if_other(given, subject));
                }
                None => self.dispatch(subject, is_down, new),
            }
        }
    }

    /// Whether each endpoint that is to be probed has been asked at least once.
    pub fn has_asked_everybody(&self) -> bool {
        self.office.is_everybody_asked()
    }

    /// Asks nobody any more. Whoever is being asked is heard out, for a second at the most: a server may count a conversation that
    /// is broken off.
    pub async fn end(&mut self) {
        self.orders.clear();
        let all = async {
            while self.patrols.join_next().await.is_some() {}
            self.office.have_all_parted().await;
        };
        let _ = timeout(END_MAX, all).await;
    }

    /// Who is to be probed, and whether probes have found it down.
    fn wanted(&self) -> HashMap<EndpointId, (Subject, bool)> {
        let now = self.office.proxy.now();
        let clusters = self.office.proxy.probed_clusters();
        let subjects = clusters.iter().flat_map(|probed| {
            let status = probed.cluster.status(now);
            let present = status.endpoints.into_iter().filter(is_probed);
            present.filter_map(|endpoint| {
                let is_down = endpoint.judgement == Some(Judgement::Down);
                Some((endpoint.id, (subject(probed, &endpoint)?, is_down)))
            })
        });
        subjects.collect()
    }

    fn dismiss_all_but(&mut self, wanted: &HashMap<EndpointId, (Subject, bool)>) {
        let gone: Vec<EndpointId> = self
            .orders
            .keys()
            .filter(|endpoint| !wanted.contains_key(endpoint))
            .copied()
            .collect();
        for endpoint in gone {
            self.orders.remove(&endpoint);
            self.office.has_been_asked(endpoint);
            self.office.ledger.forget(endpoint);
        }
    }

    fn dispatch(&mut self, subject: Subject, is_down: bool, together: usize) {
        let endpoint = subject.endpoint;
        let pause = first_pause(subject.settings.every, together, &mut self.random);
        let (sender, orders) = watch::channel(subject);
        let patrol = Patrol {
            orders,
            office: Arc::clone(&self.office),
            random: self.random.fork(),
            is_down,
        };
        self.office.is_to_be_asked(endpoint);
        self.orders.insert(endpoint, sender);
        self.patrols.spawn(patrol.run(pause));
    }
}

fn replace_if_other(given: &mut Subject, subject: Subject) -> bool {
    let is_other = *given != subject;
    if is_other {
        *given = subject;
    }
    is_other
}

/// One that a reload has removed has nothing to come back to, and one that the operator has taken out is left alone.
fn is_probed(endpoint: &EndpointStatus) -> bool {
    !matches!(
        endpoint.state,
        EndpointState::Disabled | EndpointState::Removed
    )
}

/// `None` for an address that nobody can be asked at.
fn subject(probed: &ProbedCluster, endpoint: &EndpointStatus) -> Option<Subject> {
    Some(Subject {
        cluster: Arc::clone(&probed.cluster),
        cluster_name: Arc::clone(&probed.name),
        endpoint: endpoint.id,
        name: Arc::clone(&endpoint.name),
        address: target(&probed.settings, &endpoint.address)?,
        settings: Arc::clone(&probed.settings),
        on_down: probed.on_down,
        header: header(probed),
    })
}

/// An endpoint that is told whom a connection is for is told so by probes too: for nobody but evenkeel. What listens at another port or
/// address is not the endpoint, and gets no header.
fn header(probed: &ProbedCluster) -> Option<ProxyVersion> {
    let asks_endpoint = probed.settings.target == ProbeTarget::Endpoint;
    probed.header.filter(|_| asks_endpoint)
}

fn target(settings: &ProbeSettings, address: &Address) -> Option<Address> {
    match (&settings.target, address) {
        (ProbeTarget::Address(other), _) => Some(other.clone()),
        (ProbeTarget::Endpoint, own) => Some(own.clone()),
        (ProbeTarget::Port(port), own) => {
            let own = own.ip()?;
            Some(Address::Ip(SocketAddr::new(own.ip(), *port)))
        }
    }
}
