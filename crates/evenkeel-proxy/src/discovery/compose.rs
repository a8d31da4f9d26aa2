//! The endpoints of a cluster: those that are configured by address, and those that its names lead to now.
//!
//! Pure: the same settings and the same answers make the same endpoints, in the same order.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use evenkeel_core::units::{Address, Weight};
use evenkeel_core::{Awaited, ClusterSpec, EndpointSpec};

use super::circle::leads_back;
use super::directory::Found;
use super::question::{Question, Target};
use crate::settings::{ClusterSettings, ListenerSettings, NamedEndpoints, Settings};

/// The most addresses that one name stands for; the others of an answer are left out.
pub const ADDRESSES_PER_NAME_MAX: usize = 256;

/// What a cluster is at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composition {
    /// The spec has every endpoint that there is.
    pub(crate) settings: ClusterSettings,
    /// What names lead to without becoming an endpoint.
    pub(crate) left_out: Vec<LeftOut>,
}

/// Why an address of an answer is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// The name leads to more than [`ADDRESSES_PER_NAME_MAX`].
    BeyondName {
        /// What the endpoints of the name are called by.
        label: Arc<str>,
        /// How many it leads to.
        found: usize,
    },
    /// The cluster has [`ClusterSpec::ENDPOINTS_MAX`] already.
    BeyondCluster {
        /// What the endpoints of the name are called by.
        label: Arc<str>,
        /// How many are left out.
        count: usize,
    },
    /// It is the listener that the session would come from.
    Circle {
        /// What the endpoints of the name are called by.
        label: Arc<str>,
        /// The address.
        address: SocketAddr,
    },
    /// It is an endpoint already, by its address or by a name before this one: twice would be twice its share.
    Twice {
        /// What the endpoints of the name are called by.
        label: Arc<str>,
        /// The address.
        address: SocketAddr,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeyondName { label, found } => write!(
                f,
                "{label} leads to {found} addresses; the first {ADDRESSES_PER_NAME_MAX} are used"
            ),
            Self::BeyondCluster { label, count } => write!(
                f,
                "{count} addresses of {label} are left out: a cluster has at most {} endpoints",
                ClusterSpec::ENDPOINTS_MAX
            ),
            Self::Circle { label, address } => write!(
                f,
                "{address} of {label} is a listener of this cluster itself: its sessions would go in a circle"
            ),
            Self::Twice { label, address } => {
                write!(f, "{address} of {label} is an endpoint already")
            }
        }
    }
}

/// All clusters, in their order, with what their names lead to: `found` says what a question has led to.
pub(crate) fn compose_all(
    settings: &Settings,
    found: impl Fn(&Question) -> Found,
) -> Vec<Composition> {
    let compose = |cluster: &ClusterSettings| {
        let to_it = |listener: &&ListenerSettings| listener.leads_to(&cluster.spec.name);
        let listeners = settings.listeners.iter().filter(to_it);
        compose(cluster, listeners.map(|listener| &listener.bind), &found)
    };
    settings.clusters.iter().map(compose).collect()
}

fn compose<'a>(
    cluster: &ClusterSettings,
    binds: impl Iterator<Item = &'a Address>,
    found: impl Fn(&Question) -> Found,
) -> Composition {
    let fixed = &cluster.spec.endpoints;
    let mut builder = Builder {
        binds: binds.collect(),
        taken: fixed.iter().map(|fixed| fixed.address.clone()).collect(),
        endpoints: Vec::with_capacity(fixed.len()),
        room: ClusterSpec::ENDPOINTS_MAX.saturating_sub(fixed.len()),
        awaited: Awaited::default(),
        left_out: Vec::new(),
    };
    let mut done = 0;
    for named in &cluster.names {
        let before = named.position.clamp(done, fixed.len());
        builder.endpoints.extend_from_slice(&fixed[done..before]);
        done = before;
        match found(&named.question) {
            Found::Targets(targets) => builder.add(named, &targets),
            Found::Nothing => {}
            Found::NotAnswered => builder.wait_for(named),
        }
    }
    builder.endpoints.extend_from_slice(&fixed[done..]);
    let mut settings = cluster.clone();
    settings.spec.endpoints = builder.endpoints;
    settings.spec.awaited = builder.awaited;
    Composition {
        settings,
        left_out: builder.left_out,
    }
}

struct Builder<'a> {
    /// Where the cluster's listeners are.
    binds: Vec<&'a Address>,
    /// Addresses that are endpoints, or will be.
    taken: HashSet<Address>,
    endpoints: Vec<EndpointSpec>,
    /// How many more the cluster may have beside those with a fixed address.
    room: usize,
    awaited: Awaited,
    left_out: Vec<LeftOut>,
}

