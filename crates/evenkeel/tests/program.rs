//! The program as a process: its demo, its signals, its exit codes, what it says to pipes and supervisors.
//!
//! What needs real services behind the balancer is in the end-to-end tests; this needs nothing but the binary.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use evenkeel::example_service;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(60);

fn evenkeel(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(words).stdin(Stdio::null());
    command
}

/// A process that a failing test does not leave behind.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).unwrap();
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or it ends now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An evenkeel with one listener, and a folder for all of its files.
struct Balancer {
    process: Running,
    folder: TempDir,
}

impl Balancer {
    /// Starts it in front of one endpoint, and waits until it answers.
    fn start(endpoint: SocketAddr) -> Self {
        Self::start_with(endpoint, |_| {})
    }

    fn start_with(endpoint: SocketAddr, prepare: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("evenkeel.toml");
        let text = format!(
            "process.control_socket = \"./control.sock\"\nprocess.workers = 1\nlog.access = \"./access.log\"\n\
             [listener.front]\nbind = \"127.0.0.1:0\"\nto = \"one\"\n[cluster.one]\nendpoints = [\"{endpoint}\"]\n"
        );
        fs::write(&config, text).unwrap();
        let mut command = evenkeel(&["run", config.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command);
        let balancer = Self {
            process: Running::start(&mut command),
            folder,
        };
        until("it answers on its control socket", || {
            balancer.ask(&["status"]).status.success()
        });
        balancer
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = evenkeel(words);
        command.arg("--socket").arg(self.file("control.sock"));
        command.output().unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_slice(&self.ask(&["status", "--json"]).stdout).unwrap()
    }

    fn front(&self) -> SocketAddr {
        let address = self.status()["listeners"][0]["address"].clone();
        address.as_str().unwrap().parse().unwrap()
    }
}

/// Looks again until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        thread::yield_now();
    }
}

/// An address that accepts connections and says nothing.
fn silent_endpoint() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The demo ends by itself, no request of it fails, and its story fits on one page without colours.
#[test]
fn the_demo_succeeds_by_itself() {
    let output = evenkeel(&["demo", "--once"]).output().unwrap();

    let (story, complaints) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{story}{complaints}");
    assert!(story.contains("a a b a c a a  a a b a c a a"), "{story}");
    assert_eq!(story.matches("failed 0").count(), 4, "{story}");
    assert!(story.contains("effective weight 5 -> 0"), "{story}");
    assert!(story.contains("effective weight 0 -> 5"), "{story}");
    assert!(story.lines().count() <= 40, "{story}");
    assert!(!story.contains('\u{1b}'), "{story}");
}

/// Left alone, the demo stays up; the commands that it prints work, and the last of them ends it.
#[test]
fn the_demo_stays_up_until_it_is_stopped() {
    let mut demo = Running::start(evenkeel(&["demo"]).stdout(Stdio::piped()));
    let story = BufReader::new(demo.0.stdout.take().unwrap());
    let lines = story.lines().map(Result::unwrap);
    let commands: Vec<Vec<String>> = lines
        .filter(|line| line.contains(" --socket "))
        .map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect())
        .take(3)
        .collect();

    for command in &commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = evenkeel(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }

    assert_eq!(commands[2][0], "stop");
    assert_eq!(demo.exit_code(), Some(0));
    let socket = PathBuf::from(commands[2].last().unwrap());
    assert!(!socket.parent().unwrap().exists());
}

/// A reader that wants no more is no fault: no panic, no complaint, success.
#[test]
fn a_closed_pipe_is_no_fault() {
    let mut completions = evenkeel(&["completions", "bash"]);
    completions.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut completions);
    drop(running.0.stdout.take());

    let mut complaints = String::new();
    let mut stderr = running.0.stderr.take().unwrap();
    stderr.read_to_string(&mut complaints).unwrap();

    assert_eq!(complaints, "");
    assert_eq!(running.exit_code(), Some(0));
}

/// The version names the commit, or is the bare number where there is none.
#[test]
fn the_version_is_one_line() {
    let output = evenkeel(&["--version"]).output().unwrap();

    let text = String::from_utf8(output.stdout).unwrap();
    let version = concat!("evenkeel ", env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(version), "{text}");
    assert_eq!(text.lines().count(), 1);
}

/// A supervisor hears when it is ready and when it stops.
#[test]
fn a_supervisor_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut message = [0; 256];
        let length = supervisor.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let (_endpoint, address) = silent_endpoint();

    let mut balancer = Balancer::start_with(address, |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    assert!(hear().starts_with("READY=1\n"));
    balancer.process.signal(Signal::TERM);

    assert!(hear().starts_with("STOPPING=1\n"));
    assert_eq!(balancer.process.exit_code(), Some(0));
}

/// USR1 opens a log anew that was moved away; HUP, which cannot do its work yet, does no harm.
#[test]
fn usr1_and_hup_do_not_end_it() {
    let (_endpoint, address) = silent_endpoint();
    let balancer = Balancer::start(address);
    let log = balancer.file("access.log");
    fs::rename(&log, balancer.file("access.log.1")).unwrap();

    balancer.process.signal(Signal::HUP);
    balancer.process.signal(Signal::USR1);

    until("the log is there again", || log.exists());
    assert_eq!(balancer.status()["phase"], "running");
}

