//! A new program in the place of the running one, and sockets that somebody else has opened.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::support::evenkeel::{Evenkeel, Launch, evenkeel_command};
use crate::support::process::{self, Process, Signal, kill_all_run_with};
use crate::support::service::Service;
use crate::support::{binary, client, ports, wait};

/// One echo endpoint behind one listener, with a stop that waits for ever.
struct World {
    front: SocketAddr,
    evenkeel: Evenkeel,
    endpoint: Service,
}

impl World {
    fn start() -> Self {
        let (endpoint, front) = (Service::echo(), ports::free());
        let evenkeel = Launch::new(config(&front.to_string(), &endpoint))
            .process("workers = 2\nstop_deadline = \"1h\"")
            .start();
        Self {
            front,
            evenkeel,
            endpoint,
        }
    }

    fn upgrade(&self, words: &[&str]) -> Output {
        self.evenkeel.ask(&[&["upgrade"], words].concat())
    }

    /// Upgrades, which must succeed, and returns the new process's id.
    fn upgraded(&self) -> u32 {
        let before = self.evenkeel.pid();
        let output = self.upgrade(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", self.told(&output));
        let pid = self.evenkeel.pid();
        assert_ne!(pid, before, "{}", self.told(&output));
        pid
    }

    /// Upgrades, which must fail with that code and these words, and changes nothing.
    fn cannot_upgrade(&self, words: &[&str], code: i32, why: &str) {
        let before = self.evenkeel.pid();
        let output = self.upgrade(words);
        let told = self.told(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(why),
            "{told}"
        );
        assert_eq!(self.evenkeel.pid(), before, "{told}");
        assert_eq!(client::ask(self.front, "still here"), "still here");
        assert_eq!(
            children_of(before),
            "",
            "what was started is still there: {told}"
        );
    }

    fn told(&self, output: &Output) -> String {
        let (said, complained) = (&output.stdout, &output.stderr);
        format!(
            "{}{}\nits log:\n{}",
            String::from_utf8_lossy(said),
            String::from_utf8_lossy(complained),
            self.evenkeel.program_log()
        )
    }

    /// Rewrites the configuration.
    fn edit(&self, from: &str, to: &str) {
        let path = self.evenkeel.config_path();
        let text = fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "no {from} in {text}");
        fs::write(&path, text.replace(from, to)).expect("it is ours");
    }

