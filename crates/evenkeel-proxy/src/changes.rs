//! What is different between two configurations, in the words of the configuration. Pure.
//!
//! Listeners and clusters are known by their names, endpoints by name and address, as everything that a reload keeps. How a list
//! of changes looks is the program's business.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use evenkeel_core::{ClusterSpec, EndpointSpec};
use serde::{Deserialize, Serialize};

use crate::settings::{
    AccessLogSettings, ClusterSettings, ListenerSettings, ListenerTimeouts, NamedEndpoints,
    ProcessSettings, Protocol, Settings,
};

/// What a reload changes, and what it leaves for a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What takes effect at once, in the order of the file.
    pub made: Vec<Change>,
    /// What takes effect after a restart.
    pub deferred: Vec<Deferred>,
}

/// One difference. `keys` are those of the file, of the same table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the fields say what the variants and the file say"
)]
pub enum Change {
    /// It accepts connections from now on.
    ListenerAdded { listener: String, bind: String },
    /// It accepts none any more.
    ListenerRemoved { listener: String },
    /// The same address under another name.
    ListenerRenamed { listener: String, from: String },
    /// Another address under the same name.
    ListenerMoved {
        listener: String,
        from: String,
        to: String,
    },
    /// The file of its socket was gone, and is there again.
    ListenerRestored { listener: String },
    /// Other settings on the same address.
    ListenerChanged { listener: String, keys: Vec<String> },
    /// With so many endpoints.
    ClusterAdded { cluster: String, endpoints: usize },
    /// Its sessions finish.
    ClusterRemoved { cluster: String },
    /// Other policies; its endpoints are told of apart.
    ClusterChanged { cluster: String, keys: Vec<String> },
    /// It gets sessions from now on.
    EndpointAdded { cluster: String, endpoint: String },
    /// It drains.
    EndpointRemoved { cluster: String, endpoint: String },
    /// Another address under the same name: the old one drains, the new one starts afresh.
    EndpointMoved {
        cluster: String,
        endpoint: String,
        from: String,
        to: String,
    },
    /// Another weight.
    EndpointReweighed {
        cluster: String,
        endpoint: String,
        from: u32,
        to: u32,
    },
    /// Something else about it.
    EndpointChanged {
        cluster: String,
        endpoint: String,
        keys: Vec<String>,
    },
    /// The table `log`.
    LogChanged { keys: Vec<String> },
    /// The table `process`.
    ProcessChanged { keys: Vec<String> },
}

/// A key that a running process cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// The key, with its table.
    pub key: String,
    /// What goes on until then.
    pub running: String,
    /// What the file says.
    pub configured: String,
}

