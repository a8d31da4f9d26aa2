//! Holds the table of keys, the reader, the defaults, the reference and the example of all keys against each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Value;

use super::keys::{Absent, Form, Key, Table};
use super::tables::{
    CLUSTER, CLUSTER_TIMEOUTS, DEFAULT_TIMEOUTS, DNS, EJECTION, ENDPOINT, ENDPOINT_TLS, HEALTH,
    HTTP, INCLUDED, LISTENER, LISTENER_TIMEOUTS, LOG, POOL, PROCESS, ROOT, TABLES, TRIALS,
};
use super::{dump, parse_text, schema};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A table's rows as the reference shows them.
fn rows(table: &Table) -> Vec<String> {
    table.keys.iter().map(row).collect()
}

fn row(key: &Key) -> String {
    let default = match key.absent {
        Absent::Error => "required".to_owned(),
        Absent::Value(value) => format!("`{value}`"),
        Absent::Means(meaning) => meaning.to_owned(),
    };
    format!(
        "| `{}` | {} | {default} | {} |",
        key.name,
        key.form.describe(),
        key.about
    )
}

fn documented_tables() -> impl Iterator<Item = &'static Table> {
    TABLES
        .into_iter()
        .filter(|table| table.title != INCLUDED.title)
}

/// The reference has each key of each table, with its values, default and meaning, in the table's order, and no key beside them.
#[test]
fn the_reference_has_every_key_and_no_other() {
    let reference = fs::read_to_string(repository("docs/configuration.md")).unwrap();
    for table in documented_tables() {
        let block = rows(table).join("\n");
        assert!(
            reference.contains(&block),
            "the reference needs, for {}:\n{block}",
            table.title
        );
    }
    let known: BTreeSet<String> = documented_tables().flat_map(rows).collect();
    for line in reference.lines().filter(|line| is_row_of_a_key(line)) {
        assert!(known.contains(line), "the program has no such key: {line}");
    }
}

/// Commands have rows too; they are several words.
fn is_row_of_a_key(line: &str) -> bool {
    let cell = line
        .strip_prefix("| `")
        .and_then(|rest| rest.split_once('`'));
    cell.is_some_and(|(name, _)| !name.contains(' '))
}

/// The report that the reference shows is the one that its reader would see.
#[test]
fn the_report_in_the_reference_is_a_real_one() {
    let text = r#"[listener.mysql]
bind = "0.0.0.0:5555"
to = "mysqll"

[cluster.mysql]
balance = "least-connections"
endpoints = [
  { name = "db1", address = "10.0.0.11:3306", wieght = 3 },
]
"#;
    let report = parse_text("evenkeel.toml", text).unwrap_err().to_string();
    let reference = fs::read_to_string(repository("docs/configuration.md")).unwrap();
    assert!(
        reference.contains(&format!("```text\n{report}```")),
        "the reference should show:\n{report}"
    );
}

/// Every example in the reference that is a whole file passes the check.
#[test]
fn the_examples_of_the_reference_pass_the_check() {
    let reference = fs::read_to_string(repository("docs/configuration.md")).unwrap();
    let blocks = reference
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = blocks
        .filter(|block| block.contains("[listener.") && block.contains("[cluster."))
        .collect();
    assert!(!whole.is_empty());
    for text in whole {
        if let Err(diagnostics) = parse_text("docs/configuration.md", text) {
            panic!("{text}\n{diagnostics}");
        }
    }
}

/// `all-keys.toml` has every key, so that the reader is asked for each of them by a test that loads it.
#[test]
fn the_example_of_all_keys_has_them_all() {
    let text = fs::read_to_string(repository("examples/all-keys.toml")).unwrap();
    let document: Value = toml::from_str(&text).unwrap();
    let mut written = BTreeSet::new();
    collect_keys(&ROOT, &document, &mut written);
    for table in documented_tables() {
        for key in table.keys {
            assert!(
                written.contains(&(table.title, key.name)),
                "`{}` of {} is missing",
                key.name,
                table.title
            );
        }
    }
}

/// Descends wherever the table of keys does: into a table, into each named one, and into each item of a list.
fn collect_keys(
    table: &'static Table,
    value: &Value,
    written: &mut BTreeSet<(&'static str, &'static str)>,
) {
    let Some(entries) = value.as_table() else {
        return;
    };
    let known = table
        .keys
        .iter()
        .filter_map(|key| Some((key, entries.get(key.name)?)));
    for (key, value) in known {
        written.insert((table.title, key.name));
        for (inner, value) in inner_values(key, value) {
            collect_keys(inner, value, written);
        }
    }
}

