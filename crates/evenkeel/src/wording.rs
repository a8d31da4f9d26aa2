//! How the changes of a reload are told: one line for all of them, or one for each.

use evenkeel_proxy::{Change, Deferred};

/// One line: what kinds of changes there are, and how many of each.
pub(crate) fn summary(changes: &[Change], sessions: u64) -> String {
    let mut counts: Vec<(Kind, u64)> = Vec::new();
    for kind in changes.iter().map(kind) {
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let mut told: Vec<String> = counts
        .iter()
        .map(|((nouns, done), count)| format!("{} {done}", counted(*count, *nouns)))
        .collect();
    if told.is_empty() {
        told.push("nothing changed".to_owned());
    }
    told.push(format!(
        "{} unaffected",
        counted(sessions, ["connection", "connections"])
    ));
    told.join(", ")
}

/// A line for one change.
pub(crate) fn line(change: &Change) -> String {
    match change {
        Change::ListenerAdded { listener, bind } => {
            format!("listener {listener}: added, on {bind}")
        }
        Change::ListenerRemoved { listener } => format!("listener {listener}: removed"),
        Change::ListenerRenamed { listener, from } => {
            format!("listener {listener}: was called {from}")
        }
        Change::ListenerMoved { listener, from, to } => {
            format!("listener {listener}: moved from {from} to {to}")
        }
        Change::ListenerRestored { listener } => {
            format!("listener {listener}: the file of its socket was gone, and is there again")
        }
        Change::ListenerChanged { listener, keys } => {
            format!("listener {listener}: {}", changed(keys))
        }
        Change::ClusterAdded { cluster, endpoints } => format!(
            "cluster {cluster}: added, with {}",
            counted(*endpoints as u64, ["endpoint", "endpoints"])
        ),
        Change::ClusterRemoved { cluster } => format!("cluster {cluster}: removed"),
        Change::ClusterChanged { cluster, keys } => format!("cluster {cluster}: {}", changed(keys)),
        Change::EndpointAdded { cluster, endpoint } => {
            format!("endpoint {cluster}/{endpoint}: added")
        }
        Change::EndpointRemoved { cluster, endpoint } => {
            format!("endpoint {cluster}/{endpoint}: removed, its connections finish")
        }
        Change::EndpointMoved {
            cluster,
            endpoint,
            from,
            to,
        } => format!(
            "endpoint {cluster}/{endpoint}: moved from {from}, whose connections finish, to {to}"
        ),
        Change::EndpointReweighed {
            cluster,
            endpoint,
            from,
            to,
        } => format!("endpoint {cluster}/{endpoint}: weight {from} is now {to}"),
        Change::EndpointChanged {
            cluster,
            endpoint,
            keys,
        } => format!("endpoint {cluster}/{endpoint}: {}", changed(keys)),
        Change::LogChanged { keys } => format!("log: {}", changed(keys)),
        Change::ProcessChanged { keys } => format!("process: {}", changed(keys)),
    }
}

/// A line for a key that waits for a restart.
pub(crate) fn deferral(deferred: &Deferred) -> String {
    let Deferred {
        key,
        running,
        configured,
    } = deferred;
    format!(
        "{key} = {configured} takes effect after a restart or an upgrade; until then it is {running}"
    )
}

fn changed(keys: &[String]) -> String {
    if keys.is_empty() {
        return "changed".to_owned();
    }
    format!("changed {}", keys.join(", "))
}

fn counted(count: u64, [one, many]: [&str; 2]) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{count} {noun}")
}

/// What a change is about, in the singular and the plural, and what was done to it.
type Kind = ([&'static str; 2], &'static str);

const fn kind(change: &Change) -> Kind {
    const ENDPOINTS: [&str; 2] = ["endpoint", "endpoints"];
    const LISTENERS: [&str; 2] = ["listener", "listeners"];
    const CLUSTERS: [&str; 2] = ["cluster", "clusters"];
    match change {
        Change::ListenerAdded { .. } => (LISTENERS, "added"),
        Change::ListenerRemoved { .. } => (LISTENERS, "removed"),
        Change::ListenerRenamed { .. } => (LISTENERS, "renamed"),
        Change::ListenerMoved { .. } => (LISTENERS, "moved"),
        Change::ListenerRestored { .. } => (LISTENERS, "restored"),
        Change::ListenerChanged { .. } => (LISTENERS, "changed"),
        Change::ClusterAdded { .. } => (CLUSTERS, "added"),
        Change::ClusterRemoved { .. } => (CLUSTERS, "removed"),
        Change::ClusterChanged { .. } => (CLUSTERS, "changed"),
        Change::EndpointAdded { .. } => (ENDPOINTS, "added"),
        Change::EndpointRemoved { .. } => (ENDPOINTS, "removed"),
        Change::EndpointMoved { .. } => (ENDPOINTS, "moved"),
        Change::EndpointReweighed { .. } => (["weight", "weights"], "changed"),
        Change::EndpointChanged { .. } => (ENDPOINTS, "changed"),
        Change::LogChanged { .. } => (["log setting", "log settings"], "changed"),
        Change::ProcessChanged { .. } => (["process setting", "process settings"], "changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(endpoint: &str) -> Change {
        Change::EndpointAdded {
            cluster: "web".to_owned(),
            endpoint: endpoint.to_owned(),
        }
    }

    fn reweighed() -> Change {
        Change::EndpointReweighed {
            cluster: "web".to_owned(),
            endpoint: "a".to_owned(),
            from: 1,
            to: 3,
        }
    }

    /// The line that an operator reads after each reload.
    #[test]
    fn changes_are_summed_up_by_kind() {
        let changes = [added("b"), reweighed(), added("c")];

        assert_eq!(
            summary(&changes, 143),
            "2 endpoints added, 1 weight changed, 143 connections unaffected"
        );
        assert_eq!(summary(&[], 1), "nothing changed, 1 connection unaffected");
    }

    /// Each change has a line of its own, which names what it is about.
    #[test]
    fn each_change_has_a_line() {
        assert_eq!(line(&added("b")), "endpoint web/b: added");
        assert_eq!(line(&reweighed()), "endpoint web/a: weight 1 is now 3");
        let keys = vec!["to".to_owned(), "timeouts.idle".to_owned()];
        let listener = "front".to_owned();
        let changed = Change::ListenerChanged { listener, keys };
        assert_eq!(line(&changed), "listener front: changed to, timeouts.idle");
    }

    /// A key that waits is told with both of its values.
    #[test]
    fn what_waits_for_a_restart_is_told_with_both_values() {
        let deferred = Deferred {
            key: "process.workers".to_owned(),
            running: "2".to_owned(),
            configured: "4".to_owned(),
        };
        assert_eq!(
            deferral(&deferred),
            "process.workers = 4 takes effect after a restart or an upgrade; until then it is 2"
        );
    }
}
