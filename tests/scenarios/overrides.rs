//! What an operator says of endpoints at run time: in force at once, kept where that was asked for, beaten by a changed file.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::evenkeel::{Evenkeel, Launch, evenkeel_command};
use crate::support::process::Signal;
use crate::support::service::{Service, echo};
use crate::support::{client, ports, wait};

/// A cluster `letters` of `a` and `b` behind `front`; `more` is what else the cluster says.
struct World {
    front: SocketAddr,
    a: Service,
    b: Service,
}

impl World {
    fn new() -> Self {
        Self {
            front: ports::free(),
            a: Service::echo(),
            b: Service::echo(),
        }
    }

    fn config(&self, a: &str, b: &str, more: &str) -> String {
        format!(
            r#"
            [listener.front]
            bind = "{}"
            to = "letters"
            [cluster.letters]
            endpoints = [
                {{ name = "a", address = "{}"{a} }},
                {{ name = "b", address = "{}"{b} }},
            ]
            {more}
            "#,
            self.front,
            self.a.address(),
            self.b.address(),
        )
    }

    fn start(&self) -> Evenkeel {
        Evenkeel::start(self.config("", "", ""))
    }

    /// With a state file beside the configuration.
    fn start_keeping(&self, more: &str) -> Evenkeel {
        Launch::new(self.config("", "", more))
            .process("workers = 2\nstate_file = \"./state.json\"")
            .start()
    }

    /// So many sessions, one after the other; how many of them each endpoint got.
    fn visit(&self, sessions: usize) -> (usize, usize) {
        let before = (self.a.accepted(), self.b.accepted());
        for _ in 0..sessions {
            client::echo(&mut client::connect(self.front), b"hello");
        }
        (self.a.accepted() - before.0, self.b.accepted() - before.1)
    }
}

#[track_caller]
fn done(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn state(evenkeel: &Evenkeel, endpoint: &str) -> String {
    let endpoint = evenkeel.endpoint("letters", endpoint);
    endpoint["state"].as_str().expect("a word").to_owned()
}

fn restart(evenkeel: &mut Evenkeel) {
    evenkeel.process().signal(Signal::TERM);
    evenkeel.process().exit();
    evenkeel.start_again();
}

/// Replaces something in the configuration.
fn edit(evenkeel: &Evenkeel, from: &str, to: &str) {
    let path = evenkeel.config_path();
    let text = fs::read_to_string(&path).expect("it is there");
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replacen(from, to, 1)).expect("it is ours");
}

/// The next sessions go by the new weight, `status` marks it, and the answer has the line for the file.
#[test]
fn a_weight_is_in_force_at_once() {
    let world = World::new();
    let evenkeel = world.start();
    let said = done(&evenkeel.ask(&["endpoint", "weight", "letters/a", "3"]));
    let line = format!(
        "{{ name = \"a\", address = \"{}\", weight = 3 }}",
        world.a.address()
    );
    assert!(said.contains(&line), "{said}");
    assert!(said.contains("until evenkeel is restarted"), "{said}");
    let (a, b) = world.visit(40);
    assert!((28..=32).contains(&a), "{a} and {b}");
    let table = done(&evenkeel.ask(&["status"]));
    assert!(table.contains("3 (configured 1)"), "{table}");
    done(&evenkeel.ask(&["endpoint", "weight", "letters/a", "1"]));
    let overrides = &evenkeel.endpoint("letters", "a")["overrides"];
    assert_eq!(overrides, &serde_json::json!({}));
}

