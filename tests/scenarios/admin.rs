//! The admin listener: metrics that are right and well formed, liveness, readiness, and clients that mean no good.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use crate::support::binary::root;
use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::metrics::Page;
use crate::support::process::Signal;
use crate::support::service::Service;
use crate::support::{client, http, ports, wait};

/// An evenkeel with an admin listener, in front of one endpoint; `process` has further lines for `[process]`.
struct Watched {
    evenkeel: Evenkeel,
    front: SocketAddr,
    admin: SocketAddr,
}

impl Watched {
    fn start(endpoint: SocketAddr, process: &str) -> Self {
        let (front, admin) = (ports::free(), ports::free());
        let evenkeel = Launch::new(format!(
            r#"
            [admin]
            bind = "{admin}"
            [listener.front]
            bind = "{front}"
            to = "web"
            [cluster.web]
            endpoints = [{{ name = "one", address = "{endpoint}", weight = 3, max_connections = 50 }}]
            "#,
        ))
        .process(&format!("workers = 2\n{process}"))
        .start();
        Self {
            evenkeel,
            front,
            admin,
        }
    }

    fn metrics(&self) -> Page {
        let answer = http::get(self.admin, "/metrics");
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("version=0.0.4"), "{}", answer.head);
        Page::read(&answer.body)
    }
}

/// Seven sessions of five bytes each way, and one that is still open: every figure is exactly that.
#[test]
fn metrics_tell_what_the_traffic_was() {
    let endpoint = Service::echo();
    let watched = Watched::start(endpoint.address(), "");
    for _ in 0..7 {
        assert_eq!(client::ask(watched.front, "hello"), "hello");
    }
    let mut open = client::connect(watched.front);
    client::echo(&mut open, b"still here");
    watched.evenkeel.sessions(7);

    let page = wait::until("the page is written anew", || {
        let page = watched.metrics();
        let ended = [("listener", "front"), ("reason", "done")];
        let ended = page.value("evenkeel_listener_sessions_ended_total", &ended);
        (ended == 7.0).then_some(page)
    });

    let front = [("listener", "front")];
    assert_eq!(
        page.value("evenkeel_listener_connections_total", &front),
        8.0
    );
    assert_eq!(page.value("evenkeel_listener_sessions", &front), 1.0);
    let lives = "evenkeel_listener_session_duration_seconds_count";
    assert_eq!(page.value(lives, &front), 7.0);
    let connects = "evenkeel_cluster_connect_duration_seconds_count";
    assert_eq!(page.value(connects, &[("cluster", "web")]), 7.0);
    for direction in ["up", "down"] {
        let listener = [("listener", "front"), ("direction", direction)];
        assert_eq!(page.value("evenkeel_listener_bytes_total", &listener), 35.0);
        let endpoint = [
            ("cluster", "web"),
            ("endpoint", "one"),
            ("direction", direction),
        ];
        assert_eq!(page.value("evenkeel_endpoint_bytes_total", &endpoint), 35.0);
    }
    check_endpoint(&page);
    check_process(&watched, &page);
}

fn check_endpoint(page: &Page) {
    let one = [("cluster", "web"), ("endpoint", "one")];
    let with = |label, value| [one[0], one[1], (label, value)];
    assert_eq!(
        page.value("evenkeel_attempts_total", &with("outcome", "established")),
        8.0
    );
    assert_eq!(
        page.value("evenkeel_attempts_total", &with("outcome", "refused")),
        0.0
    );
    assert_eq!(
        page.value("evenkeel_endpoint_state", &with("state", "up")),
        1.0
    );
    assert_eq!(
        page.value("evenkeel_endpoint_state", &with("state", "ejected")),
        0.0
    );
    assert_eq!(page.value("evenkeel_endpoint_weight", &one), 3.0);
    assert_eq!(page.value("evenkeel_endpoint_effective_weight", &one), 3.0);
    assert_eq!(
        page.value("evenkeel_endpoint_in_flight_sessions", &one),
        1.0
    );
    assert_eq!(page.value("evenkeel_endpoint_max_connections", &one), 50.0);
}

fn check_process(watched: &Watched, page: &Page) {
    assert_eq!(page.value("evenkeel_ready", &[]), 1.0);
    let workers = ["0", "1"].map(|worker| {
        let labels = [("worker", worker)];
        assert_eq!(page.value("evenkeel_worker_up", &labels), 1.0);
        page.value("evenkeel_worker_sessions", &labels)
    });
    assert_eq!(workers.iter().sum::<f64>(), 1.0);
    assert_eq!(
        page.value("evenkeel_access_log_lines_total", &[("result", "written")]),
        7.0
    );
    assert!(page.value("process_open_fds", &[]) > 4.0);
    assert!(page.value("process_resident_memory_bytes", &[]) > 100_000.0);
    let version = watched.evenkeel.status()["program"].clone();
    let version = version.as_str().expect("a text");
    assert_eq!(
        page.value("evenkeel_build_info", &[("version", version)]),
        1.0
    );
}

