//! Unix sockets on both sides, with real servers behind them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tempfile::TempDir;

use crate::support::evenkeel::Evenkeel;
use crate::support::mariadb::{self, MariaDb};
use crate::support::redis::{self, Redis};
use crate::support::{ports, wait};

/// An evenkeel that listens on a path, in front of a Redis that does.
struct World {
    evenkeel: Evenkeel,
    front: std::path::PathBuf,
    _redis: Redis,
    _directory: TempDir,
}

fn in_front_of_redis() -> World {
    let (redis, directory) = (Redis::start(), TempDir::new().expect("a directory"));
    let front = directory.path().join("front.sock");
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "unix:{}"
        permissions = "0600"
        to = "redis"
        [cluster.redis]
        endpoints = [{{ name = "redis", address = "unix:{}" }}]
        "#,
        front.display(),
        redis.socket_path().display()
    ));
    World {
        evenkeel,
        front,
        _redis: redis,
        _directory: directory,
    }
}

fn redis_cli(path: &Path, words: &[&str]) -> String {
    let path = path.to_str().expect("it is text");
    redis::run("redis-cli", &[&["-s", path], words].concat())
}

/// Redis is served from socket to socket; the log has no address where there is none.
#[test]
fn redis_is_served_from_socket_to_socket() {
    let world = in_front_of_redis();
    assert_eq!(redis_cli(&world.front, &["SET", "greeting", "hello"]), "OK");
    assert_eq!(redis_cli(&world.front, &["GET", "greeting"]), "hello");
    for session in world.evenkeel.sessions(2) {
        assert_eq!(
            (&session["client"], &session["reason"]),
            (&"unix".into(), &"done".into())
        );
    }
    let status = world.evenkeel.status();
    let address = format!("unix:{}", world.front.display());
    assert_eq!(status["listeners"][0]["address"], address);
}

/// What moves in bulk is spliced between Unix sockets, too, and arrives whole.
#[test]
fn bulk_is_spliced_between_unix_sockets() {
    const BYTES: usize = 32 << 20;
    let world = in_front_of_redis();
    redis_cli(
        &world.front,
        &["SETRANGE", "big", &(BYTES - 1).to_string(), "x"],
    );
    let big = redis_cli(&world.front, &["--raw", "GET", "big"]);
    assert_eq!(big.len(), BYTES);
    assert!(big.ends_with('x'));
    let status = world.evenkeel.status();
    let spliced = status["splice"]["bytes"].as_u64().expect("a number");
    assert!(spliced > 0, "{status:#}");
}

/// A killed process leaves its socket's file behind; the next one replaces it, and an orderly stop removes it.
#[test]
fn a_killed_process_leaves_a_file_that_the_next_one_replaces() {
    let mut world = in_front_of_redis();
    world.evenkeel.process().kill();
    assert!(world.front.exists());
    assert!(UnixStream::connect(&world.front).is_err());

    world.evenkeel.start_again();
    assert_eq!(redis_cli(&world.front, &["PING"]), "PONG");
    assert!(world.evenkeel.ask(&["stop"]).status.success());
    assert!(!world.front.exists());
}

/// A second process does not take the path of a first one, and says whose it is.
#[test]
fn a_second_process_leaves_the_path_to_the_first() {
    let mut world = in_front_of_redis();
    let config = format!(
        "[listener.front]\nbind = \"unix:{}\"\nto = \"c\"\n[cluster.c]\nendpoints = [\"127.0.0.1:1\"]\n",
        world.front.display()
    );
    let mut second = crate::support::evenkeel::Launch::new(config).start_unready();
    assert!(!second.process().exit().success());
    let holder = format!("(pid {})", world.evenkeel.process().id());
    assert!(
        second.program_log().contains(&holder),
        "{}",
        second.program_log()
    );
    assert_eq!(redis_cli(&world.front, &["PING"]), "PONG");
}

/// Somebody removes the socket of a listener: the log and `status` say it, and a reload makes it again, though the file is the same.
#[test]
fn a_removed_socket_comes_back_with_a_reload() {
    let world = in_front_of_redis();
    fs::remove_file(&world.front).expect("it is ours");
    wait::until_so("the log says it", || {
        world
            .evenkeel
            .program_log()
            .contains("the file of its socket was removed")
    });
    assert_eq!(
        world.evenkeel.status()["listeners"][0]["has_lost_its_file"],
        true
    );

    let output = world.evenkeel.ask(&["reload"]);

    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 listener restored"), "{said}");
    assert_eq!(redis_cli(&world.front, &["PING"]), "PONG");
    let again = world.evenkeel.ask(&["reload"]);
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(said.contains("nothing changed"), "{said}");
}

/// Other permissions of a path that stays are in force after a reload.
#[test]
fn permissions_follow_a_reload() {
    let world = in_front_of_redis();
    let path = world.evenkeel.config_path();
    let text = fs::read_to_string(&path).expect("it is ours");
    fs::write(&path, text.replace("0600", "0660")).expect("it is ours");

    assert!(world.evenkeel.ask(&["reload"]).status.success());

    let mode = fs::metadata(&world.front)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o660, "{mode:o}");
}

/// A control socket that was removed, with its lock, is made again: the process can be asked, and stopped, as before.
#[test]
fn a_removed_control_socket_is_made_again() {
    let mut world = in_front_of_redis();
    let socket = world.evenkeel.socket_path();
    for path in [socket.clone(), socket.with_extension("sock.lock")] {
        fs::remove_file(path).expect("it is ours");
    }
    wait::until_so("it is there again", || socket.exists());

    assert!(world.evenkeel.ask(&["stop"]).status.success());
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
    assert!(!socket.exists() && !socket.with_extension("sock.lock").exists());
}

/// MariaDB's own socket as an endpoint, and evenkeel's as what a client takes for MariaDB's.
#[test]
fn mariadb_is_served_over_its_socket() {
    let server = MariaDb::start("socketed");
    let (tcp, directory) = (ports::free(), TempDir::new().expect("a directory"));
    let front = directory.path().join("mysqld.sock");
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.tcp]
        bind = "{tcp}"
        to = "mysql"
        [listener.local]
        bind = "unix:{}"
        to = "mysql"
        [cluster.mysql]
        endpoints = ["unix:{}"]
        "#,
        front.display(),
        server.socket_path().display()
    ));
    assert_eq!(mariadb::query(tcp, "SELECT USER()"), "keel@localhost");
    assert_eq!(
        mariadb::query_socket(&front, "SELECT USER()"),
        "keel@localhost"
    );
    wait::until_so("both are done", || evenkeel.sessions(2).len() == 2);
    assert_eq!(evenkeel.reasons(2), ["done", "done"]);
}
