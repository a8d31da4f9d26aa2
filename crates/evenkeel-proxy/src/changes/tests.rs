//! Each kind of difference, told in the words of the configuration.

use std::time::Duration;

use evenkeel_core::Balance;
use evenkeel_core::units::Weight;

use super::*;
use crate::settings::LogFormat;
use crate::settings::sample::{address, cluster, endpoint, listener, world};

fn changes(change: impl FnOnce(&mut Settings)) -> Changes {
    let mut after = world();
    change(&mut after);
    Changes::between(&world(), &after)
}

fn endpoints(settings: &mut Settings) -> &mut Vec<EndpointSpec> {
    &mut settings.clusters[0].spec.endpoints
}

/// Nothing is different, or only the order in which things are written.
#[test]
fn the_same_is_no_change() {
    assert!(changes(|_| ()).is_empty());
    assert!(changes(|settings| endpoints(settings).reverse()).is_empty());
}

/// One endpoint comes, one goes, one gets another weight and a limit.
#[test]
fn endpoints_are_told_one_by_one() {
    let Changes { made, deferred } = changes(|settings| {
        let endpoints = endpoints(settings);
        endpoints[0] = endpoint("c", 3);
        endpoints[1].weight = Weight::new(5).unwrap();
        endpoints[1].disabled = true;
    });

    let (cluster, endpoint) = (|| "web".to_owned(), |name: &str| name.to_owned());
    assert!(deferred.is_empty());
    assert_eq!(
        made,
        [
            Change::EndpointAdded {
                cluster: cluster(),
                endpoint: endpoint("c")
            },
            Change::EndpointReweighed {
                cluster: cluster(),
                endpoint: endpoint("b"),
                from: 1,
                to: 5
            },
            Change::EndpointChanged {
                cluster: cluster(),
                endpoint: endpoint("b"),
                keys: vec!["disabled".to_owned()]
            },
            Change::EndpointRemoved {
                cluster: cluster(),
                endpoint: endpoint("a")
            },
        ]
    );
}

/// An old name with a new address is not the same endpoint.
#[test]
fn a_moved_endpoint_is_told_with_both_addresses() {
    let changes = changes(|settings| endpoints(settings)[0].address = address(9));

    let moved = Change::EndpointMoved {
        cluster: "web".to_owned(),
        endpoint: "a".to_owned(),
        from: "192.0.2.1:1".to_owned(),
        to: "192.0.2.1:9".to_owned(),
    };
    assert_eq!(changes.made, [moved]);
}

/// The same address under another name is a renamed listener, unless the old name is still there.
#[test]
fn a_listener_is_renamed_moved_added_or_removed() {
    let renamed = changes(|settings| settings.listeners[0].name = "door".into());
    let moved = changes(|settings| settings.listeners[0].bind = address(2));
    let swapped = changes(|settings| {
        settings.listeners[0].bind = address(2);
        settings.listeners.push(listener("door", 1));
    });
    let removed = changes(|settings| settings.listeners.clear());

    let (front, door) = (|| "front".to_owned(), || "door".to_owned());
    let to_port_2 = || Change::ListenerMoved {
        listener: front(),
        from: "192.0.2.1:1".to_owned(),
        to: "192.0.2.1:2".to_owned(),
    };
    let added = Change::ListenerAdded {
        listener: door(),
        bind: "192.0.2.1:1".to_owned(),
    };
    assert_eq!(
        renamed.made,
        [Change::ListenerRenamed {
            listener: door(),
            from: front()
        }]
    );
    assert_eq!(moved.made, [to_port_2()]);
    assert_eq!(swapped.made, [to_port_2(), added]);
    assert_eq!(
        removed.made,
        [Change::ListenerRemoved { listener: front() }]
    );
}

/// Whatever else differs is told by the keys of the file.
#[test]
fn other_changes_are_told_by_their_keys() {
    let changes = changes(|settings| {
        settings.listeners[0].timeouts.idle = Some(Duration::from_secs(1));
        settings.clusters[0].attempts = 1;
        settings.clusters[0].spec.balance = Balance::Random;
        settings.process.stop_deadline = Duration::ZERO;
        settings.access_log.format = LogFormat::Json;
        settings
            .clusters
            .push(cluster("new", vec![endpoint("a", 1)]));
    });

    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(
        changes.made,
        [
            Change::ProcessChanged {
                keys: keys(&["stop_deadline"])
            },
            Change::LogChanged {
                keys: keys(&["access_format"])
            },
            Change::ListenerChanged {
                listener: "front".to_owned(),
                keys: keys(&["timeouts.idle"])
            },
            Change::ClusterChanged {
                cluster: "web".to_owned(),
                keys: keys(&["balance", "attempts"])
            },
            Change::ClusterAdded {
                cluster: "new".to_owned(),
                endpoints: 1
            },
        ]
    );
}

/// What a running process cannot follow is named, and changes nothing.
#[test]
fn what_takes_a_restart_is_deferred() {
    let changes = changes(|settings| {
        settings.process.workers = 4;
        settings.process.control_socket = Some("/run/x.sock".into());
    });

    assert!(changes.made.is_empty());
    let told: Vec<_> = changes
        .deferred
        .iter()
        .map(|deferred| {
            format!(
                "{} {} {}",
                deferred.key, deferred.running, deferred.configured
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "process.workers 2 4",
            "process.control_socket off /run/x.sock"
        ]
    );
}