/// Two sessions are open: they go on, the count falls with them, and the command ends with the last.
#[test]
fn a_drain_is_waited_for() {
    let world = World::new();
    let evenkeel = world.start();
    done(&evenkeel.ask(&["endpoint", "disable", "letters/b"]));
    let mut first = client::connect(world.front);
    client::echo(&mut first, b"hello");
    let mut second = client::connect(world.front);
    client::echo(&mut second, b"hello");
    done(&evenkeel.ask(&["endpoint", "enable", "letters/b"]));

    let mut drain = start(&evenkeel, &["endpoint", "drain", "letters/a", "--wait"]);
    wait::until_so("it drains", || state(&evenkeel, "a") == "draining");
    assert_eq!(world.visit(4), (0, 4));
    client::echo(&mut first, b"still here");
    drop(first);
    wait::until_so("one is left", || in_flight(&evenkeel, "a") == 1);
    assert!(drain.try_wait().expect("it is ours").is_none());
    drop(second);

    let said = done(&drain.wait_with_output().expect("it is ours"));
    assert!(said.contains("sessions left: 2"), "{said}");
    assert!(said.ends_with("done: no session is left on it\n"), "{said}");
}

/// A session that does not end: exit code 5, and the endpoint stays drained.
#[test]
fn a_drain_that_takes_too_long_times_out() {
    let world = World::new();
    let evenkeel = world.start();
    let mut sessions = [client::connect(world.front), client::connect(world.front)];
    for session in &mut sessions {
        client::echo(session, b"hello");
    }
    let drained = evenkeel.ask(&["endpoint", "drain", "letters/a", "--wait", "300ms"]);
    assert_eq!(drained.status.code(), Some(5));
    assert!(refused(&drained).contains("still has sessions"));
    assert_eq!(state(&evenkeel, "a"), "draining");
    for session in &mut sessions {
        client::echo(session, b"still here");
    }
}

/// What the file disables can be enabled, and the other way round.
#[test]
fn endpoints_are_disabled_and_enabled() {
    let world = World::new();
    let evenkeel = Evenkeel::start(world.config("", ", disabled = true", ""));
    assert_eq!(world.visit(2), (2, 0));
    done(&evenkeel.ask(&["endpoint", "enable", "letters/b"]));
    done(&evenkeel.ask(&["endpoint", "disable", "letters/a"]));
    assert_eq!(world.visit(2), (0, 2));
    let answer = done(&evenkeel.ask(&["endpoint", "show", "letters/a", "--json"]));
    let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
    let service = &answer["endpoint"]["overrides"]["service"];
    assert_eq!(service["configured"], "in-service");
    assert_eq!(service["value"], "disabled");
}

/// Whoever mistypes is told what is near, and what there is.
#[test]
fn wrong_names_lead_to_the_right_ones() {
    let evenkeel = World::new().start();
    let said = |words: &[&str]| refused(&evenkeel.ask(words));
    let cluster = said(&["endpoint", "drain", "leters/a"]);
    assert!(cluster.contains("did you mean \"letters\"?"), "{cluster}");
    let endpoint = said(&["endpoint", "drain", "letters/c"]);
    assert!(endpoint.contains("there are: a, b"), "{endpoint}");
    let path = said(&["endpoint", "drain", "letters"]);
    assert!(path.contains("CLUSTER/NAME"), "{path}");
    let weight = said(&["endpoint", "weight", "letters/a", "1000001"]);
    assert!(weight.contains("at most 1000000"), "{weight}");
    let failback = said(&["failback", "letters"]);
    assert!(
        failback.contains("its primaries have the work"),
        "{failback}"
    );
}

/// Without a state file, a restart is a fresh start.
#[test]
fn without_a_state_file_a_restart_forgets() {
    let world = World::new();
    let mut evenkeel = world.start();
    done(&evenkeel.ask(&["endpoint", "drain", "letters/a"]));
    restart(&mut evenkeel);
    assert_eq!(state(&evenkeel, "a"), "up");
}

/// With one, overrides are in force before the first session; killed or stopped makes no difference.
#[test]
fn fault_3_with_a_state_file_overrides_outlive_the_process() {
    let world = World::new();
    let mut evenkeel = world.start_keeping("");
    let said = done(&evenkeel.ask(&["endpoint", "drain", "letters/a"]));
    assert!(said.contains("state.json"), "{said}");
    evenkeel.process().kill();
    evenkeel.start_again();
    assert_eq!(world.visit(4), (0, 4));
    restart(&mut evenkeel);
    assert_eq!(world.visit(4), (0, 4));
    done(&evenkeel.ask(&["endpoint", "enable", "letters/a"]));
    restart(&mut evenkeel);
    assert_eq!(world.visit(4), (2, 2));
}