    /// A program of the test's own, in the directory of the configuration.
    fn script(&self, text: &str) -> PathBuf {
        let path = self.evenkeel.config_path().with_file_name("program");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("it is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }
}

fn config(bind: &str, endpoint: &Service) -> String {
    format!(
        "[listener.front]\nbind = \"{bind}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"{}\"]\n",
        endpoint.address(),
    )
}

/// The process ids of a process's children, zombies too.
fn children_of(pid: u32) -> String {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let children = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    children.collect::<String>().trim().to_owned()
}

fn descriptors_of(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn has_ended(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Clients that come and go, as fast as they can, until they are counted.
struct Crowd {
    over: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

impl Crowd {
    fn at(front: SocketAddr) -> Self {
        let (over, served) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let visit = |number| {
            let (over, served) = (Arc::clone(&over), Arc::clone(&served));
            move || visit(front, number, &over, &served)
        };
        let threads = (0..4).map(|number| thread::spawn(visit(number)));
        Self {
            threads: threads.collect(),
            over,
            served,
        }
    }

    /// Waits until so many more have been served.
    fn wait_for(&self, more: usize) {
        let target = self.served.load(Ordering::SeqCst) + more;
        wait::until_so("clients are served", || {
            self.served.load(Ordering::SeqCst) >= target
        });
    }

    /// Sends everybody home: what has failed.
    fn failures(self) -> Vec<String> {
        self.over.store(true, Ordering::SeqCst);
        let threads = self.threads.into_iter();
        threads
            .flat_map(|thread| thread.join().expect("it does not panic"))
            .collect()
    }
}

fn visit(front: SocketAddr, number: usize, over: &AtomicBool, served: &AtomicUsize) -> Vec<String> {
    let mut failures = Vec::new();
    for round in 0.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let request = format!("client {number}, round {round}");
        match client::exchange(front, request.as_bytes()) {
            Ok(answer) if answer == request.as_bytes() => {
                served.fetch_add(1, Ordering::SeqCst);
            }
            other => failures.push(format!("{request}: {other:?}")),
        }
    }
    failures
}

/// Three upgrades in a row under load: nobody who comes and goes fails, and who stays is served on by the process that took them,
/// though two more have come after it. Each process ends with its last session.
#[test]
fn fault_7_no_connection_is_lost() {
    let mut world = World::start();
    let crowd = Crowd::at(world.front);
    let mut stayers: Vec<TcpStream> = Vec::new();
    let mut pids = vec![world.evenkeel.pid()];
    for _ in 0..3 {
        crowd.wait_for(100);
        stayers.extend((0..8).map(|_| client::connect(world.front)));
        for stayer in &mut stayers {
            client::echo(stayer, b"before");
        }
        pids.push(world.upgraded());
        crowd.wait_for(100);
        for stayer in &mut stayers {
            client::echo(stayer, b"after");
        }
    }
    assert!(
        pids.iter().all(|pid| !has_ended(*pid)),
        "all of them have sessions"
    );

    let failures = crowd.failures();
    assert!(
        failures.is_empty(),
        "{} failed: {failures:#?}",
        failures.len()
    );
    drop(stayers);

    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
    let (last, others) = pids.split_last().expect("four");
    wait::until_so("those without sessions have ended", || {
        others.iter().all(|pid| has_ended(*pid))
    });
    assert_eq!(world.evenkeel.pid(), *last);
}

/// Fewer workers than before, and more: whoever connects is served, on whichever socket.
#[test]
fn the_number_of_workers_may_change() {
    let world = World::start();
    let crowd = Crowd::at(world.front);
    for (from, to) in [
        ("workers = 2", "workers = 1"),
        ("workers = 1", "workers = 4"),
    ] {
        world.edit(from, to);
        world.upgraded();
        crowd.wait_for(200);
    }
    let workers = world.evenkeel.status()["workers"].as_array().map(Vec::len);
    assert_eq!(workers, Some(4));
    let failures = crowd.failures();
    assert!(
        failures.is_empty(),
        "{} failed: {failures:#?}",
        failures.len()
    );
}

/// The control socket is the new process's: it answers there, is the one that a second start names, and removes it at its end.
#[test]
fn the_control_socket_goes_over() {
    let mut world = World::start();
    let pid = world.upgraded();
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));

    let second = evenkeel_command(&["run", &world.evenkeel.config_path().display().to_string()])
        .output()
        .expect("evenkeel can be started");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("pid {pid}")), "{said}");

