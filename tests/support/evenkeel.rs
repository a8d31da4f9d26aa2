//! A running evenkeel of the test's own: its configuration, its status, its access log, its end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::namespace::{self, Namespace};
use super::process::{self, Process};
use super::{binary, wait};

/// What is to be started. The control socket and the access log (JSON, into a file) are given; the rest is the test's.
pub(crate) struct Launch {
    config: String,
    process: String,
    access_log: Option<PathBuf>,
    namespace: Option<String>,
    /// What the program is started by.
    under: Vec<String>,
    directory: TempDir,
}

impl Launch {
    /// `config` has everything but `[process]` and `[log]`.
    pub(crate) fn new(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            process: "workers = 2".to_owned(),
            access_log: None,
            namespace: None,
            under: Vec::new(),
            directory: TempDir::new().expect("a temporary directory"),
        }
    }

    /// What `[process]` holds beside the control socket, instead of two workers.
    pub(crate) fn process(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.process);
        self
    }

    /// Where the access log goes, instead of a file of its own.
    pub(crate) fn access_log(mut self, path: &str) -> Self {
        self.access_log = Some(path.into());
        self
    }

    /// How many descriptors it may have, instead of as many as this test.
    pub(crate) fn descriptors(self, most: u64) -> Self {
        self.under(&["prlimit", &format!("--nofile={most}:{most}")])
    }

    /// Starts it by this command, whose last words its own command line becomes.
    pub(crate) fn under(mut self, words: &[&str]) -> Self {
        self.under = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Whose its folder is, for a process of another user's.
    pub(crate) fn owned_by(self, user: u32) -> Self {
        std::os::unix::fs::chown(self.directory.path(), Some(user), Some(user))
            .expect("whoever asks for this is root");
        self
    }

    /// Where the process runs, instead of among everybody else.
    pub(crate) fn inside(mut self, namespace: &Namespace) -> Self {
        self.namespace = Some(namespace.name().to_owned());
        self
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn start(self) -> Evenkeel {
        let mut evenkeel = self.start_unready();
        evenkeel.wait_until_ready();
        evenkeel
    }

    /// Starts it, whatever becomes of it.
    pub(crate) fn start_unready(self) -> Evenkeel {
        let files = Files::write(self);
        let process = files.spawn();
        Evenkeel { files, process }
    }
}

/// The files of one evenkeel; they outlive its process, so that a second one can be started on them.
struct Files {
    directory: TempDir,
    namespace: Option<String>,
    process: String,
    access_log: PathBuf,
    /// What the program is started by.
    under: Vec<String>,
}

impl Files {
    fn write(launch: Launch) -> Self {
        let Launch {
            config,
            process,
            access_log,
            namespace,
            under,
            directory,
        } = launch;
        let access_log = access_log.unwrap_or_else(|| directory.path().join("access.log"));
        let files = Self {
            directory,
            namespace,
            process,
            access_log,
            under,
        };
        files.write_config(&config);
        files
    }

    fn write_config(&self, config: &str) {
        let text = format!(
            "[process]\ncontrol_socket = {:?}\n{}\n[log]\naccess = {:?}\naccess_format = \"json\"\n{config}\n",
            self.socket(),
            self.process,
            self.access_log,
        );
        fs::write(self.config(), text).expect("the directory is ours");
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("evenkeel.toml")
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("control.sock")
    }

    fn program_log(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    fn spawn(&self) -> Process {
        let log = File::create(self.program_log()).expect("the directory is ours");
        let program = binary::evenkeel().as_os_str();
        let mut words = self.under.iter().map(OsStr::new).chain([program]);
        let first = words.next().unwrap_or(program);
        let mut command = match &self.namespace {
            Some(namespace) => namespace::command_in(namespace, first),
            None => process::command(first),
        };
        command.args(words);
        command
            .arg("run")
            .arg(self.config())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().expect("one more descriptor"))
            .stderr(log);
        Process::start(command)
    }
}

/// A running evenkeel; killed when dropped, and whatever has taken its place.
pub(crate) struct Evenkeel {
    files: Files,
    process: Process,
}

impl Evenkeel {
    /// Starts one and waits until it is ready. `config` has everything but `[process]` and `[log]`.
    pub(crate) fn start(config: impl Into<String>) -> Self {
        Launch::new(config).start()
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.files.config()
    }

    pub(crate) fn socket_path(&self) -> PathBuf {
        self.files.socket()
    }

    /// The process that answers on the control socket now.
    pub(crate) fn pid(&self) -> u32 {
        let pid = self.status()["pid"].as_u64();
        pid.and_then(|pid| pid.try_into().ok())
            .expect("a process id")
    }

    /// Writes its configuration anew: everything but `[process]` and `[log]`, which stay.
    pub(crate) fn write_config(&self, config: &str) {
        self.files.write_config(config);
    }

    /// Writes its configuration anew, and has it go over to that.
    pub(crate) fn reload(&self, config: &str) -> Output {
        self.write_config(config);
        self.ask(&["reload"])
    }

    /// The same, where it must be possible; gives what `reload --json` says.
    pub(crate) fn reloaded(&self, config: &str) -> Value {
        self.write_config(config);
        let output = self.ask(&["reload", "--json"]);
        let report = serde_json::from_slice(&output.stdout).expect("reload --json prints JSON");
        assert!(output.status.success(), "{report:#}");
        report
    }

    /// What it wrote to its standard output and standard error so far.
    pub(crate) fn program_log(&self) -> String {
        fs::read_to_string(self.files.program_log()).unwrap_or_default()
    }

    /// Starts another one on the same files, after this one has ended.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.exited().is_some(), "it still runs");
        self.process = self.files.spawn();
        self.wait_until_ready();
    }

    /// Runs a command that talks to it: `words` and `--socket`.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let mut command = evenkeel_command(words);
        command.arg("--socket").arg(self.files.socket());
        command.output().expect("evenkeel can be started")
    }

    /// `status --json`
    pub(crate) fn status(&self) -> Value {
        self.try_status()
            .unwrap_or_else(|| panic!("no status; its log:\n{}", self.program_log()))
    }

    fn try_status(&self) -> Option<Value> {
        let output = self.ask(&["status", "--json"]);
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).expect("status --json prints JSON"))
    }

    /// What `status --json` says of one endpoint.
    pub(crate) fn endpoint(&self, cluster: &str, endpoint: &str) -> Value {
        let status = self.status();
        find_named(&status["clusters"], cluster)
            .and_then(|cluster| find_named(&cluster["endpoints"], endpoint))
            .unwrap_or_else(|| panic!("no {cluster}/{endpoint} in {status:#}"))
            .clone()
    }

    /// A number that `status --json` gives for one endpoint.
    pub(crate) fn endpoint_number(&self, cluster: &str, endpoint: &str, field: &str) -> u64 {
        let endpoint = self.endpoint(cluster, endpoint);
        endpoint[field]
            .as_u64()
            .unwrap_or_else(|| panic!("no number {field} in {endpoint:#}"))
    }

    /// Sessions that hold or have held nothing any more: waits until no lease of the cluster is in flight.
    pub(crate) fn wait_until_idle(&self, cluster: &str) {
        wait::until_so("no lease is in flight", || {
            let status = self.status();
            let cluster = find_named(&status["clusters"], cluster).expect("the cluster is there");
            let endpoints = cluster["endpoints"].as_array().expect("a list");
            endpoints.iter().all(|endpoint| endpoint["in_flight"] == 0)
        });
    }

    /// Waits until the access log has `count` lines, and reads them.
    pub(crate) fn sessions(&self, count: usize) -> Vec<Value> {
        wait::until(&format!("{count} lines in the access log"), || {
            let lines = read_json_lines(&self.files.access_log);
            (lines.len() >= count).then_some(lines)
        })
    }

    /// The line of the session for that client; whoever waited for the proxy to listen made others.
    pub(crate) fn session_of(&self, client: SocketAddr) -> Value {
        wait::until("the session is in the access log", || {
            let lines = read_json_lines(&self.files.access_log);
            lines
                .into_iter()
                .find(|line| line["client"] == client.to_string())
        })
    }

    /// The reason codes of the first `count` sessions that ended.
    pub(crate) fn reasons(&self, count: usize) -> Vec<String> {
        let reason = |session: &Value| session["reason"].as_str().map(str::to_owned);
        let sessions = self.sessions(count);
        sessions
            .iter()
            .map(|session| reason(session).expect("every line has a reason"))
            .collect()
    }

    fn wait_until_ready(&mut self) {
        wait::until_so("evenkeel is ready", || {
            if let Some(exit) = self.process.exited() {
                panic!("evenkeel ended ({exit}); its log:\n{}", self.program_log());
            }
            self.try_status().is_some()
        });
    }
}

impl Drop for Evenkeel {
    fn drop(&mut self) {
        process::kill_all_run_with(&self.files.config());
    }
}

/// A command line of the program under test.
pub(crate) fn evenkeel_command(words: &[&str]) -> Command {
    let mut command = Command::new(binary::evenkeel());
    command.args(words).stdin(std::process::Stdio::null());
    command
}

/// The object in a list of objects whose `name` it is.
fn find_named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry["name"] == name)
}

/// Whole lines only: the last one may still be being written.
fn read_json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in the line {line}"))
    };
    whole.lines().map(parse).collect()
}
