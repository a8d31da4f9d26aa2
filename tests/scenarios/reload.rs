//! Going over to another configuration: what changes, what does not, and that nobody notices.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Output;

use crate::support::evenkeel::{Evenkeel, Launch, evenkeel_command};
use crate::support::process::Signal;
use crate::support::service::Service;
use crate::support::{client, ports, wait};

/// A listener `front`, and a cluster `echo` of these endpoints, each `(name, address, more)`.
fn config(front: SocketAddr, endpoints: &[(&str, SocketAddr, &str)]) -> String {
    let listed: String = endpoints
        .iter()
        .map(|(name, address, more)| {
            format!("{{ name = \"{name}\", address = \"{address}\"{more} }},\n")
        })
        .collect();
    format!(
        "{}[cluster.echo]\nendpoints = [\n{listed}]\n",
        listener("front", front)
    )
}

fn listener(name: &str, address: SocketAddr) -> String {
    format!("[listener.{name}]\nbind = \"{address}\"\nto = \"echo\"\n")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The answer counts what changed and who was spared; `--verbose` names each change.
#[test]
fn a_reload_says_what_has_changed() {
    let (a, b, c) = (Service::echo(), Service::echo(), Service::echo());
    let front = ports::free();
    let before = config(front, &[("a", a.address(), ""), ("b", b.address(), "")]);
    let evenkeel = Evenkeel::start(before);
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    let heavier = ("a", a.address(), ", weight = 3");
    evenkeel.write_config(&config(front, &[heavier, ("c", c.address(), "")]));
    let output = evenkeel.ask(&["reload", "--verbose"]);

    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    let summary = "1 weight changed, 1 endpoint added, 1 endpoint removed, 1 connection unaffected";
    assert!(said.contains(summary), "{said}");
    for line in [
        "endpoint echo/a: weight 1 is now 3",
        "endpoint echo/c: added",
        "endpoint echo/b: removed, its connections finish",
    ] {
        assert!(said.contains(line), "{said}");
    }
    client::echo(&mut session, b"after");
}

/// A file that is as it was, or says the same in other words, changes nothing.
#[test]
fn an_unchanged_configuration_changes_nothing() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let same = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(same.clone());

    let output = evenkeel.reload(&format!("# in other words\n{same}"));

    let said = stdout(&output);
    assert!(
        said.contains("nothing changed, 0 connections unaffected"),
        "{said}"
    );
}

/// What a running process cannot follow is named; the rest is in force.
#[test]
fn what_takes_a_restart_is_named() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let before = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(before.clone());
    let text = fs::read_to_string(evenkeel.config_path()).expect("it is there");
    let heavier = text
        .replace("workers = 2", "workers = 3")
        .replace("}", ", weight = 7 }");
    fs::write(evenkeel.config_path(), heavier).expect("it is ours");

    let said = stdout(&evenkeel.ask(&["reload"]));

    let deferred =
        "process.workers = 3 takes effect after a restart or an upgrade; until then it is 2";
    assert!(said.contains(deferred), "{said}");
    assert_eq!(evenkeel.endpoint_number("echo", "a", "weight"), 7);
}

/// A wrong file changes nothing. The errors are those of `check`, to the letter, and so is the exit code.
#[test]
fn a_wrong_configuration_changes_nothing() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let right = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(right.clone());
    let wrong = right
        .replace("to = \"echo\"", "to = \"ecoh\"")
        .replace("name = \"a\"", "name = \"a\", weigth = 3");

    let output = evenkeel.reload(&wrong);

    let path = evenkeel.config_path().display().to_string();
    let check = evenkeel_command(&["check", &path])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("weigth"), "{}", stderr(&output));
    let also_said =
        "evenkeel: not reloaded: what runs goes on with the configuration that it has\n";
    assert_eq!(stderr(&output), stderr(&check) + also_said);
    let json = evenkeel.ask(&["reload", "--json"]);
    assert_eq!(json.status.code(), Some(3));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(
        (&report["outcome"], &report["error_count"]),
        (&"invalid".into(), &2.into())
    );
    assert_eq!(client::ask(front, "as before"), "as before");
}