    let stopped = world.evenkeel.ask(&["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", world.told(&stopped));
    assert!(!world.evenkeel.socket_path().exists());
    assert!(client::try_connect(world.front).is_err());
}

/// With another control socket in the configuration, the new process is found there, and the old path is gone.
#[test]
fn the_control_socket_may_move() {
    let mut world = World::start();
    let before = world.evenkeel.socket_path();
    let after = before.with_file_name("other.sock");
    world.edit("control.sock", "other.sock");

    let output = world.upgrade(&[]);

    assert_eq!(output.status.code(), Some(0), "{}", world.told(&output));
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
    assert!(!before.exists());
    let after = after.display().to_string();
    let stopped = evenkeel_command(&["stop", "--socket", &after]).output();
    assert!(stopped.is_ok_and(|output| output.status.success()));
}

/// USR2 does the same as the command.
#[test]
fn a_signal_upgrades_too() {
    let mut world = World::start();
    let before = world.evenkeel.pid();

    world.evenkeel.process().signal(Signal::USR2);

    wait::until_so("another process answers", || world.evenkeel.pid() != before);
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
    assert_eq!(client::ask(world.front, "hello"), "hello");
}

/// A program that cannot be started, one that ends at once, and one that hangs: the command says what is known of it, and the running
/// process goes on with nothing left behind.
#[test]
fn a_broken_program_changes_nothing() {
    let world = World::start();
    world.cannot_upgrade(
        &["--binary", "/nonexistent/evenkeel"],
        1,
        "/nonexistent/evenkeel",
    );

    let program = world.script("echo 'libfoo.so.7: not found' >&2; exit 1");
    let program = program.display().to_string();
    world.cannot_upgrade(&["--binary", &program], 1, "libfoo.so.7: not found");

    world.script("echo 'thinking' >&2; exec sleep 1000");
    world.cannot_upgrade(&["--binary", &program, "--wait", "1s"], 5, "thinking");

    world.script("exec 0<&-; exec sleep 1000");
    let words = ["--binary", &program, "--wait", "5"];
    world.cannot_upgrade(&words, 1, "the new program hung up");
    world.upgraded();
}

/// A configuration with an error is shown as `check` shows it, with its exit code.
#[test]
fn a_broken_configuration_changes_nothing() {
    let world = World::start();
    world.edit("[cluster.echo]", "[cluster.ehco]");

    world.cannot_upgrade(&[], 3, "echo");

    world.edit("[cluster.ehco]", "[cluster.echo]");
    world.upgraded();
}

/// A listener that is new in the configuration, and cannot be had, is no reason to lose those that are there.
#[test]
fn a_taken_address_changes_nothing() {
    let (world, stranger) = (World::start(), Service::named("stranger"));
    let taken = stranger.address().to_string();
    let more = format!("[listener.more]\nbind = \"{taken}\"\nto = \"echo\"\n[listener.front]");
    world.edit("[listener.front]", &more);

    world.cannot_upgrade(&[], 1, &taken);
}

/// A process that is stopping is not upgraded; what it serves it finishes.
#[test]
fn a_stopping_process_is_not_upgraded() {
    let mut world = World::start();
    let mut session = client::connect(world.front);
    client::echo(&mut session, b"before");
    world.evenkeel.process().signal(Signal::TERM);
    wait::until_so("it is stopping", || {
        world.evenkeel.status()["phase"] == "stopping"
    });

    let output = world.upgrade(&[]);

    assert_eq!(output.status.code(), Some(1), "{}", world.told(&output));
    client::echo(&mut session, b"after");
    drop(session);
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
}

/// An upgrade that goes no further for the two seconds for which a new process waits for its first probes.
struct Pending {
    world: World,
    upgrade: Child,
    successor: u32,
}

impl Pending {
    fn start() -> Self {
        let (endpoint, front) = (well_only_once(), ports::free());
        let text = config(&front.to_string(), &endpoint);
        let health = "health = { check = \"http\", every = \"1h\", timeout = \"1m\" }\n";
        let world = World {
            front,
            evenkeel: Evenkeel::start(format!("{text}{health}")),
            endpoint,
        };
        let mut command = evenkeel_command(&["upgrade", "--socket"]);
        command.arg(world.evenkeel.socket_path());
        let upgrade = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        wait::until_so("the new process probes", || world.endpoint.accepted() == 2);
        let successor = children_of(world.evenkeel.pid());
        Self {
            world,
            upgrade: upgrade.expect("evenkeel can be started"),
            successor: successor.parse().expect("one child"),
        }
    }