impl Builder<'_> {
    /// The records of a service may bring both kinds.
    fn wait_for(&mut self, named: &NamedEndpoints) {
        if named.disabled || named.weight == Some(Weight::ZERO) {
            return;
        }
        let is_service = matches!(named.question, Question::Service { .. });
        self.awaited.primaries |= !named.backup;
        self.awaited.backups |= named.backup || is_service;
    }

    fn add(&mut self, named: &NamedEndpoints, targets: &[Target]) {
        let label = || Arc::clone(&named.label);
        if targets.len() > ADDRESSES_PER_NAME_MAX {
            self.left_out.push(LeftOut::BeyondName {
                label: label(),
                found: targets.len(),
            });
        }
        let best = targets.first().map_or(0, |target| target.priority);
        let mut beyond = 0;
        for target in targets.iter().take(ADDRESSES_PER_NAME_MAX) {
            let address = target.address;
            let place = Address::Ip(address);
            if self.binds.iter().any(|bind| leads_back(&place, bind)) {
                let label = label();
                self.left_out.push(LeftOut::Circle { label, address });
            } else if !self.taken.insert(place) {
                let label = label();
                self.left_out.push(LeftOut::Twice { label, address });
            } else if self.room == 0 {
                beyond += 1;
            } else {
                self.room -= 1;
                self.endpoints.push(endpoint(named, target, best));
            }
        }
        if beyond > 0 {
            self.left_out.push(LeftOut::BeyondCluster {
                label: label(),
                count: beyond,
            });
        }
    }
}

/// Its name never depends on what else the answer holds, so hashes and kept state stay with the address.
fn endpoint(named: &NamedEndpoints, target: &Target, best: u16) -> EndpointSpec {
    EndpointSpec {
        name: format!("{}/{}", named.label, target.address).into(),
        address: Address::Ip(target.address),
        weight: named.weight.unwrap_or_else(|| weight_of(target)),
        backup: named.backup || target.priority > best,
        disabled: named.disabled,
        max_connections: named.max_connections,
    }
}