impl Changes {
    /// What is different in `after`.
    pub fn between(before: &Settings, after: &Settings) -> Self {
        let mut made = Vec::new();
        made.extend(process_change(&before.process, &after.process));
        made.extend(log_change(&before.access_log, &after.access_log));
        listener_changes(&before.listeners, &after.listeners, &mut made);
        cluster_changes(&before.clusters, &after.clusters, &mut made);
        Self {
            made,
            deferred: deferred(before, after),
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.deferred.is_empty()
    }
}

/// The names of what is different.
fn keys<const N: usize>(different: [(&str, bool); N]) -> Vec<String> {
    let named = different.iter().filter(|(_, is_different)| *is_different);
    named.map(|(key, _)| (*key).to_owned()).collect()
}

fn process_change(before: &ProcessSettings, after: &ProcessSettings) -> Option<Change> {
    let keys = keys([
        (
            "max_connections",
            before.max_connections != after.max_connections,
        ),
        ("ready_delay", before.ready_delay != after.ready_delay),
        ("stop_deadline", before.stop_deadline != after.stop_deadline),
    ]);
    (!keys.is_empty()).then_some(Change::ProcessChanged { keys })
}

fn log_change(before: &AccessLogSettings, after: &AccessLogSettings) -> Option<Change> {
    let keys = keys([
        ("access", before.destination != after.destination),
        ("access_format", before.format != after.format),
    ]);
    (!keys.is_empty()).then_some(Change::LogChanged { keys })
}

fn deferred(before: &Settings, after: &Settings) -> Vec<Deferred> {
    let admin = |settings: &Settings| match &settings.admin {
        Some(admin) => admin.bind.to_string(),
        None => "off".to_owned(),
    };
    let admin = difference("admin.bind", &admin(before), &admin(after));
    let mut deferred = deferred_process(&before.process, &after.process);
    deferred.extend(admin);
    deferred
}

fn deferred_process(before: &ProcessSettings, after: &ProcessSettings) -> Vec<Deferred> {
    let socket = |process: &ProcessSettings| {
        let path = process.control_socket.as_ref();
        path.map_or_else(|| "off".to_owned(), |path| path.display().to_string())
    };
    let state = |process: &ProcessSettings| {
        let path = process.state_file.as_ref();
        path.map_or_else(|| "off".to_owned(), |path| path.display().to_string())
    };
    let candidates = [
        difference("process.workers", &before.workers, &after.workers),
        difference(
            "process.splice_pipes_max",
            &before.splice_pipes_max,
            &after.splice_pipes_max,
        ),
        difference("process.control_socket", &socket(before), &socket(after)),
        difference("process.state_file", &state(before), &state(after)),
    ];
    candidates.into_iter().flatten().collect()
}

fn difference<T: PartialEq + Display>(key: &str, before: &T, after: &T) -> Option<Deferred> {
    (before != after).then(|| Deferred {
        key: key.to_owned(),
        running: before.to_string(),
        configured: after.to_string(),
    })
}

fn listener_changes(
    before: &[ListenerSettings],
    after: &[ListenerSettings],
    made: &mut Vec<Change>,
) {
    let new_names: HashSet<&str> = after.iter().map(|listener| &*listener.name).collect();
    let mut old: HashMap<&str, &ListenerSettings> = before
        .iter()
        .map(|listener| (&*listener.name, listener))
        .collect();
    for listener in after {
        match old.remove(&*listener.name) {
            Some(same) => change_of_listener(same, listener, made),
            None => {
                let on_address = old
                    .values()
                    .find(|gone| gone.bind == listener.bind && !new_names.contains(&*gone.name));
                let renamed = on_address.copied();
                if let Some(renamed) = renamed {
                    old.remove(&*renamed.name);
                }
                made.push(arrival(listener, renamed));
            }
        }
    }
    let gone = before.iter().filter(|known| old.contains_key(&*known.name));
    made.extend(gone.map(|listener| Change::ListenerRemoved {
        listener: listener.name.to_string(),
    }));
}

fn arrival(listener: &ListenerSettings, renamed: Option<&ListenerSettings>) -> Change {
    let name = listener.name.to_string();
    match renamed {
        Some(before) => Change::ListenerRenamed {
            listener: name,
            from: before.name.to_string(),
        },
        None => Change::ListenerAdded {
            listener: name,
            bind: listener.bind.to_string(),
        },
    }
}

fn change_of_listener(before: &ListenerSettings, after: &ListenerSettings, made: &mut Vec<Change>) {
    let listener = || after.name.to_string();
    if before.bind != after.bind {
        made.push(Change::ListenerMoved {
            listener: listener(),
            from: before.bind.to_string(),
            to: after.bind.to_string(),
        });
    }
    let moved = ListenerSettings {
        bind: after.bind.clone(),
        ..before.clone()
    };
    if moved != *after {
        made.push(Change::ListenerChanged {
            listener: listener(),
            keys: listener_keys(before, after),
        });
    }
}

fn listener_keys(before: &ListenerSettings, after: &ListenerSettings) -> Vec<String> {
    let mut changed = keys([
        ("to", before.to != after.to),
        ("routes", before.routes != after.routes),
        ("permissions", before.permissions != after.permissions),
        (
            "max_connections",
            before.max_connections != after.max_connections,
        ),
        (
            "proxy_protocol",
            before.proxy_protocol != after.proxy_protocol,
        ),
        ("splice", before.splice != after.splice),
        ("failure_reply", before.failure_reply != after.failure_reply),
        ("empty_reply", before.empty_reply != after.empty_reply),
    ]);
    changed.extend(protocol_keys(&before.protocol, &after.protocol));
    changed.extend(timeout_keys(&before.timeouts, &after.timeouts));
    changed
}

fn protocol_keys(before: &Protocol, after: &Protocol) -> Vec<String> {
    let (Protocol::Http(before), Protocol::Http(after)) = (before, after) else {
        return keys([("protocol", before != after)]);
    };
    keys([
        ("routes", before.routes != after.routes),
        ("timeouts", before.timeouts != after.timeouts),
        ("limits", before.limits != after.limits),
        ("forwarding", before.forwarding != after.forwarding),
        ("reason_header", before.reason_header != after.reason_header),
    ])
}

fn timeout_keys(before: &ListenerTimeouts, after: &ListenerTimeouts) -> Vec<String> {
    keys([
        ("timeouts.idle", before.idle != after.idle),
        (
            "timeouts.half_closed",
            before.half_closed != after.half_closed,
        ),
        ("timeouts.preread", before.preread != after.preread),
        ("timeouts.dead_peer", before.dead_peer != after.dead_peer),
    ])
}

fn cluster_changes(before: &[ClusterSettings], after: &[ClusterSettings], made: &mut Vec<Change>) {
    let mut old: HashMap<&str, &ClusterSettings> = before
        .iter()
        .map(|cluster| (&*cluster.spec.name, cluster))
        .collect();
    for cluster in after {
        match old.remove(&*cluster.spec.name) {
            Some(same) => change_of_cluster(same, cluster, made),
            None => made.push(Change::ClusterAdded {
                cluster: cluster.spec.name.to_string(),
                endpoints: cluster.spec.endpoints.len(),
            }),
        }
    }
    let names = before.iter().map(|cluster| &cluster.spec.name);
    let gone = names.filter(|name| old.contains_key(&***name));
    made.extend(gone.map(|name| Change::ClusterRemoved {
        cluster: name.to_string(),
    }));
}

fn change_of_cluster(before: &ClusterSettings, after: &ClusterSettings, made: &mut Vec<Change>) {
    let cluster = &after.spec.name;
    if without_endpoints(before) != without_endpoints(after) {
        made.push(Change::ClusterChanged {
            cluster: cluster.to_string(),
            keys: cluster_keys(before, after),
        });
    }
    endpoint_changes(cluster, &before.spec.endpoints, &after.spec.endpoints, made);
    name_changes(cluster, &before.names, &after.names, made);
}

fn without_endpoints(settings: &ClusterSettings) -> ClusterSettings {
    let spec = ClusterSpec {
        endpoints: Vec::new(),
        ..settings.spec.clone()
    };
    ClusterSettings {
        spec,
        names: Vec::new(),
        ..settings.clone()
    }
}

fn cluster_keys(before: &ClusterSettings, after: &ClusterSettings) -> Vec<String> {
    let (old, new) = (&before.spec, &after.spec);
    keys([
        (
            "balance",
            old.balance != new.balance || before.key != after.key,
        ),
        ("trials", old.trials != new.trials),
        ("ejection", old.ejection != new.ejection),
        (
            "health",
            old.health != new.health || before.probe != after.probe,
        ),
        ("on_down", before.on_down != after.on_down),
        ("failback", old.failback != new.failback),
        ("slow_start", old.slow_start != new.slow_start),
        ("queue_max", old.queue_max != new.queue_max),
        ("when_none", old.when_none != new.when_none),
        ("attempts", before.attempts != after.attempts),
        ("replay", before.replay != after.replay),
        ("pool", before.pool != after.pool),
        (
            "proxy_protocol",
            before.proxy_protocol != after.proxy_protocol,
        ),
        (
            "timeouts.connect",
            before.connect_timeout != after.connect_timeout,
        ),
        (
            "timeouts.queue",
            before.queue_timeout != after.queue_timeout,
        ),
        (
            "timeouts.first_byte",
            before.first_byte_timeout != after.first_byte_timeout,
        ),
    ])
}

/// A name is told of as the endpoint that the file has it for; what it leads to is told in the log.
fn name_changes(
    cluster: &Arc<str>,
    before: &[NamedEndpoints],
    after: &[NamedEndpoints],
    made: &mut Vec<Change>,
) {
    let cluster = || cluster.to_string();
    for new in after {
        let endpoint = new.label.to_string();
        match before.iter().find(|old| old.label == new.label) {
            None => made.push(Change::EndpointAdded {
                cluster: cluster(),
                endpoint,
            }),
            Some(old) => {
                let keys = name_keys(old, new);
                if !keys.is_empty() {
                    made.push(Change::EndpointChanged {
                        cluster: cluster(),
                        endpoint,
                        keys,
                    });
                }
            }
        }
    }
    let stays = |old: &&NamedEndpoints| after.iter().any(|new| new.label == old.label);
    let gone = before.iter().filter(|old| !stays(old));
    made.extend(gone.map(|old| Change::EndpointRemoved {
        cluster: cluster(),
        endpoint: old.label.to_string(),
    }));
}

fn name_keys(before: &NamedEndpoints, after: &NamedEndpoints) -> Vec<String> {
    keys([
        ("address", before.question != after.question),
        ("weight", before.weight != after.weight),
        ("backup", before.backup != after.backup),
        ("disabled", before.disabled != after.disabled),
        (
            "max_connections",
            before.max_connections != after.max_connections,
        ),
    ])
}

fn endpoint_changes(
    cluster: &Arc<str>,
    before: &[EndpointSpec],
    after: &[EndpointSpec],
    made: &mut Vec<Change>,
) {
    let mut old: HashMap<&str, &EndpointSpec> = before
        .iter()
        .map(|endpoint| (&*endpoint.name, endpoint))
        .collect();
    for endpoint in after {
        match old.remove(&*endpoint.name) {
            Some(same) => change_of_endpoint(cluster, same, endpoint, made),
            None => made.push(Change::EndpointAdded {
                cluster: cluster.to_string(),
                endpoint: endpoint.name.to_string(),
            }),
        }
    }
    let gone = before.iter().filter(|known| old.contains_key(&*known.name));
    made.extend(gone.map(|endpoint| Change::EndpointRemoved {
        cluster: cluster.to_string(),
        endpoint: endpoint.name.to_string(),
    }));
}

fn change_of_endpoint(
    cluster: &Arc<str>,
    before: &EndpointSpec,
    after: &EndpointSpec,
    made: &mut Vec<Change>,
) {
    let names = || (cluster.to_string(), after.name.to_string());
    if before.address != after.address {
        let (cluster, endpoint) = names();
        made.push(Change::EndpointMoved {
            cluster,
            endpoint,
            from: before.address.to_string(),
            to: after.address.to_string(),
        });
    }
    if before.weight != after.weight {
        let (cluster, endpoint) = names();
        made.push(Change::EndpointReweighed {
            cluster,
            endpoint,
            from: before.weight.get(),
            to: after.weight.get(),
        });
    }
    let keys = keys([
        ("backup", before.backup != after.backup),
        ("disabled", before.disabled != after.disabled),
        (
            "max_connections",
            before.max_connections != after.max_connections,
        ),
    ]);
    if !keys.is_empty() {
        let (cluster, endpoint) = names();
        made.push(Change::EndpointChanged {
            cluster,
            endpoint,
            keys,
        });
    }
}

#[cfg(test)]
mod tests;
