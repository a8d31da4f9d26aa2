//! Starting and ending: who may start, what a stop lets finish, and which exit code says what.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use crate::support::evenkeel::{Evenkeel, Launch, evenkeel_command};
use crate::support::process::Signal;
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

/// A configuration for one echo endpoint.
fn echo_config(front: SocketAddr, endpoint: &Service) -> String {
    format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "echo"
        [cluster.echo]
        endpoints = ["{}"]
        "#,
        endpoint.address(),
    )
}

/// A second start on the same address by mistake fails, says who is there, and does the first no harm.
#[test]
fn a_second_start_on_the_same_address_names_the_first() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut first = Evenkeel::start(echo_config(front, &endpoint));

    let mut second = Launch::new(echo_config(front, &endpoint)).start_unready();
    let exit = second.process().exit();

    let said = second.program_log();
    assert_eq!(exit.code(), Some(1), "{said}");
    assert!(said.contains(&front.to_string()), "{said}");
    assert!(said.contains(&first.process().id().to_string()), "{said}");
    assert_eq!(client::ask(front, "still here"), "still here");
}

/// A second start on the same control socket fails too, though its listener would be free.
#[test]
fn a_second_start_on_the_same_control_socket_names_the_first() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut first = Evenkeel::start(echo_config(front, &endpoint));
    let config = fs::read_to_string(first.config_path()).expect("it is there");
    let other = first.config_path().with_file_name("other.toml");
    let elsewhere = ports::free().to_string();
    fs::write(&other, config.replace(&front.to_string(), &elsewhere)).expect("it is ours");

    let output = evenkeel_command(&["run", &other.display().to_string()]).output();
    let output = output.expect("evenkeel can be started");

    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&first.process().id().to_string()), "{said}");
    assert!(first.ask(&["status"]).status.success());
}

/// After a kill -9 the control socket lies about; the next start takes its place.
#[test]
fn a_stale_control_socket_is_replaced() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Evenkeel::start(echo_config(front, &endpoint));

    evenkeel.process().kill();
    assert!(
        evenkeel.socket_path().exists(),
        "the test needs the leavings of the first"
    );
    evenkeel.start_again();

    assert_eq!(client::ask(front, "hello"), "hello");
    let mode = fs::metadata(evenkeel.socket_path())
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Each of the three signals that mean "end" lets a session finish, and takes nobody new.
#[test]
fn a_signal_lets_running_sessions_finish() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let (endpoint, front) = (Service::echo(), ports::free());
        let mut evenkeel = Launch::new(echo_config(front, &endpoint))
            .process("workers = 2\nstop_deadline = \"1h\"")
            .start();
        let mut session = client::connect(front);
        client::echo(&mut session, b"before");

        evenkeel.process().signal(signal);
        wait::until_so("nobody new is taken", || {
            client::try_connect(front).is_err()
        });
        client::echo(&mut session, b"after");
        drop(session);

        assert_eq!(
            evenkeel.process().exit().code(),
            Some(0),
            "{}",
            evenkeel.program_log()
        );
        assert!(
            !evenkeel.socket_path().exists(),
            "the control socket is left behind"
        );
        let reasons = evenkeel.reasons(1);
        assert!(reasons.iter().all(|reason| reason == "done"), "{reasons:?}");
    }
}

/// A session that would never end is ended at the deadline.
#[test]
fn the_stop_deadline_closes_what_still_runs() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Launch::new(echo_config(front, &endpoint))
        .process("workers = 2\nstop_deadline = \"100ms\"")
        .start();
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    evenkeel.process().signal(Signal::TERM);
    let exit = evenkeel.process().exit();

    assert!(exit.code().is_some(), "{exit}");
    assert_eq!(evenkeel.reasons(1), ["stop"]);
    assert!(
        client::ends_with_reset(&mut session),
        "what was cut off must not look finished"
    );
}

/// A second signal means: now.
#[test]
fn a_second_signal_ends_at_once() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Launch::new(echo_config(front, &endpoint))
        .process("workers = 2\nstop_deadline = \"1h\"")
        .start();
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    evenkeel.process().signal(Signal::TERM);
    wait::until_so("it is stopping", || {
        evenkeel.status()["phase"] == "stopping"
    });
    evenkeel.process().signal(Signal::TERM);
    let exit = evenkeel.process().exit();

    assert_eq!(exit.signal(), None, "it ended by itself");
    assert_eq!(evenkeel.reasons(1), ["stop"]);
}

/// `evenkeel stop` ends a running process and succeeds; a second time there is nobody to end.
#[test]
fn the_stop_command_ends_the_process() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Evenkeel::start(echo_config(front, &endpoint));

    let output = evenkeel.ask(&["stop"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(evenkeel.process().exit().code(), Some(0));
    assert_eq!(evenkeel.ask(&["stop"]).status.code(), Some(4));
    assert_eq!(evenkeel.ask(&["status"]).status.code(), Some(4));
}

/// A wrong command line is 2, a wrong configuration 3.
#[test]
fn exit_codes_tell_mistakes_apart() {
    let code = |words: &[&str]| {
        let output = evenkeel_command(words)
            .output()
            .expect("evenkeel can be started");
        output.status.code()
    };
    assert_eq!(code(&["--version"]), Some(0));
    assert_eq!(code(&["fly"]), Some(2));
    assert_eq!(code(&["status", "--sokcet", "x"]), Some(2));
    assert_eq!(
        code(&["status", "--socket", "/nonexistent/control.sock"]),
        Some(4)
    );

    let broken = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(broken.path(), "[listener.front]\n").expect("it is ours");
    let path = broken.path().display().to_string();
    assert_eq!(code(&["check", &path]), Some(3));
    assert_eq!(code(&["run", &path]), Some(3));
}

/// A listener whose address is taken by a stranger: nothing starts, and what could be bound is free again.
#[test]
fn a_start_that_cannot_bind_everything_starts_nothing() {
    let (endpoint, free, taken) = (Service::echo(), ports::free(), Service::named("stranger"));
    let mut evenkeel = Launch::new(format!(
        "{}\n[listener.other]\nbind = \"{}\"\nto = \"echo\"",
        echo_config(free, &endpoint),
        taken.address(),
    ))
    .start_unready();

    assert_eq!(evenkeel.process().exit().code(), Some(1));
    assert!(
        evenkeel
            .program_log()
            .contains(&taken.address().to_string())
    );
    let _now_ours = Service::start_on(free, service::say("free"));
}
