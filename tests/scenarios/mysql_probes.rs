//! MySQL probes: what they see of real servers, and what servers see of them.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::mariadb::MariaDb;
use crate::support::namespace::{self, Namespace};
use crate::support::service::Service;
use crate::support::{client, ports, wait};

/// `health` is everything behind the check.
fn config(server: std::net::SocketAddr, health: &str) -> String {
    format!(
        r#"
        [listener.mysql]
        bind = "{}"
        to = "databases"
        failure_reply = "mysql-error"
        [cluster.databases]
        endpoints = [{{ name = "one", address = "{server}" }}]
        health = {{ check = "mysql", {health} }}
        "#,
        ports::free(),
    )
}

fn wait_for_state(evenkeel: &Evenkeel, state: &str) {
    wait::until_so(&format!("the server is {state}"), || {
        evenkeel.endpoint("databases", "one")["state"] == state
    });
}

fn wait_for_reason(evenkeel: &Evenkeel, words: &str) {
    wait::until_so(&format!("a probe fails with {words}"), || {
        let found = evenkeel.endpoint("databases", "one");
        let reason = found["probe"]["reason"].as_str();
        reason.is_some_and(|reason| reason.contains(words))
    });
}

/// Accounts with and without a password, a statement that turns false and true again, an account that is not let in: with a real
/// MariaDB.
#[test]
fn a_real_server_is_asked() {
    let server = MariaDb::start("asked");
    server.administer("CREATE USER 'plain'@'%'; CREATE USER 'secret'@'%' IDENTIFIED BY 'sesame';");
    let often = r#"every = "100ms""#;
    let asks = |health: &str| Evenkeel::start(config(server.address(), health));

    let plain = asks(&format!(r#"user = "plain", {often}"#));
    wait_for_state(&plain, "up");
    let wrong = asks(&format!(r#"user = "secret", password = "simsim", {often}"#));
    wait_for_reason(&wrong, "MySQL error 1045: Access denied");

    let asking = asks(&format!(
        r#"user = "secret", password = "sesame", query = "SELECT NOT @@read_only", {often}"#
    ));
    wait_for_state(&asking, "up");
    server.administer("SET GLOBAL read_only = 1");
    wait_for_reason(&asking, "the query says \"0\"");
    wait_for_state(&asking, "down");
    server.administer("SET GLOBAL read_only = 0");
    wait_for_state(&asking, "up");
}

const GREETING: &[u8] = b"d\x00\x00\x00\n5.5.5-10.11.19-MariaDB-0+deb12u1\x00\x06\x00\x00\x00Fc?PV@zf\x00\xfe\xf7\x08\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00r*t11DAWt`fa\x00mysql_native_password\x00";
const LOGIN_OK: &[u8] = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00";
const NOT_READY: &[u8] =
    b"\x3c\x00\x00\x01\xff\x17\x04#08S01WSREP has not yet prepared node for application use";

/// A node of Galera that has lost its cluster greets and takes the login, and refuses every command with error 1047. A probe
/// that only connects, or only logs in, calls it healthy.
#[test]
fn fault_35_connected_is_not_ready() {
    let node = Service::start(|stream, _| play_a_lost_node(stream));
    let evenkeel = Evenkeel::start(config(node.address(), r#"user = "check", every = "100ms""#));

    wait_for_state(&evenkeel, "down");
    wait_for_reason(
        &evenkeel,
        "MySQL error 1047: WSREP has not yet prepared node for application use",
    );
}

fn play_a_lost_node(mut stream: TcpStream) {
    for answer in [GREETING, LOGIN_OK, NOT_READY] {
        if stream.write_all(answer).is_err() || !matches!(stream.read(&mut [0; 512]), Ok(1..)) {
            return;
        }
    }
    let _ = client::read_to_end(&mut stream);
}

/// A server that blocks an address after ten handshakes that were broken off, probed a thousand times by an account that is let in and
/// a thousand times by one that is not: nothing is counted against the address. A rude probe, which connects and hangs up, is
/// blocked at once, so the server does count.
#[test]
fn probes_never_get_their_address_blocked() {
    let Some(namespace) = Namespace::make() else {
        return;
    };
    let server = MariaDb::start_in(&namespace, &["--max-connect-errors=10"]);
    server.administer("CREATE USER 'polite'@'probe.test'");
    for (user, state) in [("polite", "up"), ("stranger", "down")] {
        let health = format!(r#"user = "{user}", every = "10ms", timeout = "10ms""#);
        let before = connections(&server);
        let mut evenkeel = Launch::new(config(server.address(), &health))
            .inside(&namespace)
            .start();
        wait::until_so("a thousand connections", || {
            connections(&server) >= before + 1000
        });
        wait_for_state(&evenkeel, state);
        evenkeel.ask(&["stop"]);
        evenkeel.process().exit();
        assert_eq!(errors(&server), format!("{}\tYES\t0\t0", namespace::NAME));
    }

    for _ in 0..12 {
        be_rude(&namespace);
    }
    let evenkeel = Launch::new(config(server.address(), r#"user = "polite""#))
        .inside(&namespace)
        .start();
    wait_for_reason(&evenkeel, "MySQL error 1129");
}

/// Made since the server started, whatever became of them.
fn connections(server: &MariaDb) -> u64 {
    let row = server.administer("SHOW GLOBAL STATUS LIKE 'Connections'");
    let number = row.split('\t').next_back();
    number
        .and_then(|number| number.parse().ok())
        .expect("the server counts")
}

/// What the server holds against the one address: the name, whether it resolves both ways, errors that block, handshakes broken off.
fn errors(server: &MariaDb) -> String {
    server.administer(
        "SELECT host, host_validated, sum_connect_errors, count_handshake_errors FROM performance_schema.host_cache",
    )
}

/// Waits until the server speaks, and hangs up on it.
fn be_rude(namespace: &Namespace) {
    let script = format!(
        "exec 3<>/dev/tcp/{}/3306; head -c 1 <&3 >/dev/null; exec 3>&-",
        namespace::ADDRESS
    );
    let mut command = namespace.command("bash");
    let done = command.args(["-c", &script]).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "the control could not connect"
    );
}
