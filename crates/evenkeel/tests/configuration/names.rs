//! Endpoints that are written as names: what is right, what is wrong, and what becomes of them.

use evenkeel::config::{self, Diagnostics, Loaded};

use crate::{WEB, only_problem};

/// A cluster of these endpoints.
fn with(endpoints: &str) -> Result<Loaded, Diagnostics> {
    config::parse_text("web.toml", &WEB.replace("\"10.0.0.1:80\"", endpoints))
}

/// Names stand where they are written, and two ports of one host are two endpoints.
#[test]
fn names_keep_their_place() {
    let loaded = with("\"db:80\", \"10.0.0.1:80\", \"db:81\", { srv = \"_a._tcp.db\" }").unwrap();
    let cluster = &loaded.settings.clusters[0];

    let facts = cluster.names.iter();
    let facts: Vec<(String, usize)> = facts
        .map(|named| (named.question.to_string(), named.position))
        .collect();

    assert_eq!(cluster.spec.endpoints.len(), 1);
    let expected = [("db:80", 0), ("db:81", 1), ("srv _a._tcp.db", 1)];
    assert_eq!(
        facts,
        expected.map(|(name, position)| (name.to_owned(), position))
    );
}

/// The same name twice would be the same endpoints twice.
#[test]
fn a_name_is_written_once() {
    let problem = only_problem(with("\"db:80\", \"db:80\""));
    assert!(problem.contains("has two endpoints `db:80`"), "{problem}");
}

/// What does not go together is told where it is.
#[test]
fn contradictions_are_pointed_at() {
    for (endpoints, expected) in [
        (
            "{ address = \"db:80\", srv = \"_a._tcp.db\" }",
            "an endpoint has an `address` or a `srv`, not both",
        ),
        (
            "{ address = \"10.0.0.1:80\", family = \"any\" }",
            "`family` goes with a name alone",
        ),
        ("{ weight = 3 }", "this endpoint has no `address`"),
        ("{ srv = \"_a._tcp.db:80\" }", "the SRV records bring it"),
        ("{ address = \"db\" }", "\"db:3306\""),
    ] {
        let problem = only_problem(with(endpoints));
        assert!(problem.contains(expected), "{endpoints}: {problem}");
    }
}

/// The bounds of the pace have an order, and a name server an address.
#[test]
fn a_pace_and_name_servers_are_checked() {
    for (dns, expected) in [
        (
            "refresh_min = \"10s\"\nrefresh_max = \"5s\"",
            "`refresh_max` is below `refresh_min`",
        ),
        ("servers = [\"ns.internal\"]", "must be an IP address"),
        (
            "servers = [\"::1\", \"::1\", \"::1\", \"::1\", \"::1\", \"::1\", \"::1\", \"::1\", \"::1\"]",
            "at most 8 name servers",
        ),
    ] {
        let problem = only_problem(config::parse_text(
            "web.toml",
            &format!("[dns]\n{dns}\n{WEB}"),
        ));
        assert!(problem.contains(expected), "{dns}: {problem}");
    }
}

/// What users of other balancers write leads to what is written here.
#[test]
fn words_of_other_balancers_lead_to_ours() {
    for (line, advice) in [
        ("balance = \"roundrobin\"", "did you mean \"round-robin\"?"),
        (
            "balance = \"leastconn\"",
            "did you mean \"least-connections\"?",
        ),
        ("balance = \"ip_hash\"", "did you mean \"source-hash\"?"),
        (
            "[listener.web2]\nbind = \"127.0.0.1:2\"\nto = \"web\"\nsplice = \"on\"",
            "did you mean \"auto\"?",
        ),
        (
            "[listener.web2]\nbind = \"127.0.0.1:2\"\nto = \"web\"\nproxy_protocol = \"v2\"",
            "write `proxy_protocol = { from = … }`",
        ),
        (
            "server = \"10.0.0.2:80\"",
            "this is called `endpoints` here",
        ),
        (
            "[backend.web2]\nendpoints = [\"10.0.0.1:80\"]",
            "this is called `cluster` here",
        ),
    ] {
        let problem = only_problem(config::parse_text("words.toml", &format!("{WEB}{line}\n")));
        assert!(problem.contains(advice), "{line}: {problem}");
    }
    let admin = format!("admin = \"127.0.0.1:9090\"\n{WEB}");
    let problem = only_problem(config::parse_text("words.toml", &admin));
    assert!(
        problem.contains("write `admin = { bind = … }`"),
        "{problem}"
    );
}