/// An evenkeel in a folder of its own, seen as soon as it has taken its control socket: the start is not over by then.
fn just_starting(prepare: impl FnOnce(&mut Command)) -> (Running, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("evenkeel.toml");
    let text = "process.control_socket = \"./control.sock\"\nlog.access = \"off\"\n\
                [listener.a]\nbind = \"127.0.0.1:0\"\nto = \"a\"\n[cluster.a]\nendpoints = [\"127.0.0.1:1\"]\n";
    fs::write(&config, text).unwrap();
    let mut command = evenkeel(&["run", config.to_str().unwrap()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    prepare(&mut command);
    let process = Running::start(&mut command);
    let socket = folder.path().join("control.sock");
    until("it has its control socket", || socket.exists());
    (process, folder)
}

/// TERM in the middle of a start ends it in order, with nothing left behind.
#[test]
fn a_stop_during_the_start_leaves_no_files() {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let (mut process, folder) = just_starting(|_| {});

        process.signal(Signal::TERM);

        assert_eq!(process.exit_code(), Some(0));
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "more than the configuration is left");
    }
}

/// HUP and USR1 in the middle of a start do no harm.
#[test]
fn hup_and_usr1_during_the_start_do_not_end_it() {
    const ROUNDS: usize = 10;
    for signal in [Signal::HUP, Signal::USR1].repeat(ROUNDS) {
        let (mut process, _folder) = just_starting(|_| {});

        process.signal(signal);

        process.signal(Signal::TERM);
        assert_eq!(process.exit_code(), Some(0), "{signal:?}");
    }
}

/// However few files may be open, a start either succeeds or says why not; it never panics.
#[test]
fn a_start_with_few_descriptors_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("evenkeel.toml");
    let text = "process.control_socket = \"./control.sock\"\nprocess.workers = 1\nlog.access = \"off\"\n\
                [listener.a]\nbind = \"192.0.2.1:1\"\nto = \"a\"\n[cluster.a]\nendpoints = [\"127.0.0.1:1\"]\n";
    fs::write(&config, text).unwrap();
    for limit in 4..24 {
        let script = format!("ulimit -n {limit}; exec \"$0\" run \"$1\"");
        let output = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_evenkeel")])
            .arg(&config)
            .stdin(Stdio::null())
            .output()
            .unwrap();

        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!complaint.contains("panicked"), "{limit}: {complaint}");
        // With enough of them, it is the address, which is no machine's.
        assert!(
            matches!(output.status.code(), Some(1 | 3 | 127)),
            "{limit}: {complaint}"
        );
    }
}

/// An answer that cannot be written is a failure, whichever command it is the answer of.
#[test]
fn a_full_disk_is_not_success() {
    for words in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["demo", "--once"],
        &["completions", "bash"],
        &["config", "schema"],
        &["init", "-"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();

        let output = evenkeel(words).stdout(full).output().unwrap();

        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    }
}

/// A stop that waits too little says so with its own code; `--now` then ends the session and the process.
#[test]
fn a_stop_that_is_not_over_in_time_has_its_own_code() {
    let (endpoint, address) = silent_endpoint();
    let mut balancer = Balancer::start(address);
    let session = TcpStream::connect(balancer.front()).unwrap();
    let (_upstream, _) = endpoint.accept().unwrap();

    let in_vain = balancer.ask(&["stop", "--wait", "1"]);
    assert_eq!(in_vain.status.code(), Some(5), "{in_vain:?}");
    assert_eq!(balancer.status()["phase"], "stopping");
    let now = balancer.ask(&["stop", "--now", "--json"]);

    assert_eq!(now.status.code(), Some(0), "{now:?}");
    let told: Value = serde_json::from_slice(&now.stdout).unwrap();
    assert_eq!(told["stopped"], true);
    assert_eq!(balancer.process.exit_code(), Some(0));
    assert!(!balancer.file("control.sock").exists());
    drop(session);
}

/// `route` says who would get a connection; a listener that is not there leads to those that are.
#[test]
fn route_answers_or_names_the_listeners() {
    let (_endpoint, address) = silent_endpoint();
    let balancer = Balancer::start(address);

    let answer = balancer.ask(&["route", "front", "192.0.2.7", "--json"]);
    let unknown = balancer.ask(&["route", "back", "192.0.2.7"]);

    let report: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(report["chosen"], address.to_string());
    assert_eq!(unknown.status.code(), Some(1));
    let complaint = String::from_utf8(unknown.stderr).unwrap();
    assert!(complaint.contains("there are: front"), "{complaint}");
}

/// The example service prints where it listens, and answers there under its name.
#[test]
fn the_example_service_tells_its_address() {
    let mut command = evenkeel(&["example-service", "--name", "zoe"]);
    let mut service = Running::start(command.stdout(Stdio::piped()));
    let mut address = String::new();
    let mut stdout = BufReader::new(service.0.stdout.take().unwrap());
    stdout.read_line(&mut address).unwrap();

    let answer = example_service::ask(address.trim().parse().unwrap(), "alan", PATIENCE).unwrap();

    assert!(answer.contains(r#""served_by":"zoe""#), "{answer}");
}
