//! What is right in a configuration, and worth a second look all the same. `check` says it; nothing depends on it.

use std::collections::HashSet;
use std::fs::File;

use evenkeel_proxy::settings::{
    Check, ClusterSettings, FailureReply, ListenerSettings, Secret, Settings,
};

/// Where MySQL and MariaDB listen unless told otherwise.
const MYSQL_PORT: u16 = 3306;

/// One line each.
pub(crate) fn notes(settings: &Settings) -> Vec<String> {
    let mut notes = unused_clusters(settings);
    for cluster in &settings.clusters {
        notes.extend(knocking_at_mysql(cluster, &settings.listeners));
        notes.extend(unreadable_password(cluster));
        notes.extend(waiting_for_each_other(cluster, &settings.listeners));
    }
    notes
}

/// A cluster that nothing leads to is no error: its listener may be yet to come.
fn unused_clusters(settings: &Settings) -> Vec<String> {
    let listeners = &settings.listeners;
    let targets: HashSet<&str> = listeners
        .iter()
        .flat_map(ListenerSettings::targets)
        .map(|target| &**target)
        .collect();
    let clusters = settings.clusters.iter();
    let names = clusters.map(|cluster| &*cluster.spec.name);
    names
        .filter(|name| !targets.contains(name))
        .map(|name| format!("no listener sends to cluster `{name}`"))
        .collect()
}

/// A connection without a login is an error to such a server, and too many of them block whoever makes them.
fn knocking_at_mysql(cluster: &ClusterSettings, listeners: &[ListenerSettings]) -> Option<String> {
    let probe = cluster.probe.as_ref()?;
    let name = &cluster.spec.name;
    (probe.check == Check::Tcp && looks_like_mysql(cluster, listeners)).then(|| {
        format!(
            "cluster `{name}` looks like MySQL, and its check \"tcp\" sees neither a full server nor a node that is not ready; \
             where it gets through, it counts toward the server's max_connect_errors: use `check = \"mysql\"`"
        )
    })
}

/// A client of MySQL says nothing before it is greeted.
fn waiting_for_each_other(
    cluster: &ClusterSettings,
    listeners: &[ListenerSettings],
) -> Option<String> {
    let name = &cluster.spec.name;
    let mut waiting = listeners
        .iter()
        .filter(|listener| listener.empty_reply.is_some());
    let listener = waiting.find(|listener| listener.leads_to(name))?;
    looks_like_mysql(cluster, listeners).then(|| {
        format!(
            "cluster `{name}` looks like MySQL, where the server speaks first, and the `empty_reply` of listener `{}` waits for the client: \
             none would ever be greeted; leave it out",
            listener.name
        )
    })
}

fn looks_like_mysql(cluster: &ClusterSettings, listeners: &[ListenerSettings]) -> bool {
    let mut addresses = cluster.spec.endpoints.iter();
    let has_its_port = addresses.any(|endpoint| {
        let address = endpoint.address.ip();
        address.is_some_and(|address| address.port() == MYSQL_PORT)
    });
    let probe = cluster.probe.as_ref();
    let is_asked_as_mysql = probe.is_some_and(|probe| matches!(probe.check, Check::Mysql(_)));
    let mut listeners = listeners.iter();
    has_its_port
        || is_asked_as_mysql
        || listeners.any(|listener| {
            listener.leads_to(&cluster.spec.name)
                && listener.failure_reply == Some(FailureReply::MysqlError)
        })
}

/// It may be put there later; until then nothing can be asked.
fn unreadable_password(cluster: &ClusterSettings) -> Option<String> {
    let secret = cluster.probe.as_ref()?.check.secret()?;
    let Secret::File(path) = secret else {
        return None;
    };
    let error = File::open(path).err()?;
    let (name, path) = (&cluster.spec.name, path.display());
    Some(format!(
        "the probes of cluster `{name}` cannot read their password in {path}: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::config;

    use super::*;

    fn notes_on(text: &str) -> Vec<String> {
        notes(&config::parse_text("test.toml", text).unwrap().settings)
    }

    /// A plain connect to what is MySQL by its port, or by what its clients are told.
    #[test]
    fn a_knock_at_mysql_is_noted() {
        const FRONT: &str = "[listener.a]\nbind = \"127.0.0.1:1\"\nto = \"a\"\n";
        let by_port = "[cluster.a]\nendpoints = [\"10.0.0.1:3306\"]\nhealth = { check = \"tcp\" }";
        let by_reply = "failure_reply = \"mysql-error\"\n[cluster.a]\nendpoints = [\"10.0.0.1:13306\"]\nhealth = { check = \"tcp\" }";
        for cluster in [by_port, by_reply] {
            let text = format!("{FRONT}{cluster}");
            assert!(notes_on(&text)[0].contains("max_connect_errors"), "{text}");
            let asked = text.replace("\"tcp\"", "\"mysql\", user = \"u\"");
            assert!(notes_on(&asked).is_empty(), "{asked}");
        }
    }

    /// A listener that waits for its client in front of a server that waits for nobody; elsewhere that is right.
    #[test]
    fn waiting_before_a_server_that_speaks_first_is_noted() {
        let config = |port: u16, health: &str| {
            format!(
                "[listener.a]\nbind = \"127.0.0.1:1\"\nto = \"a\"\nempty_reply = \"hello?\"\n\
                 [cluster.a]\nendpoints = [\"10.0.0.1:{port}\"]\n{health}"
            )
        };
        let asked = "health = { check = \"mysql\", user = \"u\" }";
        for text in [config(3306, ""), config(13306, asked)] {
            assert!(notes_on(&text)[0].contains("`empty_reply`"), "{text}");
        }
        assert!(notes_on(&config(6379, "")).is_empty());
    }

    /// A password that is not there yet is named by its path.
    #[test]
    fn a_missing_password_is_noted() {
        let notes = notes_on(
            "[listener.a]\nbind = \"127.0.0.1:1\"\nto = \"a\"\n[cluster.a]\nendpoints = [\"10.0.0.1:1\"]\n\
             health = { check = \"redis\", password_file = \"/nowhere/password\" }",
        );
        assert!(notes[0].contains("/nowhere/password"), "{notes:?}");
    }
}