/// The file was changed while nothing ran: its weight beats the old override, and the drain it says nothing of stands.
#[test]
fn a_changed_file_beats_a_kept_override() {
    let world = World::new();
    let mut evenkeel = world.start_keeping("");
    done(&evenkeel.ask(&["endpoint", "weight", "letters/a", "7"]));
    done(&evenkeel.ask(&["endpoint", "drain", "letters/b"]));
    evenkeel.process().kill();
    edit(&evenkeel, "name = \"a\",", "name = \"a\", weight = 2,");
    evenkeel.start_again();
    assert_eq!(evenkeel.endpoint_number("letters", "a", "weight"), 2);
    assert_eq!(state(&evenkeel, "b"), "draining");
}

/// Reloads of a file that says other things leave what was set alone; one that changes the very value beats it.
#[test]
fn a_reload_keeps_overrides_that_the_file_does_not_speak_against() {
    let world = World::new();
    let evenkeel = world.start();
    done(&evenkeel.ask(&["endpoint", "drain", "letters/a"]));
    done(&evenkeel.ask(&["endpoint", "weight", "letters/b", "7"]));
    edit(
        &evenkeel,
        "[cluster.letters]",
        "[cluster.letters]\nqueue_max = 7",
    );
    done(&evenkeel.ask(&["reload"]));
    assert_eq!(state(&evenkeel, "a"), "draining");
    assert_eq!(evenkeel.endpoint_number("letters", "b", "weight"), 7);

    edit(&evenkeel, "name = \"b\",", "name = \"b\", weight = 2,");
    done(&evenkeel.ask(&["reload"]));
    assert_eq!(state(&evenkeel, "a"), "draining");
    assert_eq!(evenkeel.endpoint_number("letters", "b", "weight"), 2);
    assert_eq!(world.visit(4), (0, 4));
}

/// Half a file, another program's file, a folder: a line in the log, and a start like any other.
#[test]
fn a_state_file_that_is_none_stops_no_start() {
    let world = World::new();
    let mut evenkeel = world.start_keeping("");
    done(&evenkeel.ask(&["endpoint", "drain", "letters/a"]));
    let path = evenkeel.config_path().with_file_name("state.json");
    let whole = fs::read(&path).expect("it was written");
    for wrong in [&whole[..whole.len() / 2], b"\x7fELF", b"{\"version\":99}"] {
        evenkeel.process().kill();
        fs::write(&path, wrong).expect("it is ours");
        evenkeel.start_again();
        assert_eq!(state(&evenkeel, "a"), "up");
        assert!(
            evenkeel
                .program_log()
                .contains("the state file is not used")
        );
    }
}

/// Nothing can be written where the file should be: the override is in force, the answer and `status` say what is wrong.
#[test]
fn a_state_file_that_cannot_be_written_is_told() {
    let world = World::new();
    let evenkeel = Launch::new(world.config("", "", ""))
        .process("workers = 2\nstate_file = \"./no-folder/state.json\"")
        .start();
    let said = done(&evenkeel.ask(&["endpoint", "drain", "letters/a"]));
    assert!(said.contains("the state file cannot be written"), "{said}");
    assert_eq!(world.visit(4), (0, 4));
    let failed = evenkeel.status()["state_file"]["failed"].as_u64();
    assert!(failed.expect("a number") > 0);
}

