//! Ends and new beginnings: a stop under load, a killed process, a full disk, a supervisor that wants signs of life.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::evenkeel::Launch;
use crate::support::metrics::Page;
use crate::support::process::Signal;
use crate::support::service::Service;
use crate::support::{client, http, ports, wait};

/// Long sessions that talk all the time and short ones that come all the time: whoever was connected when the signal came is
/// served to the end.
#[test]
fn a_stop_under_load_fails_nobody() {
    const LONG: usize = 32;
    const ROUNDS: usize = 200;
    let (endpoint, front) = (Service::echo(), ports::free());
    let mut evenkeel = Launch::new(format!(
        "[listener.front]\nbind = \"{front}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"{}\"]",
        endpoint.address(),
    ))
    .process("workers = 2\nstop_deadline = \"1h\"")
    .start();
    let (talking, stopping) = (AtomicUsize::new(0), AtomicBool::new(false));

    std::thread::scope(|scope| {
        for _ in 0..LONG {
            scope.spawn(|| {
                let mut session = client::connect(front);
                client::echo(&mut session, b"first");
                talking.fetch_add(1, Ordering::SeqCst);
                wait::until_so("the stop has begun", || {
                    client::echo(&mut session, b"meanwhile");
                    stopping.load(Ordering::SeqCst)
                });
                (0..ROUNDS).for_each(|_| client::echo(&mut session, b"after"));
            });
        }
        for _ in 0..4 {
            scope.spawn(|| {
                while !stopping.load(Ordering::SeqCst) {
                    let Ok(mut session) = client::try_connect(front) else {
                        break;
                    };
                    let was_before = !stopping.load(Ordering::SeqCst);
                    let served = session
                        .write_all(b"short")
                        .and_then(|()| session.read_exact(&mut [0; 5]));
                    assert!(served.is_ok() || !was_before, "{served:?}");
                }
            });
        }
        wait::until_so("all talk", || talking.load(Ordering::SeqCst) == LONG);
        stopping.store(true, Ordering::SeqCst);
        evenkeel.process().signal(Signal::TERM);
    });

    assert_eq!(evenkeel.process().exit().code(), Some(0));
    let log = evenkeel.program_log();
    assert!(!log.contains("have not finished"), "{log}");
}

/// After a kill -9 everything lies about: the control socket, a listener's Unix socket, a log. The next start takes their places
/// and goes on with the log.
#[test]
fn a_killed_process_leaves_nothing_in_the_way() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("front.sock");
    let endpoint = Service::echo();
    let mut evenkeel = Launch::new(format!(
        "[listener.front]\nbind = \"unix:{}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"{}\"]",
        path.display(),
        endpoint.address(),
    ))
    .start();
    echo_over(&path);
    evenkeel.sessions(1);

    evenkeel.process().kill();
    assert!(path.exists() && evenkeel.socket_path().exists());
    evenkeel.start_again();

    echo_over(&path);
    assert_eq!(evenkeel.reasons(2), ["done", "done"]);
}

fn echo_over(path: &Path) {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.write_all(b"hello").expect("it can be written");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "hello");
}

/// The disk of the access log fills up and is cleared again, as seen through `/proc`: it is mounted for evenkeel alone.
struct SmallDisk(PathBuf);

impl SmallDisk {
    const BYTES: usize = 64 << 10;

    fn of(process: u32, directory: &Path) -> Self {
        let inside = directory.strip_prefix("/").expect("it is absolute");
        Self(Path::new(&format!("/proc/{process}/root")).join(inside))
    }

    fn fill(&self) {
        let mut ballast = fs::File::create(self.0.join("ballast")).expect("the disk is there");
        let page = [0; 4096];
        let mut pages = 0..=Self::BYTES / page.len();
        assert!(
            pages.any(|_| ballast.write_all(&page).is_err()),
            "it fills up"
        );
    }

    fn clear(&self) {
        fs::remove_file(self.0.join("ballast")).expect("it was filled");
    }
}

/// A full disk costs lines, which are counted, and nothing else; when there is room again lines are written again.
#[test]
fn a_disk_that_has_room_again_gets_lines_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (endpoint, front, admin) = (Service::echo(), ports::free(), ports::free());
    let log = directory.path().join("access.log");
    let disk = directory.path().display();
    let mount = format!(
        "mount -t tmpfs -o size={} none {disk} && exec \"$@\"",
        SmallDisk::BYTES
    );
    let mut evenkeel = Launch::new(format!(
        "[admin]\nbind = \"{admin}\"\n[listener.front]\nbind = \"{front}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"{}\"]",
        endpoint.address(),
    ))
    .access_log(log.to_str().expect("it is text"))
    .under(&["unshare", "--mount", "sh", "-c", &mount, "sh"])
    .start();
    let disk = SmallDisk::of(evenkeel.process().id(), directory.path());
    let lines = |result| {
        let page = Page::read(&http::get(admin, "/metrics").body);
        page.value("evenkeel_access_log_lines_total", &[("result", result)])
    };
    let ask = || assert_eq!(client::ask(front, "hello"), "hello");

    ask();
    wait::until_so("a line is written", || lines("written") == 1.0);
    disk.fill();
    wait::until_so("lines are lost", || {
        ask();
        lines("dropped") > 0.0
    });
    assert!(evenkeel.status()["access_log"]["dropped"].as_u64() > Some(0));

    disk.clear();
    let before = lines("written");
    wait::until_so("lines are written again", || {
        ask();
        lines("written") > before
    });
    wait::until_so("every session is one or the other", || {
        let accepted = evenkeel.status()["listeners"][0]["accepted"].as_f64();
        accepted == Some(lines("written") + lines("dropped"))
    });
}

/// A supervisor is told when clients are served, gets signs of life, and is told of the stop.
#[test]
fn a_supervisor_gets_signs_of_life() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).expect("the directory is ours");
    supervisor
        .set_read_timeout(Some(wait::DEADLINE))
        .expect("it is a socket");
    let socket = format!("NOTIFY_SOCKET={}", path.display());
    let mut evenkeel = Launch::new(format!(
        "[listener.front]\nbind = \"{}\"\nto = \"echo\"\n[cluster.echo]\nendpoints = [\"127.0.0.1:1\"]",
        ports::free(),
    ))
    .under(&["env", &socket, "WATCHDOG_USEC=30000000"])
    .start();
    let expect = |beginning: &str| {
        let begun = Instant::now();
        let mut buffer = [0; 512];
        while begun.elapsed() < wait::DEADLINE {
            let count = supervisor.recv(&mut buffer).expect("a message");
            if buffer[..count].starts_with(beginning.as_bytes()) {
                return;
            }
        }
        panic!("no {beginning}");
    };

    expect("READY=1\n");
    expect("WATCHDOG=1");
    expect("WATCHDOG=1");
    evenkeel.process().signal(Signal::TERM);
    expect("STOPPING=1\n");
}