/// A record of weight 0 wants hardly anything, not nothing: that is what RFC 2782 means by it.
fn weight_of(target: &Target) -> Weight {
    let weight = target.weight.map(|weight| u32::from(weight.max(1)));
    weight.and_then(Weight::new).unwrap_or(Weight::ONE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::name::DnsName;
    use super::super::question::Family;
    use super::*;
    use crate::settings::sample;

    fn question(name: &str) -> Question {
        Question::Host {
            name: DnsName::parse(name).unwrap(),
            port: 3306,
            family: Family::PreferIpv4,
        }
    }

    fn named(name: &str, position: usize) -> NamedEndpoints {
        NamedEndpoints {
            label: name.into(),
            question: question(name),
            position,
            weight: None,
            backup: false,
            disabled: false,
            max_connections: None,
        }
    }

    fn address(number: u16) -> SocketAddr {
        let [high, low] = number.to_be_bytes();
        SocketAddr::from(([10, 0, high, low], 3306))
    }

    fn fixed(name: &str, number: u16) -> EndpointSpec {
        EndpointSpec {
            address: Address::Ip(address(number)),
            ..sample::endpoint(name, 1)
        }
    }

    fn host(number: u16) -> Target {
        Target {
            priority: 0,
            weight: None,
            address: address(number),
        }
    }

    fn record(number: u16, priority: u16, weight: u16) -> Target {
        Target {
            priority,
            weight: Some(weight),
            ..host(number)
        }
    }

    fn cluster(endpoints: Vec<EndpointSpec>, names: Vec<NamedEndpoints>) -> ClusterSettings {
        ClusterSettings {
            names,
            ..sample::cluster("cluster", endpoints)
        }
    }

    /// Every name leads to these.
    fn with(settings: &ClusterSettings, targets: &[Target]) -> Composition {
        compose(settings, std::iter::empty(), |_| {
            Found::Targets(targets.into())
        })
    }

    fn endpoint_names(composition: &Composition) -> Vec<String> {
        let endpoints = composition.settings.spec.endpoints.iter();
        endpoints
            .map(|endpoint| endpoint.name.to_string())
            .collect()
    }

    /// What a name leads to stands where the name stands in the file.
    #[test]
    fn endpoints_stand_where_their_name_does() {
        let settings = cluster(vec![fixed("a", 1), fixed("b", 2)], vec![named("db", 1)]);

        let composition = with(&settings, &[host(7), host(8)]);

        let names = ["a", "db/10.0.0.7:3306", "db/10.0.0.8:3306", "b"];
        assert_eq!(endpoint_names(&composition), names);
    }

    /// A name that has never had an answer leaves the rest of its cluster as it is.
    #[test]
    fn a_name_without_an_answer_adds_nothing() {
        let settings = cluster(vec![fixed("a", 1)], vec![named("db", 0)]);

        let composition = compose(&settings, std::iter::empty(), |_| Found::Nothing);

        assert_eq!(endpoint_names(&composition), ["a"]);
        assert_eq!(composition.settings.spec.awaited, Awaited::default());
    }

    /// Before the first answer, what the name may lead to is awaited; a disabled one is not.
    #[test]
    fn a_name_before_its_first_answer_is_awaited() {
        let mut settings = cluster(vec![fixed("a", 1)], vec![named("db", 0)]);
        let awaited = |settings: &ClusterSettings| {
            let composition = compose(settings, std::iter::empty(), |_| Found::NotAnswered);
            let awaited = composition.settings.spec.awaited;
            (awaited.primaries, awaited.backups)
        };

        assert_eq!(awaited(&settings), (true, false));
        settings.names[0].backup = true;
        assert_eq!(awaited(&settings), (false, true));
        settings.names[0].disabled = true;
        assert_eq!(awaited(&settings), (false, false));
    }

    /// The records' weights count, and all but the best priority are backups; what the file says goes first.
    #[test]
    fn records_bring_weights_and_priorities() {
        let records = [record(1, 10, 5), record(2, 10, 0), record(3, 20, 7)];
        let facts = |settings: &ClusterSettings| -> Vec<(u32, bool)> {
            let endpoints = with(settings, &records).settings.spec.endpoints;
            let facts = endpoints.iter();
            facts.map(|one| (one.weight.get(), one.backup)).collect()
        };

        let plain = cluster(vec![], vec![named("db", 0)]);
        assert_eq!(facts(&plain), [(5, false), (1, false), (7, true)]);
        let mut weighted = plain;
        weighted.names[0].weight = Weight::new(3);
        assert_eq!(facts(&weighted), [(3, false), (3, false), (3, true)]);
    }

    /// Two names and an address for one machine are one endpoint.
    #[test]
    fn a_machine_is_one_endpoint() {
        let names = vec![named("db", 0), named("sql", 0)];
        let settings = cluster(vec![fixed("a", 1)], names);

        let composition = with(&settings, &[host(1), host(2)]);

        assert_eq!(endpoint_names(&composition), ["db/10.0.0.2:3306", "a"]);
        assert_eq!(composition.left_out.len(), 3);
    }

    /// A name that leads back to the listener leads nowhere.
    #[test]
    fn a_circle_is_left_out() {
        let settings = cluster(vec![], vec![named("db", 0)]);
        let loopback = Target {
            address: SocketAddr::from(([127, 0, 0, 1], 3306)),
            ..host(1)
        };
        let bind = Address::Ip(SocketAddr::from(([0, 0, 0, 0], 3306)));

        let found = [loopback, host(2)];
        let composition = compose(&settings, [&bind].into_iter(), |_| {
            Found::Targets((&found[..]).into())
        });

        assert_eq!(endpoint_names(&composition), ["db/10.0.0.2:3306"]);
        assert!(matches!(composition.left_out[..], [LeftOut::Circle { .. }]));
    }

    /// A huge answer is cut, the same way each time, and so is what does not fit into the cluster.
    #[test]
    fn a_huge_answer_is_cut() {
        let many: Vec<Target> = (0..1000).map(host).collect();
        let settings = cluster(vec![], vec![named("db", 0)]);
        let composition = with(&settings, &many);
        assert_eq!(
            composition.settings.spec.endpoints.len(),
            ADDRESSES_PER_NAME_MAX
        );
        assert_eq!(composition.left_out.len(), 1);

        let full = (0..4090).map(|number| fixed(&number.to_string(), 2000 + number));
        let settings = cluster(full.collect(), vec![named("db", 0)]);
        let composition = with(&settings, &many[..10]);
        assert_eq!(
            composition.settings.spec.endpoints.len(),
            ClusterSpec::ENDPOINTS_MAX
        );
        let label = Arc::from("db");
        let beyond = LeftOut::BeyondCluster { label, count: 4 };
        assert_eq!(composition.left_out, [beyond]);
    }

    proptest! {
        /// An address has the same name whatever else is in the answer, so that its state is kept.
        #[test]
        fn an_address_keeps_its_name(
            before in prop::collection::btree_set(0_u16..50, 0..20),
            after in prop::collection::btree_set(0_u16..50, 0..20),
        ) {
            let settings = cluster(vec![fixed("a", 60)], vec![named("db", 1)]);
            let compose_of = |numbers: &std::collections::BTreeSet<u16>| {
                let targets: Vec<Target> = numbers.iter().map(|&number| host(number)).collect();
                with(&settings, &targets).settings.spec.endpoints
            };
            let (before, after) = (compose_of(&before), compose_of(&after));
            for one in &before {
                let same = after.iter().find(|other| other.address == one.address);
                prop_assert!(same.is_none_or(|same| same == one));
            }
        }
    }
}