/// Reloads are counted by what became of them, and one that failed is no success.
#[test]
fn reloads_are_counted() {
    let endpoint = Service::echo();
    let watched = Watched::start(endpoint.address(), "");
    let started = watched.metrics().value(LAST_SUCCESS, &[]);
    assert!(started > 1.0e9);
    let file = watched.evenkeel.config_path();
    let text = fs::read_to_string(&file).expect("it is there");
    for (from, to) in [
        ("front", "front"),
        ("weight = 3", "weight = 4"),
        ("to =", "ot ="),
    ] {
        fs::write(&file, text.replace(from, to)).expect("it is ours");
        watched.evenkeel.ask(&["reload"]);
    }

    let page = wait::until("the page is written anew", || {
        let page = watched.metrics();
        let failed = page.value("evenkeel_reloads_total", &[("result", "failed")]);
        (failed > 0.0).then_some(page)
    });

    for result in ["done", "unchanged", "failed"] {
        let labels = [("result", result)];
        assert_eq!(page.value("evenkeel_reloads_total", &labels), 1.0);
    }
    assert!(page.value(LAST_SUCCESS, &[]) >= started);
}

const LAST_SUCCESS: &str = "evenkeel_reload_last_success_timestamp_seconds";

/// What is exported is what is documented, and the other way round.
#[test]
fn every_metric_is_documented() {
    let endpoint = Service::echo();
    let watched = Watched::start(endpoint.address(), "");
    let page = watched.metrics();

    let text = fs::read_to_string(root().join("docs/metrics.md")).expect("it is there");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| Some(row.split_once('`')?.0));
    let documented: BTreeSet<&str> = names.filter(|name| name.contains('_')).collect();
    assert_eq!(page.names(), documented);
}

/// An endpoint that has no name of its own is labelled by its address.
#[test]
fn an_address_is_a_label() {
    let (front, admin) = (ports::free(), ports::free());
    let endpoint = Service::echo();
    let name = endpoint.address().to_string();
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [admin]
        bind = "{admin}"
        [listener.front]
        bind = "{front}"
        to = "web"
        [cluster.web]
        endpoints = ["{name}"]
        "#,
    ));
    let page = Page::read(&http::get(admin, "/metrics").body);
    let labels = [("cluster", "web"), ("endpoint", &*name)];
    assert_eq!(page.value("evenkeel_endpoint_weight", &labels), 1.0);
}

/// Pages, methods and paths: what is there is answered, what is not is refused in words.
#[test]
fn only_reading_and_only_these_pages() {
    let endpoint = Service::echo();
    let watched = Watched::start(endpoint.address(), "");
    let status = |method, path| http::request(watched.admin, method, path).status;

    assert_eq!(http::get(watched.admin, "/livez").body, "alive\n");
    assert_eq!(http::get(watched.admin, "/readyz").body, "ready\n");
    let head = http::request(watched.admin, "HEAD", "/livez");
    assert_eq!((head.status, &*head.body), (200, ""));
    assert!(head.head.contains("content-length: 6"), "{}", head.head);
    assert_eq!(status("GET", "/"), 404);
    assert_eq!(status("GET", "/metrics/"), 404);
    let refused = http::request(watched.admin, "POST", "/metrics");
    assert_eq!(refused.status, 405);
    assert!(
        refused.head.contains("allow: GET, HEAD"),
        "{}",
        refused.head
    );
    assert_eq!(status("BREW", "/livez"), 405);
    let long = format!("/{}", "x".repeat(20_000));
    assert!([414, 431].contains(&status("GET", &long)));
}

/// A hundred clients that never finish their request, and one that sends rubbish, keep nobody from being answered.
#[test]
fn slow_clients_give_way() {
    const SLOW: usize = 100;
    let endpoint = Service::echo();
    let mut watched = Watched::start(endpoint.address(), "");
    let descriptors = watched.evenkeel.process().descriptors();
    let slow: Vec<_> = (0..SLOW)
        .map(|_| {
            let mut stream = client::connect(watched.admin);
            stream
                .write_all(b"GET /livez HTTP/1.1\r\nHost:")
                .expect("it is open");
            stream
        })
        .collect();
    let mut rubbish = client::connect(watched.admin);
    rubbish.write_all(&[0xff; 64]).expect("it is open");

    assert_eq!(http::get(watched.admin, "/livez").status, 200);
    assert_eq!(client::ask(watched.front, "hello"), "hello");
    assert!(watched.evenkeel.process().descriptors() <= descriptors + 20);
    drop((slow, rubbish));
}

