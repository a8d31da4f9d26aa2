//! Two real MariaDB servers behind one address.

use std::net::SocketAddr;
use std::process::Stdio;

use crate::support::evenkeel::Evenkeel;
use crate::support::mariadb::{self, MariaDb, Session, query, sysbench};
use crate::support::process::Process;
use crate::support::{ports, wait};

struct World {
    one: MariaDb,
    two: MariaDb,
    evenkeel: Evenkeel,
    front: SocketAddr,
}

/// `cluster` has further lines for the cluster.
fn two_servers(cluster: &str) -> World {
    let (one, two, front) = (MariaDb::start("one"), MariaDb::start("two"), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.mysql]
        bind = "{front}"
        to = "databases"
        failure_reply = "mysql-error"
        [cluster.databases]
        endpoints = [{{ name = "one", address = "{}" }}, {{ name = "two", address = "{}" }}]
        {cluster}
        "#,
        one.address(),
        two.address(),
    ));
    World {
        one,
        two,
        evenkeel,
        front,
    }
}

/// Two clients land on different servers, each of which has a database of its own; both do ordinary work at the same time.
#[test]
fn two_clients_land_on_different_servers() {
    let world = two_servers("");
    let mut sessions = [Session::open(world.front), Session::open(world.front)];

    let [first, second] = sessions
        .each_mut()
        .map(|session| session.query("SELECT @@port"));
    let mut found = [first, second];
    found.sort();
    let mut expected = [&world.one, &world.two].map(|server| server.address().port().to_string());
    expected.sort();
    assert_eq!(found, expected);

    for session in &mut sessions {
        let port = session.query("SELECT @@port");
        let name = if port == world.one.address().port().to_string() {
            "one"
        } else {
            "two"
        };
        let databases = session.query("SELECT GROUP_CONCAT(schema_name) FROM information_schema.schemata WHERE schema_name IN ('one', 'two')");
        assert_eq!(databases, name);
    }
}

/// Tables, rows, transactions, and a result of some megabytes with its checksum: as if the server were there itself.
#[test]
fn ordinary_commands_work() {
    let world = two_servers("");
    let printed = query(
        world.front,
        "USE keel;
         CREATE TABLE keel.numbers (id INT PRIMARY KEY, word VARCHAR(100)) ENGINE=InnoDB;
         INSERT INTO keel.numbers SELECT seq, REPEAT(MD5(seq), 3) FROM seq_1_to_50000;
         START TRANSACTION;
         UPDATE keel.numbers SET word = 'gone' WHERE id <= 10;
         ROLLBACK;
         START TRANSACTION;
         DELETE FROM keel.numbers WHERE id > 49990;
         COMMIT;
         SELECT COUNT(*), SUM(word = 'gone'), @@port FROM keel.numbers;",
    );
    let mut columns = printed.split('\t');
    assert_eq!((columns.next(), columns.next()), (Some("49990"), Some("0")));

    let port = columns.next().expect("three columns").to_owned();
    let server = [&world.one, &world.two]
        .into_iter()
        .find(|server| server.address().port().to_string() == port);
    let server = server.expect("one of the two answered");
    // Ask until the same server is met, so that the same rows are compared.
    let everything = "SELECT @@port; SELECT id, word FROM keel.numbers ORDER BY id";
    let (through, direct) = (
        wait::until("the server is met again", || {
            let output = mariadb::run(world.front, everything);
            output.status.success().then_some(output.stdout)
        }),
        query(server.address(), everything),
    );
    let through = String::from_utf8(through).expect("the rows are text");
    assert!(direct.len() > 4 << 20);
    assert!(through.trim_end() == direct, "the rows differ");
}

/// sysbench prepares, runs and cleans up through the balancer, against one server.
#[test]
fn sysbench_runs() {
    let world = two_servers("balance = \"source-hash\"");
    let oltp = |words: &[&str]| {
        let mut all = vec![
            "oltp_read_write",
            "--tables=2",
            "--table-size=500",
            "--threads=4",
            "--events=200",
            "--time=0",
        ];
        all.extend(words);
        let output = sysbench(world.front, &all)
            .output()
            .expect("sysbench is installed: cargo xtask test");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    };
    oltp(&["prepare"]);
    let said = oltp(&["run"]);
    oltp(&["cleanup"]);

    let events = said
        .lines()
        .find(|line| line.contains("total number of events"));
    assert!(events.is_some_and(|line| line.ends_with(" 200")), "{said}");
}

/// A server dies under load: its clients get an error, new ones go to the other, and when it is back it takes work again.
#[test]
fn a_killed_server_is_replaced_and_comes_back() {
    let mut world = two_servers(
        r#"trials = { every = "50ms", every_max = "100ms" }
           ejection = { failures = 3, base = "50ms", max = "100ms" }"#,
    );
    let mut load = start_load(&world);
    let (mut on_one, on_two) = (
        session_on(&world, &world.one),
        session_on(&world, &world.two),
    );
    assert_eq!(on_one.query("SELECT 1 + 1"), "2");

    world.one.kill();
    let words = on_one.last_words("SELECT 1 + 1");
    assert!(
        words.contains("Lost connection") || words.contains("gone away"),
        "{words}"
    );
    assert!(!load.exit().success(), "the load noticed nothing");

    let port_of_two = world.two.address().port().to_string();
    for _ in 0..10 {
        assert_eq!(query(world.front, "SELECT @@port"), port_of_two);
    }
    drop(on_two);

    world.one.restart();
    let port_of_one = world.one.address().port().to_string();
    wait::until_so("the restarted server takes work", || {
        query(world.front, "SELECT @@port") == port_of_one
    });
    assert!(
        world
            .evenkeel
            .endpoint_number("databases", "one", "failures")
            > 0
    );
}

/// sysbench with four connections, for longer than the test takes; it ends when a connection breaks.
fn start_load(world: &World) -> Process {
    const TABLES: &[&str] = &["oltp_point_select", "--tables=1", "--table-size=100"];
    for server in [&world.one, &world.two] {
        let prepared = sysbench(server.address(), &[TABLES, &["prepare"]].concat()).output();
        assert!(
            prepared.is_ok_and(|output| output.status.success()),
            "sysbench cannot prepare"
        );
    }
    let mut load = sysbench(
        world.front,
        &[TABLES, &["--threads=4", "--time=600", "run"]].concat(),
    );
    load.stdout(Stdio::null()).stderr(Stdio::null());
    Process::start(load)
}

/// A client session on that very server: the balancer deals them out in turn.
fn session_on(world: &World, server: &MariaDb) -> Session {
    let port = server.address().port().to_string();
    wait::until(&format!("a session on {}", server.name()), || {
        let mut session = Session::open(world.front);
        (session.query("SELECT @@port") == port).then_some(session)
    })
}