fn inner_values<'v>(key: &Key, value: &'v Value) -> Vec<(&'static Table, &'v Value)> {
    let Some(inner) = key.form.inner() else {
        return Vec::new();
    };
    match (&key.form, value) {
        (Form::Named(_), Value::Table(named)) => {
            named.values().map(|value| (inner, value)).collect()
        }
        (_, Value::Array(items)) => items.iter().map(|item| (inner, item)).collect(),
        _ => vec![(inner, value)],
    }
}

/// Each default of the table is what the program does when the key is left out.
#[test]
fn the_defaults_are_the_real_ones() {
    let loaded = parse_text("small.toml", SMALL).unwrap();
    let dumped: Value = toml::from_str(&dump(&loaded)).unwrap();
    for table in documented_tables() {
        for key in table.keys {
            if let Absent::Value(default) = key.absent {
                let expected: Value = toml::from_str::<toml::Table>(&format!("value = {default}"))
                    .unwrap()["value"]
                    .clone();
                let found = places_of(table)
                    .iter()
                    .find_map(|path| look_up(&dumped, path)?.get(key.name).cloned());
                assert_eq!(found, Some(expected), "`{}` of {}", key.name, table.title);
            }
        }
    }
}

/// One cluster with nothing but its endpoints, one with a balancer that takes a bound, which is off, and two that are probed.
const SMALL: &str = r#"
    [listener.web]
    bind = "127.0.0.1:8080"
    to = "web"
    [cluster.web]
    endpoints = ["10.0.0.1:80"]
    [cluster.asked]
    endpoints = ["10.0.0.1:80"]
    health = { check = "http", tls = {} }
    [cluster.greeted]
    endpoints = ["10.0.0.1:80"]
    health = { check = "send-expect", expect = "220 " }
    [listener.requests]
    bind = "127.0.0.1:9"
    protocol = "http"
    to = "web"
    [cluster.hashed]
    balance = "source-hash"
    endpoints = ["10.0.0.1:80"]
"#;

/// Where a dump of [`SMALL`] shows what became of a table's keys.
fn places_of(table: &Table) -> &'static [&'static str] {
    let places: [(&Table, &[&str]); 14] = [
        (&ENDPOINT_TLS, &["cluster.asked.health.tls"]),
        (&PROCESS, &["process"]),
        (&LOG, &["log"]),
        (&DNS, &["dns"]),
        (
            &DEFAULT_TIMEOUTS,
            &["listener.web.timeouts", "cluster.web.timeouts"],
        ),
        (&LISTENER, &["listener.web"]),
        (&LISTENER_TIMEOUTS, &["listener.web.timeouts"]),
        (
            &CLUSTER,
            &["cluster.web", "cluster.hashed", "cluster.asked"],
        ),
        (&HEALTH, &["cluster.asked.health", "cluster.greeted.health"]),
        (&CLUSTER_TIMEOUTS, &["cluster.web.timeouts"]),
        (&EJECTION, &["cluster.web.ejection"]),
        (&TRIALS, &["cluster.web.trials"]),
        (&POOL, &["cluster.web.pool"]),
        (&HTTP, &["listener.requests.http"]),
    ];
    match places.iter().find(|(other, _)| other.title == table.title) {
        Some((_, paths)) => paths,
        None if table.title == ENDPOINT.title => &["cluster.web.endpoints.0"],
        None => &[],
    }
}

fn look_up<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.')
        .try_fold(value, |value, step| match step.parse::<usize>() {
            Ok(index) => value.get(index),
            Err(_) => value.get(step),
        })
}

/// An editor that knows the schema knows every key, what it means, and that there is no other.
#[test]
fn the_schema_describes_every_key() {
    let schema = schema();
    let cluster = &schema["properties"]["cluster"]["additionalProperties"];
    assert_eq!(cluster["additionalProperties"], false);
    assert_eq!(cluster["required"], serde_json::json!(["endpoints"]));
    assert_eq!(cluster["properties"]["attempts"]["default"], 3);
    let names: BTreeSet<&String> = cluster["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), CLUSTER.keys.len());
    for key in CLUSTER.keys {
        let description = cluster["properties"][key.name]["description"]
            .as_str()
            .unwrap();
        assert!(description.starts_with(key.about), "{description}");
    }
}