    /// Its exit code, and what it complains of.
    fn outcome(self) -> (World, Option<i32>, String) {
        let output = self.upgrade.wait_with_output().expect("it is our child");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        (self.world, output.status.code(), complaint)
    }
}

/// A stop while a new process waits for its first probes ends both: nobody serves on without a control socket, and nobody says
/// that somebody does.
#[test]
fn a_stop_calls_an_upgrade_off() {
    for words in [&["stop"][..], &["stop", "--now"]] {
        let mut pending = Pending::start();
        let (evenkeel, successor) = (&mut pending.world.evenkeel, pending.successor);

        let stopped = evenkeel.ask(words);

        assert!(stopped.status.success(), "{}", evenkeel.program_log());
        assert_eq!(evenkeel.process().exit().code(), Some(0));
        assert!(has_ended(successor), "{}", evenkeel.program_log());
        let (world, code, complaint) = pending.outcome();
        assert!(client::try_connect(world.front).is_err());
        assert_eq!(code, Some(1), "{complaint}");
        assert!(complaint.contains("stopping"), "{complaint}");
        assert!(!complaint.contains("goes on"), "{complaint}");
    }
}

/// A signal that ends the new process before it serves does so at once, and the process before it goes on.
#[test]
fn a_new_process_may_be_stopped_before_it_serves() {
    let pending = Pending::start();
    let pid = pending.world.evenkeel.pid();

    process::signal(pending.successor, Signal::TERM);

    let (world, code, complaint) = pending.outcome();
    assert_eq!(code, Some(1), "{complaint}");
    assert!(
        complaint.contains("told to stop before it served"),
        "{complaint}"
    );
    assert!(
        complaint.contains("the running process goes on"),
        "{complaint}"
    );
    assert_eq!(world.evenkeel.pid(), pid);
}

/// What an operator says while another process is being brought up would be lost: it is refused, and taken when that one serves.
#[test]
fn no_order_is_lost_in_an_upgrade() {
    let pending = Pending::start();
    let endpoint = format!("echo/{}", pending.world.endpoint.address());
    let drain = ["endpoint", "drain", &endpoint];

    let during = pending.world.evenkeel.ask(&drain);

    let refusal = String::from_utf8_lossy(&during.stderr).into_owned();
    assert_eq!(during.status.code(), Some(1), "{refusal}");
    assert!(refusal.contains("say it again"), "{refusal}");
    let shown = pending.world.evenkeel.ask(&["endpoint", "show", &endpoint]);
    assert!(shown.status.success(), "only looking does no harm");
    let (world, code, complaint) = pending.outcome();
    assert_eq!(code, Some(0), "{complaint}");
    let after = world.evenkeel.ask(&drain);
    assert!(after.status.success(), "{}", world.told(&after));
}

/// After an upgrade `status` shows the process that still lets its sessions finish, until it has ended.
#[test]
fn the_process_before_is_shown_until_it_has_ended() {
    let world = World::start();
    let before = world.evenkeel.pid();
    let mut session = client::connect(world.front);
    client::echo(&mut session, b"before");

    world.upgraded();

    wait::until_so("its session is told", || {
        let status = world.evenkeel.status();
        status["predecessor"]["pid"] == before && status["predecessor"]["sessions"] == 1
    });
    drop(session);
    wait::until_so("it is shown no more", || {
        world.evenkeel.status()["predecessor"].is_null()
    });
}

/// An endpoint that answers its first probe, and leaves all others waiting.
fn well_only_once() -> Service {
    Service::start(|mut stream, number| {
        let mut request = [0; 1024];
        while matches!(stream.read(&mut request), Ok(1..)) {
            if number == 1 {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            }
        }
    })
}

/// A stop of the whole service reaches the process that still drains as well: the first signal leaves it its deadline, the second
/// ends it.
#[test]
fn a_draining_process_heeds_the_second_signal() {
    let mut world = World::start();
    let mut session = client::connect(world.front);
    client::echo(&mut session, b"before");
    world.upgraded();

    world.evenkeel.process().signal(Signal::TERM);
    client::echo(&mut session, b"after");
    wait::until_so("a further signal ends it", || {
        if world.evenkeel.process().exited().is_none() {
            world.evenkeel.process().signal(Signal::TERM);
        }
        world.evenkeel.process().exited().is_some()
    });
    assert!(client::ends_with_reset(&mut session));
}

/// When the new process is killed right away, sessions of the old one are not harmed, and a new start finds everything free.
#[test]
fn a_killed_successor_harms_no_session() {
    let mut world = World::start();
    let mut session = client::connect(world.front);
    client::echo(&mut session, b"before");
    let pid = world.upgraded();

    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("small")).expect("not 0");
    rustix::process::kill_process(pid, Signal::KILL).expect("it is there");

    client::echo(&mut session, b"after");
    drop(session);
    assert_eq!(world.evenkeel.process().exit().code(), Some(0));
    world.evenkeel.start_again();
    assert_eq!(client::ask(world.front, "hello"), "hello");
}

/// Nothing is passed on but what is wanted: the third successor has as many descriptors as the first.
#[test]
fn descriptors_do_not_add_up() {
    let world = World::start();
    let settled = |pid| {
        wait::until_so("its predecessor has ended", || {
            world.evenkeel.status()["phase"] == "running" && children_of(pid).is_empty()
        });
        descriptors_of(pid)
    };
    let first = settled(world.upgraded());
    world.upgraded();
    let third = world.upgraded();
    wait::until_so("as many descriptors as the first", || {
        settled(third) == first
    });
}

/// Clients of a Unix socket do not notice either.
#[test]
fn a_unix_listener_goes_over() {
    let endpoint = Service::echo();
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("front.sock");
    let bind = format!("unix:{}", path.display());
    let mut evenkeel = Launch::new(config(&bind, &endpoint))
        .process("workers = 2\nstop_deadline = \"1h\"")
        .start();
    let mut session = UnixStream::connect(&path).expect("it listens");
    echo_unix(&mut session);

    let output = evenkeel.ask(&["upgrade"]);

    assert!(output.status.success(), "{}", evenkeel.program_log());
    echo_unix(&mut session);
    drop(session);
    assert_eq!(evenkeel.process().exit().code(), Some(0));
    echo_unix(&mut UnixStream::connect(&path).expect("it listens"));
}

