//! What a client sees when endpoints fail: another endpoint, or a clear answer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::distribution::{served, shares};
use crate::support::deaf::Deaf;
use crate::support::evenkeel::Evenkeel;
use crate::support::service::{self, Kept, Service};
use crate::support::{client, mariadb, ports, wait};

const NOBODY: &str = "nobody can answer\n";
const NOTHING: &str = "you asked nothing\n";

/// Two endpoints of three are dead: no client notices, and no session tries a dead one twice.
#[test]
fn fault_11_a_retry_takes_another_endpoint() {
    let (a, front) = (Service::named("a"), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        attempts = 3
        endpoints = ["{}", "{}", "{}"]
        "#,
        ports::free(),
        a.address(),
        ports::free(),
    ));

    assert_eq!(served(front, 20), shares([("a", 20)]));
    for session in evenkeel.sessions(20) {
        assert_eq!(session["reason"], "done");
        assert!(
            session["attempts"]
                .as_u64()
                .is_some_and(|attempts| attempts <= 3),
            "{session}"
        );
    }
}

/// An endpoint that closes every connection is not run at in a loop: no session tries more often than it may.
#[test]
fn fault_12_attempts_are_bounded() {
    let (closing, front) = (
        Service::start(|stream, _| read_then_close(stream)),
        ports::free(),
    );
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        failure_reply = {{ text = "{}" }}
        [cluster.letters]
        attempts = 4
        replay = "64KiB"
        ejection = "off"
        endpoints = ["{}"]
        "#,
        NOBODY.escape_default(),
        closing.address(),
    ));

    assert_eq!(client::ask(front, "alice\n"), NOBODY);
    let session = &evenkeel.sessions(1)[0];
    assert!(closing.accepted() <= 4, "{session}");
    assert_eq!(session["reason"], "upstream_closed");
}

/// With every endpoint dead, a thousand clients each get the clear answer, no descriptor is lost, and the first endpoint to return
/// serves.
#[test]
fn fault_13_clients_of_a_dead_cluster_are_told_so() {
    let (address, front) = (ports::free(), ports::free());
    let mut evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        failure_reply = {{ text = "{}" }}
        [cluster.letters]
        attempts = 1
        trials = {{ every = "10ms", every_max = "10ms" }}
        endpoints = ["{address}"]
        "#,
        NOBODY.escape_default(),
    ));
    assert_eq!(client::ask(front, "alice\n"), NOBODY);
    let before = evenkeel.process().descriptors();

    for _ in 0..1000 {
        assert_eq!(client::ask(front, "alice\n"), NOBODY);
    }
    wait::until_so("the descriptors are closed", || {
        evenkeel.process().descriptors() <= before
    });

    let _a = Service::start_on(address, service::say("a"));
    wait::until_so("the returned endpoint serves", || {
        client::listen(front) == "a"
    });
}

/// A client that still sends when it is told gets the whole answer, and not a reset in its place.
#[test]
fn a_failure_reply_reaches_a_client_that_is_still_sending() {
    let front = ports::free();
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        failure_reply = {{ text = "{}" }}
        [cluster.letters]
        endpoints = ["{}"]
        "#,
        NOBODY.escape_default(),
        ports::free(),
    ));

    for _ in 0..20 {
        let mut stream = client::connect(front);
        stream
            .write_all(&[b'x'; 32 * 1024])
            .expect("the client may send");
        let answer = client::read_to_end(&mut stream).expect("no reset");
        assert_eq!(answer, NOBODY.as_bytes());
    }
}

/// The request was sent, the endpoint closed without an answer: with replay another endpoint gets the same request.
#[test]
fn replay_replaces_an_endpoint_that_closes_before_it_answers() {
    let (closing, echo) = (
        Service::start(|stream, _| read_then_close(stream)),
        Service::echo(),
    );
    let front = ports::free();
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        replay = "64KiB"
        endpoints = ["{}", "{}"]
        "#,
        closing.address(),
        echo.address(),
    ));

    for _ in 0..10 {
        assert_eq!(client::ask(front, "alice\n"), "alice\n");
    }
    assert!(
        closing.accepted() > 0,
        "the endpoint that closes was never tried"
    );
}

/// As before with a reset instead of a close.
#[test]
fn replay_replaces_an_endpoint_that_resets_before_it_answers() {
    let resetting = Service::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 64]);
        client::reset(stream);
    });
    let (echo, front) = (Service::echo(), ports::free());
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        replay = "64KiB"
        endpoints = ["{}", "{}"]
        "#,
        resetting.address(),
        echo.address(),
    ));

    for _ in 0..10 {
        assert_eq!(client::ask(front, "alice\n"), "alice\n");
    }
    assert!(
        resetting.accepted() > 0,
        "the endpoint that resets was never tried"
    );
}

/// Without replay a request that has been sent is not sent again: the client sees the close.
#[test]
fn without_replay_a_sent_request_is_not_repeated() {
    let (closing, front) = (
        Service::start(|stream, _| read_then_close(stream)),
        ports::free(),
    );
    let never = Service::echo();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        endpoints = ["{}", {{ address = "{}", backup = true }}]
        "#,
        closing.address(),
        never.address(),
    ));

    assert_eq!(client::ask(front, "alice\n"), "");
    assert_eq!(evenkeel.reasons(1), ["upstream_closed"]);
    assert_eq!((closing.accepted(), never.accepted()), (1, 0));
}

