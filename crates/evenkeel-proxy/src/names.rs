//! Endpoints that are found by name, brought into the clusters: the way of a reload, without a change of settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::units::Time;
use evenkeel_core::{Cluster, ClusterSpec};

use crate::discovery::{Composition, Directory, NameStatus, compose_all};
use crate::present::Present;
use crate::proxy::Proxy;
use crate::reload::ReloadTurn;
use crate::settings::Settings;

impl Proxy {
    /// Takes up what names lead to now, if that has changed: new addresses become endpoints, those that are gone drain. To be
    /// called every 100 ms or so; while a reload runs it does nothing, and the reload takes them up itself.
    pub fn follow_names(&self) {
        if self.directory.version() == self.present.load().names_version {
            return;
        }
        let Ok(_turn) = ReloadTurn::take(&self.reloading) else {
            return;
        };
        let before = self.present.load_full();
        let (compositions, names_version) = compositions(&before.settings, &self.directory);
        tell_what_is_left_out(&before.compositions, &compositions);
        let now = self.now();
        let changes = before.compositions.iter().zip(compositions.iter());
        for (tier, (old, new)) in before.tiers.iter().zip(changes) {
            if old.settings.spec != new.settings.spec {
                self.bring_in(&tier.cluster, new.settings.spec.clone(), now);
            }
        }
        self.present.store(Arc::new(Present {
            version: before.version + 1,
            compositions,
            names_version,
            ..Present::clone(&before)
        }));
    }

    /// What is found before anybody is served was configured all along: it does not start slowly.
    fn bring_in(&self, cluster: &Cluster, spec: ClusterSpec, now: Time) {
        if !self.is_open() {
            let at_once = ClusterSpec {
                slow_start: Duration::ZERO,
                ..spec.clone()
            };
            cluster.reconfigure(at_once, now);
        }
        cluster.reconfigure(spec, now);
    }

    /// What is known of every name, in alphabetical order.
    pub fn names(&self) -> Vec<NameStatus> {
        self.directory.status(Instant::now())
    }
}

/// The clusters of these settings, and the version of the directory that they are at least as new as.
pub(crate) fn compositions(
    settings: &Settings,
    directory: &Directory,
) -> (Arc<[Composition]>, u64) {
    let version = directory.version();
    let compositions = compose_all(settings, |question| directory.found(question));
    (compositions.into(), version)
}

pub(crate) fn tell_what_is_left_out(before: &[Composition], after: &[Composition]) {
    for composition in after {
        let cluster = &composition.settings.spec.name;
        let same = |old: &&Composition| old.settings.spec.name == *cluster;
        let told = before.iter().find(same).map(|old| &old.left_out[..]);
        let told = told.unwrap_or_default();
        for left_out in composition
            .left_out
            .iter()
            .filter(|new| !told.contains(new))
        {
            tracing::warn!(%cluster, "{left_out}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use evenkeel_core::units::{Address, Weight};

    use super::*;
    use crate::discovery::{DnsName, Family, Question};
    use crate::settings::{NamedEndpoints, sample};
    use crate::telemetry::record::SessionRecord;
    use crate::{Inheritance, SessionSink};

    struct Nobody;

    impl SessionSink for Nobody {
        fn session_ended(&self, _: SessionRecord) {}
    }

    fn question() -> Question {
        Question::Host {
            name: DnsName::parse("db").unwrap(),
            port: 3306,
            family: Family::Ipv4,
        }
    }

    /// One cluster of nothing but a name, and a listener on a port of the kernel's choice.
    fn settings() -> Settings {
        let mut settings = sample::world();
        settings.listeners[0].bind = Address::Ip(([127, 0, 0, 1], 0).into());
        settings.clusters[0].spec.endpoints.clear();
        settings.clusters[0].names = vec![NamedEndpoints {
            label: "db".into(),
            question: question(),
            position: 0,
            weight: None,
            backup: false,
            disabled: false,
            max_connections: None,
        }];
        settings
    }

    fn endpoints(proxy: &Proxy) -> Vec<(String, u32)> {
        let status = proxy.clusters()[0].status(proxy.now());
        let endpoints = status.endpoints.iter();
        let facts = endpoints.map(|one| (one.name.to_string(), one.weight.get()));
        facts.collect()
    }

    /// A reload of other values keeps what a name leads to, asks nobody, and gives it the values.
    #[test]
    fn a_reload_keeps_what_names_lead_to() {
        let directory = Arc::new(Directory::default());
        let sink = Arc::new(Nobody);
        let nothing = Inheritance::default();
        let proxy = Proxy::prepare(nothing, settings(), Arc::clone(&directory), sink).unwrap();
        proxy.open();
        assert_eq!(endpoints(&proxy), []);
        let version = proxy.version();
        directory.keep(&BTreeSet::from([question()]));
        directory.learn_addresses(&question(), &["10.0.0.1:3306"]);
        proxy.follow_names();
        assert!(proxy.version() > version);
        let found = proxy.clusters()[0].status(proxy.now()).endpoints[0].id;

        let mut other = settings();
        other.clusters[0].names[0].weight = Weight::new(3);
        proxy.reload(other).unwrap();

        assert_eq!(endpoints(&proxy), [("db/10.0.0.1:3306".to_owned(), 3)]);
        let kept = proxy.clusters()[0].status(proxy.now()).endpoints[0].id;
        assert_eq!(found, kept);
    }
}