/// One of two new addresses is a stranger's: nothing changes, the stranger is named, and the other address is free again.
#[test]
fn a_taken_address_changes_nothing() {
    let (endpoint, front, free) = (Service::echo(), ports::free(), ports::free());
    let stranger = Service::named("stranger");
    let before = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(before);

    let after = config(front, &[("a", endpoint.address(), ", weight = 9")])
        + &listener("free", free)
        + &listener("taken", stranger.address());
    let output = evenkeel.reload(&after);

    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&stranger.address().to_string()), "{said}");
    assert!(said.contains(&std::process::id().to_string()), "{said}");
    assert_eq!(evenkeel.endpoint_number("echo", "a", "weight"), 1);
    drop(TcpListener::bind(free).expect("it is free again"));
}

/// HUP does the same, and leaves the result to the log.
#[test]
fn a_hangup_reloads() {
    let (endpoint, front, second) = (Service::echo(), ports::free(), ports::free());
    let before = config(front, &[("a", endpoint.address(), "")]);
    let mut evenkeel = Evenkeel::start(before.clone());

    evenkeel.write_config(&(before.clone() + &listener("second", second)));
    evenkeel.process().signal(Signal::HUP);
    wait::until_so("the second listener is there", || {
        client::try_connect(second).is_ok()
    });
    let reloaded = "configuration reloaded: 1 listener added";
    wait::until_so("the log says so", || {
        evenkeel.program_log().contains(reloaded)
    });

    evenkeel.write_config(&before.replace("[listener.front]", "[listener.front"));
    evenkeel.process().signal(Signal::HUP);
    wait::until_so("the log says that it went wrong", || {
        let log = evenkeel.program_log();
        log.contains("ERROR") && log.contains("still running the one of")
    });
    assert_eq!(client::ask(second, "as before"), "as before");
}

/// Many signals at once are few reloads, and the last state of the file is in force in the end.
#[test]
fn many_hangups_are_few_reloads() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let weighing = |weight: usize| {
        let more = format!(", weight = {weight}");
        config(front, &[("a", endpoint.address(), more.as_str())])
    };
    let mut evenkeel = Evenkeel::start(weighing(1));

    for weight in 2..=50 {
        evenkeel.write_config(&weighing(weight));
        evenkeel.process().signal(Signal::HUP);
    }

    wait::until_so("the last weight is in force", || {
        evenkeel.endpoint_number("echo", "a", "weight") == 50
    });
}

/// Once it is stopping, it takes no other configuration, and says so.
#[test]
fn a_reload_while_stopping_is_refused() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let same = config(front, &[("a", endpoint.address(), "")]);
    let mut evenkeel = Launch::new(same.clone())
        .process("workers = 2\nstop_deadline = \"1h\"")
        .start();
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");
    evenkeel.process().signal(Signal::TERM);
    wait::until_so("it is stopping", || {
        evenkeel.status()["phase"] == "stopping"
    });

    let output = evenkeel.reload(&(same + &listener("second", ports::free())));

    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stopping"), "{}", stderr(&output));
    client::echo(&mut session, b"after");
}

/// An endpoint that is removed keeps its session to the end of it, gets no other, and is then gone.
#[test]
fn a_removed_endpoint_drains() {
    let (old, new) = (Service::echo(), Service::echo());
    let front = ports::free();
    let evenkeel = Evenkeel::start(config(front, &[("old", old.address(), "")]));
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    evenkeel.reloaded(&config(front, &[("new", new.address(), "")]));

    client::echo(&mut session, b"after");
    assert_eq!(evenkeel.endpoint("echo", "old")["state"], "removed");
    assert_eq!(client::ask(front, "to the new one"), "to the new one");
    assert_eq!((old.accepted(), new.accepted()), (1, 1));
    drop(session);
    wait::until_so("it is gone", || {
        let status = evenkeel.status();
        !status.to_string().contains("\"old\"")
    });
}

/// Weight 0 takes no new work; another name, or another address under the old name, is another endpoint.
#[test]
fn an_endpoint_is_known_by_name_and_address() {
    let (one, two) = (Service::echo(), Service::echo());
    let front = ports::free();
    let evenkeel = Evenkeel::start(config(
        front,
        &[("a", one.address(), ""), ("b", two.address(), "")],
    ));
    for _ in 0..4 {
        client::ask(front, "both");
    }
    let sessions = |name| evenkeel.endpoint_number("echo", name, "sessions");
    assert_eq!((sessions("a"), sessions("b")), (2, 2));

    evenkeel.reloaded(&config(
        front,
        &[
            ("a", one.address(), ", weight = 0"),
            ("b", two.address(), ""),
        ],
    ));
    for _ in 0..4 {
        client::ask(front, "b alone");
    }
    assert_eq!((sessions("a"), sessions("b")), (2, 6));

    evenkeel.reloaded(&config(
        front,
        &[("renamed", one.address(), ""), ("b", one.address(), "")],
    ));
    assert_eq!((sessions("renamed"), sessions("b")), (0, 0));
    client::ask(front, "moved");
    assert_eq!(two.accepted(), 6);
}