/// The files of the proxy's own Unix sockets go with their listener, whichever process has opened them: at a reload that moves it, and at
/// the end.
#[test]
fn files_of_unix_sockets_are_removed() {
    let endpoint = Service::echo();
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let text = format!(
        "{}[listener.other]\nbind = \"unix:{}\"\nto = \"echo\"\n[admin]\nbind = \"unix:{}\"\n",
        config(&format!("unix:{}", at("a.sock").display()), &endpoint),
        at("other.sock").display(),
        at("admin.sock").display(),
    );
    let mut evenkeel = Launch::new(text).process("workers = 2").start();
    for _ in 0..2 {
        let output = evenkeel.ask(&["upgrade"]);
        assert!(output.status.success(), "{}", evenkeel.program_log());
        echo_unix(&mut UnixStream::connect(at("a.sock")).expect("it listens"));
    }
    assert_eq!(evenkeel.process().exit().code(), Some(0));
    assert!(at("other.sock").exists() && at("admin.sock").exists());

    let file = evenkeel.config_path();
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, text.replace("a.sock", "b.sock")).expect("it is ours");
    let output = evenkeel.ask(&["reload"]);
    assert!(output.status.success(), "{}", evenkeel.program_log());
    wait::until_so("the old path is gone", || !at("a.sock").exists());
    echo_unix(&mut UnixStream::connect(at("b.sock")).expect("it listens"));

    fs::remove_file(at("other.sock")).expect("it is there");
    fs::write(at("other.sock"), "a stranger's").expect("it is ours");
    let output = evenkeel.ask(&["stop"]);
    assert!(output.status.success(), "{}", evenkeel.program_log());
    wait::until_so("what is the proxy's is gone", || {
        !at("b.sock").exists() && !at("admin.sock").exists()
    });
    assert!(at("other.sock").exists(), "it is another's by now");
}

fn echo_unix(stream: &mut UnixStream) {
    stream
        .set_read_timeout(Some(wait::DEADLINE))
        .expect("a socket");
    stream.write_all(b"hello").expect("it can be written");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"hello");
}

/// A service manager opens the socket, and its first client is served by the process that it starts for it; all workers have
/// their share. That process can be upgraded like any other.
#[test]
fn a_service_manager_opens_the_socket() {
    let (endpoint, front) = (Service::echo(), ports::free());
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let (file, socket) = (
        directory.path().join("evenkeel.toml"),
        directory.path().join("control.sock"),
    );
    let text = format!(
        "[process]\nworkers = 2\ncontrol_socket = {socket:?}\n{}",
        config(&front.to_string(), &endpoint)
    );
    fs::write(&file, text).expect("it is ours");
    let mut command = process::command("systemd-socket-activate");
    command.arg("--listen").arg(front.to_string());
    command.arg(binary::evenkeel()).arg("run").arg(&file);
    let _manager = Process::start(command);
    wait::until_so("the service manager listens", || {
        client::try_connect(front).is_ok()
    });

    let mut clients: Vec<_> = (0..8).map(|_| client::connect(front)).collect();
    for client in &mut clients {
        client::echo(client, b"hello");
    }
    let status = || {
        let words = [
            "status",
            "--json",
            "--socket",
            &socket.display().to_string(),
        ]
        .map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = evenkeel_command(&words)
            .output()
            .expect("evenkeel can be started");
        serde_json::from_slice::<serde_json::Value>(&output.stdout)
            .expect("status --json prints JSON")
    };
    let sessions = |worker: usize| status()["workers"][worker]["sessions"].as_u64();
    assert!(
        sessions(0) >= Some(3) && sessions(1) >= Some(3),
        "{:#}",
        status()
    );

    let before = status()["pid"].clone();
    let words = ["upgrade", "--socket", &socket.display().to_string()].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = evenkeel_command(&words)
        .output()
        .expect("evenkeel can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_ne!(status()["pid"], before);
    client::echo(&mut client::connect(front), b"hello");
    client::echo(&mut clients[0], b"again");
    kill_all_run_with(&file);
}

/// What sessions have taught of an endpoint is known to the new process before its first session.
#[test]
fn what_is_known_ofendpoints_goes_over() {
    let (endpoint, front, dead) = (Service::echo(), ports::free(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        "[listener.front]\nbind = \"{front}\"\nto = \"two\"\n[cluster.two]\nendpoints = [\n\
         {{ name = \"well\", address = \"{}\", weight = 100 }},\n\
         {{ name = \"dead\", address = \"{dead}\", weight = 100 }}]\n",
        endpoint.address(),
    ));
    let effective = || evenkeel.endpoint_number("two", "dead", "effective_weight");
    wait::until_so("failures have been counted", || {
        client::ask(front, "hello");
        effective() < 100
    });
    let before = effective();

    let output = evenkeel.ask(&["upgrade"]);

    assert!(output.status.success(), "{}", evenkeel.program_log());
    assert_eq!(effective(), before);
}