/// The primary fails and returns: the backup keeps the work, over a restart too, until the operator gives it back.
#[test]
fn with_manual_failback_a_primary_that_returns_waits() {
    let mut world = World::new();
    let more = "failback = \"manual\"\n[cluster.letters.health]\ncheck = \"tcp\"\nevery = \"100ms\"\nrise = 1\nfall = 1";
    let config = world.config("", ", backup = true", more);
    let mut evenkeel = Launch::new(config)
        .process("workers = 2\nstate_file = \"./state.json\"")
        .start();
    assert_eq!(on_duty(&world, &evenkeel, "a"), "primaries");

    let address = world.a.address();
    drop(std::mem::replace(&mut world.a, Service::echo()));
    wait::until_so("the primary is down", || state(&evenkeel, "a") == "down");
    assert_eq!(on_duty(&world, &evenkeel, "b"), "backups");
    world.a = Service::start_on(address, |stream, _| echo(stream));
    wait::until_so("the primary is up", || state(&evenkeel, "a") == "up");
    assert_eq!(on_duty(&world, &evenkeel, "b"), "backups");

    restart(&mut evenkeel);
    wait::until_so("the primary is up", || state(&evenkeel, "a") == "up");
    assert_eq!(on_duty(&world, &evenkeel, "b"), "backups");
    done(&evenkeel.ask(&["failback", "letters"]));
    assert_eq!(on_duty(&world, &evenkeel, "a"), "primaries");
}

/// The primary is a name, which takes longer than the backup's address: it has the work all the same, at every start and upgrade.
#[test]
fn with_manual_failback_a_primary_that_is_a_name_has_the_work() {
    let world = World::new();
    let more = "failback = \"manual\"\n[cluster.letters.health]\ncheck = \"tcp\"\nevery = \"100ms\"\nrise = 1\nfall = 1";
    let config = world.config("", ", backup = true", more);
    let (fixed, name) = (world.a.address(), world.a.address().port());
    let config = config.replace(&format!("\"{fixed}\""), &format!("\"localhost:{name}\""));
    let mut evenkeel = Launch::new(config)
        .process("workers = 2\nstate_file = \"./state.json\"")
        .start();
    let primary = format!("a/{fixed}");
    let found = |evenkeel: &Evenkeel| {
        wait::until_so("the name is resolved", || {
            evenkeel.status()["clusters"][0]["endpoints"][0]["name"] == primary
        });
        on_duty(&world, evenkeel, &primary)
    };
    for _ in 0..3 {
        assert_eq!(found(&evenkeel), "primaries");
        restart(&mut evenkeel);
    }
    for _ in 0..3 {
        assert_eq!(found(&evenkeel), "primaries");
        done(&evenkeel.ask(&["upgrade"]));
    }
    assert_eq!(found(&evenkeel), "primaries");
}

/// Four sessions go to `who` and nobody else; says who is on duty.
#[track_caller]
fn on_duty(world: &World, evenkeel: &Evenkeel, who: &str) -> String {
    let before = evenkeel.endpoint_number("letters", who, "sessions");
    for _ in 0..4 {
        client::echo(&mut client::connect(world.front), b"hello");
    }
    let after = evenkeel.endpoint_number("letters", who, "sessions");
    assert_eq!(after - before, 4);
    let status = evenkeel.status();
    let on_duty = &status["clusters"][0]["on_duty"];
    on_duty.as_str().expect("a word").to_owned()
}

fn in_flight(evenkeel: &Evenkeel, endpoint: &str) -> u64 {
    evenkeel.endpoint_number("letters", endpoint, "in_flight")
}

fn start(evenkeel: &Evenkeel, words: &[&str]) -> Child {
    let mut command: Command = evenkeel_command(words);
    command
        .arg("--socket")
        .arg(evenkeel.socket_path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("evenkeel can be started")
}

/// An endpoint that is disabled and enabled again at once is asked at once: its next round is an hour away, and until it is asked it gets
/// nothing.
#[test]
fn an_enabled_endpoint_is_probed_at_once() {
    let world = World::new();
    let health = "health = { check = \"tcp\", every = \"1h\", timeout = \"1s\" }";
    let evenkeel = Evenkeel::start(world.config("", "", health));
    let is_up = || evenkeel.endpoint("letters", "a")["state"] == "up";
    wait::until_so("it is up", is_up);

    for act in ["disable", "enable"] {
        let done = evenkeel.ask(&["endpoint", act, "letters/a"]);
        assert!(done.status.success(), "{act}");
    }

    wait::until_so("it is up again", is_up);
}