/// Clients that have connected and are not accepted yet survive a reload, and one that takes their listener away and brings it
/// back.
#[test]
fn who_waits_in_a_backlog_survives_reloads() {
    let endpoint = Service::echo();
    let (front, second) = (ports::free(), ports::free());
    let one = config(front, &[("a", endpoint.address(), "")]);
    let both = one.clone() + &listener("second", second);
    let mut evenkeel = Evenkeel::start(both.clone());

    for next in [
        &one,
        &both,
        &(one.clone() + &listener("renamed", second)),
        &both,
    ] {
        evenkeel.write_config(next);
        evenkeel.process().signal(Signal::STOP);
        let addresses = [front, second];
        let mut waiting: Vec<TcpStream> = addresses
            .iter()
            .cycle()
            .take(40)
            .filter_map(|address| client::try_connect(*address).ok())
            .collect();
        evenkeel.process().signal(Signal::HUP);
        evenkeel.process().signal(Signal::CONT);
        for session in &mut waiting {
            client::echo(session, b"still here");
        }
        let output = evenkeel.ask(&["reload"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

/// The access log goes where the new configuration says, without losing a line; a place that cannot be had changes nothing.
#[test]
fn the_access_log_may_move() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let same = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(same);
    client::ask(front, "to the old log");
    evenkeel.sessions(1);
    let text = fs::read_to_string(evenkeel.config_path()).expect("it is there");
    let moved = evenkeel.config_path().with_file_name("moved.log");

    let nowhere = text.replace("access.log", "no-such-folder/access.log");
    fs::write(evenkeel.config_path(), nowhere).expect("it is ours");
    let output = evenkeel.ask(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no-such-folder"),
        "{}",
        stderr(&output)
    );

    fs::write(
        evenkeel.config_path(),
        text.replace("access.log", "moved.log"),
    )
    .expect("it is ours");
    assert!(evenkeel.ask(&["reload"]).status.success());
    client::ask(front, "to the new log");

    wait::until_so("the new log has the session", || {
        fs::read_to_string(&moved).is_ok_and(|log| log.lines().count() == 1)
    });
    assert_eq!(evenkeel.sessions(1).len(), 1);
    assert_eq!(evenkeel.status()["access_log"]["written"], 2);
}

/// What fails leaves nothing behind: the access log that the file wanted is not there, nor is anything else of it in force.
#[test]
fn a_failed_reload_leaves_no_access_log_behind() {
    let (endpoint, stranger) = (Service::echo(), Service::named("stranger"));
    let front = ports::free();
    let text = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(text.clone());
    evenkeel.write_config(&(text + &listener("taken", stranger.address())));
    let path = evenkeel.config_path();
    let written = fs::read_to_string(&path).expect("it is ours");
    fs::write(&path, written.replace("access.log", "other.log")).expect("it is ours");

    let output = evenkeel.ask(&["reload"]);

    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!path.with_file_name("other.log").exists());
    assert_eq!(client::ask(front, "hello"), "hello");
    assert_eq!(evenkeel.reasons(1), ["done"]);
}

/// A listener that only gets another name is as full as before.
#[test]
fn a_renamed_listener_keeps_its_count() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let text = config(front, &[("a", endpoint.address(), "")]);
    let evenkeel = Evenkeel::start(text.clone());
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    evenkeel.reloaded(&text.replace("[listener.front]", "[listener.back]"));

    let listener = &evenkeel.status()["listeners"][0];
    assert_eq!(
        (&listener["name"], &listener["sessions"]),
        (&"back".into(), &1.into())
    );
    client::echo(&mut session, b"after");
    drop(session);
    wait::until_so("it is counted out", || {
        evenkeel.status()["listeners"][0]["sessions"] == 0
    });
}
