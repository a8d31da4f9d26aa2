//! The commands that look at a running process, and the demo.

use std::process::Output;

use serde_json::Value;

use crate::support::evenkeel::{Evenkeel, evenkeel_command};
use crate::support::service::Service;
use crate::support::{client, ports, wait};

fn words_of(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The demo shows everything and ends by itself.
#[test]
fn the_demo_ends_by_itself() {
    let said = words_of(&run(&["demo", "--once"]));
    assert!(said.contains("a a b a c a a"), "{said}");
    assert!(said.contains("failed 0"), "{said}");
}

/// `route` says who would get a connection and why nobody else would, and sends nothing.
#[test]
fn route_explains_without_connecting() {
    let (a, other, front) = (Service::named("a"), Service::named("other"), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        endpoints = [
            {{ name = "a", address = "{}" }},
            {{ name = "zero", address = "{other}", weight = 0 }},
            {{ name = "disabled", address = "{other}", disabled = true }},
            {{ name = "backup", address = "{other}", backup = true }},
        ]
        "#,
        a.address(),
        other = other.address(),
    ));

    let said = words_of(&evenkeel.ask(&["route", "front", "192.0.2.7", "--json"]));
    let route: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(route["chosen"], "a");
    let verdicts = route["verdicts"].as_array().expect("a list");
    let verdicts: Vec<_> = verdicts
        .iter()
        .map(|verdict| verdict["verdict"].as_str())
        .collect();
    let expected = ["chosen", "weight-zero", "disabled", "backup-idle"].map(Some);
    assert_eq!(verdicts, expected, "{said}");
    let said = words_of(&evenkeel.ask(&["route", "front", "unix"]));
    assert!(
        said.starts_with("a connection from a Unix socket to front goes to letters/a\n"),
        "{said}"
    );
    assert_eq!((a.accepted(), other.accepted()), (0, 0));
}

/// The table for people has a line for each endpoint, with its state.
#[test]
fn status_draws_a_table() {
    let (a, front) = (Service::echo(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        endpoints = [{{ name = "first", address = "{}", weight = 7 }}, {{ name = "second", address = "{}", disabled = true }}]
        "#,
        a.address(),
        ports::free(),
    ));
    let mut session = client::connect(front);
    client::echo(&mut session, b"hello");

    let said = words_of(&evenkeel.ask(&["status"]));
    let line_of = |name: &str| {
        said.lines()
            .find(|line| line.contains(name))
            .unwrap_or_default()
    };
    assert!(line_of("first").contains("up"), "{said}");
    assert!(line_of("second").contains("disabled"), "{said}");
}

/// `stop --now` waits for nobody.
#[test]
fn stop_now_closes_sessions() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "echo"
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    ));
    let mut session = client::connect(front);
    client::echo(&mut session, b"hello");

    words_of(&evenkeel.ask(&["stop", "--now"]));
    wait::until_so("it has ended", || evenkeel.process().exited().is_some());
    assert_eq!(evenkeel.reasons(1), ["stop"]);
}

/// What `config dump` prints is a configuration itself, and dumps to the same.
#[test]
fn a_dumped_configuration_means_the_same() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = directory.path().join("first.toml");
    words_of(&run(&["init", &first.display().to_string()]));

    let dumped = words_of(&run(&["config", "dump", &first.display().to_string()]));
    let second = directory.path().join("second.toml");
    std::fs::write(&second, &dumped).expect("it is ours");
    let again = words_of(&run(&["config", "dump", &second.display().to_string()]));
    assert_eq!(dumped, again);
}

/// Every shell that is offered gets something.
#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(words_of(&run(&["completions", shell])).contains("evenkeel"));
    }
}

fn run(words: &[&str]) -> Output {
    evenkeel_command(words)
        .output()
        .expect("evenkeel can be started")
}