/// A client that sends more than may be kept is served as well, though it cannot be replayed.
#[test]
fn a_request_beyond_the_replay_limit_is_carried_once() {
    let (echo, front) = (Service::echo(), ports::free());
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        replay = "1KiB"
        endpoints = ["{}"]
        "#,
        echo.address(),
    ));

    let request = "x".repeat(100_000);
    assert_eq!(client::ask(front, &request), request);
}

/// Nothing but white space is not a request, and neither is silence.
#[test]
fn a_client_that_asks_nothing_is_told_so() {
    let (echo, front) = (Service::echo(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        empty_reply = "{}"
        timeouts = {{ preread = "50ms" }}
        [cluster.letters]
        endpoints = ["{}"]
        "#,
        NOTHING.escape_default(),
        echo.address(),
    ));

    assert_eq!(client::ask(front, ""), NOTHING);
    assert_eq!(client::ask(front, " \r\n"), NOTHING);
    assert_eq!(client::listen(front), NOTHING);
    assert_eq!(echo.accepted(), 0);
    assert_eq!(
        evenkeel.reasons(3),
        ["empty_request", "empty_request", "preread_timeout"]
    );
    assert_eq!(client::ask(front, "alice\n"), "alice\n");
}

/// A MySQL client is told in its own protocol that nobody can serve it.
#[test]
fn a_mysql_client_gets_an_error_packet() {
    let front = ports::free();
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "databases"
        failure_reply = "mysql-error"
        [cluster.databases]
        endpoints = ["{}"]
        "#,
        ports::free(),
    ));

    let output = mariadb::run(front, "SELECT 1");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(error.contains("connect_refused"), "{error}");
}

/// An endpoint whose machine does not answer at all costs one connect timeout, and the next one serves.
#[test]
fn an_endpoint_that_never_answers_a_connect_is_passed_over() {
    let (deaf, a, front) = (Deaf::start(), Service::named("a"), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        timeouts = {{ connect = "100ms" }}
        endpoints = [{{ name = "deaf", address = "{}" }}, {{ name = "a", address = "{}" }}]
        "#,
        deaf.address,
        a.address(),
    ));

    assert_eq!(served(front, 4), shares([("a", 4)]));
    assert!(evenkeel.endpoint_number("letters", "deaf", "failures") > 0);
}

/// One failure each, at weight 1: effective weight is a preference, so the next client is served all the same.
#[test]
fn endpoints_that_all_failed_once_still_serve() {
    let broken = Arc::new(AtomicBool::new(true));
    let (a, b, front) = (fails_while(&broken), fails_while(&broken), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        trials = {{ every = "1h", every_max = "1h" }}
        attempts = 1
        endpoints = [{{ name = "a", address = "{}" }}, {{ name = "b", address = "{}" }}]
        "#,
        a.address(),
        b.address(),
    ));
    for _ in 0..2 {
        assert_eq!(client::ask(front, "alice\n"), "");
    }
    for endpoint in ["a", "b"] {
        assert_eq!(
            evenkeel.endpoint_number("letters", endpoint, "effective_weight"),
            0
        );
    }

    broken.store(false, Ordering::SeqCst);
    assert_eq!(client::ask(front, "alice\n"), "alice\n");
}

/// Failures in a row take an endpoint out: it is not even tried, until its time is over.
#[test]
fn an_endpoint_that_keeps_failing_is_ejected() {
    let (broken, a) = (
        Service::start(|stream, _| read_then_close(stream)),
        Service::echo(),
    );
    let front = ports::free();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        [cluster.letters]
        replay = "64KiB"
        trials = {{ every = "1ms", every_max = "1ms" }}
        ejection = {{ failures = 3, base = "1h", max = "1h" }}
        endpoints = [{{ name = "broken", address = "{}" }}, {{ name = "a", address = "{}" }}]
        "#,
        broken.address(),
        a.address(),
    ));
    wait::until_so("the endpoint is ejected", || {
        assert_eq!(client::ask(front, "alice\n"), "alice\n");
        evenkeel.endpoint("letters", "broken")["state"] == "ejected"
    });

    let before = broken.accepted();
    for _ in 0..20 {
        assert_eq!(client::ask(front, "alice\n"), "alice\n");
    }
    assert_eq!(broken.accepted(), before);
    assert_eq!(before, 3);
}

/// The endpoint answers nothing within the first-byte timeout: the client is told, and the reason says so.
#[test]
fn an_endpoint_that_never_answers_ends_at_the_first_byte_timeout() {
    let (kept, front) = (Kept::default(), ports::free());
    let silent = Service::start(move |stream, _| kept.keep(stream));
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "letters"
        failure_reply = {{ text = "{}" }}
        [cluster.letters]
        timeouts = {{ first_byte = "100ms" }}
        attempts = 1
        endpoints = ["{}"]
        "#,
        NOBODY.escape_default(),
        silent.address(),
    ));

    let mut stream = client::connect(front);
    stream.write_all(b"alice\n").expect("it can be written");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let answer = client::read_to_end(&mut stream).expect("an orderly end");
    assert_eq!(answer, NOBODY.as_bytes());
    assert_eq!(evenkeel.reasons(1), ["first_byte_timeout"]);
}

/// Reads a request and closes without a word.
fn read_then_close(mut stream: TcpStream) {
    let _ = client::read_to_end(&mut stream);
}

/// Echoes, unless it is to close without a word.
fn fails_while(broken: &Arc<AtomicBool>) -> Service {
    let broken = Arc::clone(broken);
    Service::start(move |stream, _| {
        if broken.load(Ordering::SeqCst) {
            read_then_close(stream);
        } else {
            service::echo(stream);
        }
    })
}