/// In a stop, readiness goes first: clients that still come are served until the delay is over.
#[test]
fn fault_52_readiness_goes_before_the_listener() {
    let endpoint = Service::echo();
    let mut watched = Watched::start(endpoint.address(), "ready_delay = \"1h\"");
    assert_eq!(http::get(watched.admin, "/readyz").status, 200);

    watched.evenkeel.process().signal(Signal::TERM);
    let unready = wait::until("it is not ready any more", || {
        let answer = http::get(watched.admin, "/readyz");
        (answer.status == 503).then_some(answer)
    });
    assert_eq!(unready.body, "the process is stopping\n");
    assert_eq!(http::get(watched.admin, "/livez").status, 200);
    assert_eq!(client::ask(watched.front, "late"), "late");
    assert_eq!(watched.evenkeel.status()["phase"], "stopping");
}

/// After the delay nobody new is taken, and who was there before finishes.
#[test]
fn after_the_delay_the_stop_goes_on() {
    let endpoint = Service::echo();
    let delay = "ready_delay = \"50ms\"\nstop_deadline = \"1h\"";
    let mut watched = Watched::start(endpoint.address(), delay);
    let mut session = client::connect(watched.front);
    client::echo(&mut session, b"before");

    watched.evenkeel.process().signal(Signal::TERM);
    wait::until_so("nobody new is taken", || {
        client::try_connect(watched.front).is_err()
    });
    client::echo(&mut session, b"after");
    drop(session);
    assert_eq!(watched.evenkeel.process().exit().code(), Some(0));
}

/// A second signal during the delay does not wait for its end.
#[test]
fn a_second_signal_cuts_the_delay() {
    let endpoint = Service::echo();
    let mut watched = Watched::start(endpoint.address(), "ready_delay = \"1h\"");
    let mut session = client::connect(watched.front);
    client::echo(&mut session, b"before");

    watched.evenkeel.process().signal(Signal::TERM);
    wait::until_so("it is stopping", || {
        http::get(watched.admin, "/readyz").status == 503
    });
    watched.evenkeel.process().signal(Signal::TERM);

    assert_eq!(watched.evenkeel.process().exit().code(), Some(0));
    assert_eq!(watched.evenkeel.reasons(1), ["stop"]);
}

/// An admin listener whose address is taken: nothing starts, and the error has the address.
#[test]
fn an_address_that_is_taken_is_named() {
    let (stranger, front) = (Service::named("stranger"), ports::free());
    let mut evenkeel = Launch::new(format!(
        r#"
        [admin]
        bind = "{}"
        [listener.front]
        bind = "{front}"
        to = "web"
        [cluster.web]
        endpoints = ["127.0.0.1:1"]
        "#,
        stranger.address(),
    ))
    .start_unready();

    assert_eq!(evenkeel.process().exit().code(), Some(1));
    let log = evenkeel.program_log();
    assert!(
        log.contains("admin") && log.contains(&stranger.address().to_string()),
        "{log}"
    );
}

/// On a Unix socket the same is answered, and its file goes with the process.
#[test]
fn a_unix_socket_does_as_well() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (path, front) = (directory.path().join("admin.sock"), ports::free());
    let mut evenkeel = Evenkeel::start(format!(
        r#"
        [admin]
        bind = "unix:{}"
        [listener.front]
        bind = "{front}"
        to = "web"
        [cluster.web]
        endpoints = ["127.0.0.1:1"]
        "#,
        path.display(),
    ));

    let mut stream = UnixStream::connect(&path).expect("it listens");
    let request = b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n";
    stream.write_all(request).expect("it can be written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("ready\n"),
        "{answer}"
    );

    evenkeel.process().signal(Signal::TERM);
    assert_eq!(evenkeel.process().exit().code(), Some(0));
    assert!(!path.exists(), "the socket is left behind");
}

/// A cluster that is probed has its probes counted; those of an endpoint where nobody listens fail.
#[test]
fn probes_are_counted() {
    let (endpoint, front, admin) = (Service::echo(), ports::free(), ports::free());
    let _evenkeel = Evenkeel::start(format!(
        r#"
        [admin]
        bind = "{admin}"
        [listener.front]
        bind = "{front}"
        to = "web"
        [cluster.web]
        endpoints = [
          {{ name = "there", address = "{}" }},
          {{ name = "gone", address = "{}" }},
        ]
        health = {{ check = "tcp", every = "50ms" }}
        "#,
        endpoint.address(),
        ports::free(),
    ));
    let page = wait::until("several probes have ended", || {
        let page = Page::read(&http::get(admin, "/metrics").body);
        let labels = [
            ("cluster", "web"),
            ("endpoint", "gone"),
            ("result", "failed"),
        ];
        let failed = page.find("evenkeel_probes_total", &labels);
        (failed > Some(3.0)).then_some(page)
    });

    for (name, passed) in [("there", 1.0), ("gone", 0.0)] {
        let labels = [("cluster", "web"), ("endpoint", name)];
        assert_eq!(page.value("evenkeel_probe_passed", &labels), passed);
        assert!(page.value("evenkeel_probe_duration_seconds", &labels) < 60.0);
    }
    let down = [("cluster", "web"), ("endpoint", "gone"), ("state", "down")];
    assert_eq!(page.value("evenkeel_endpoint_state", &down), 1.0);
}
