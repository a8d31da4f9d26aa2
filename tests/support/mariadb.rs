//! Real MariaDB servers, each with a data directory of its own, and clients of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::namespace::{self, Namespace};
use super::process::{self, Process};
use super::{ports, wait};

const USER: &str = "keel";
const PASSWORD: &str = "keel-test";
/// A database that every server has.
pub(crate) const DATABASE: &str = "keel";

/// A running server; killed when dropped.
pub(crate) struct MariaDb {
    name: &'static str,
    address: SocketAddr,
    options: Vec<String>,
    directory: TempDir,
    process: Process,
}

impl MariaDb {
    /// Starts a server that has a database of its own, of that name, beside the common one, and waits until it answers.
    pub(crate) fn start(name: &'static str) -> Self {
        Self::start_with(name, &[])
    }

    /// As [`MariaDb::start`], with further options.
    pub(crate) fn start_with(name: &'static str, options: &[&str]) -> Self {
        let small = ["--skip-name-resolve", "--performance-schema=OFF"];
        let command = process::command("mariadbd");
        Self::start_by(command, name, ports::free(), &[&small, options].concat())
    }

    /// As [`MariaDb::start`], in a namespace, on its address; it looks up the names of its clients, and counts what they do.
    pub(crate) fn start_in(namespace: &Namespace, options: &[&str]) -> Self {
        let address = SocketAddr::new(namespace::ADDRESS, 3306);
        let options = [&["--performance-schema=ON"], options].concat();
        Self::start_by(namespace.command("mariadbd"), "inside", address, &options)
    }

    fn start_by(
        command: Command,
        name: &'static str,
        address: SocketAddr,
        options: &[&str],
    ) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        copy_directory(template(), &directory.path().join("data"));
        fs::write(directory.path().join("init.sql"), first_statements(name)).expect("it is ours");
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let process = start_process(command, directory.path(), address, &options);
        let server = Self {
            name,
            address,
            options,
            directory,
            process,
        };
        server.wait_until_ready();
        server
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where local clients connect.
    pub(crate) fn socket_path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// As if the machine had lost its power.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again after a kill, at the same address with the same data.
    pub(crate) fn restart(&mut self) {
        let command = process::command("mariadbd");
        self.process = start_process(command, self.directory.path(), self.address, &self.options);
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        wait::until_so("MariaDB answers", || {
            self.run_inside("SELECT 1").status.success()
        });
    }

    fn run_inside(&self, statements: &str) -> Output {
        let mut command = process::command("mariadb");
        command
            .args([
                "--no-defaults",
                "--batch",
                "--skip-column-names",
                "--user=root",
            ])
            .arg(format!(
                "--socket={}",
                self.directory.path().join("socket").display()
            ))
            .arg("--execute")
            .arg(statements)
            .stdin(Stdio::null());
        command
            .output()
            .expect("mariadb is installed: cargo xtask test")
    }

    /// Runs statements as root, by the server's own socket. Panics if they failed.
    pub(crate) fn administer(&self, statements: &str) -> String {
        printed(statements, &self.run_inside(statements))
    }
}

/// What each server runs when it starts; it may have run it before.
fn first_statements(name: &str) -> String {
    format!(
        "CREATE DATABASE IF NOT EXISTS {DATABASE};\n\
         CREATE DATABASE IF NOT EXISTS {name};\n\
         CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO '{USER}'@'%';\n"
    )
}

/// Small, without caches worth the name: many servers run at once here. The options that switch syncing off make it quick.
fn start_process(
    mut command: Command,
    directory: &Path,
    address: SocketAddr,
    options: &[String],
) -> Process {
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .expect("the directory is ours");
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", directory.join("data").display()))
        .arg(format!(
            "--init-file={}",
            directory.join("init.sql").display()
        ))
        .arg(format!("--socket={}", directory.join("socket").display()))
        .arg(format!("--pid-file={}", directory.join("pid").display()))
        .arg(format!("--bind-address={}", address.ip()))
        .arg(format!("--port={}", address.port()))
        .args(SERVER_OPTIONS)
        .args(options)
        .args(user_option())
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("one more descriptor"))
        .stderr(log);
    search_sbin(&mut command);
    Process::start(command)
}

const SERVER_OPTIONS: &[&str] = &[
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--max-connections=200",
];

/// The server refuses to run as root unless told to; for anybody else the option does not work.
fn user_option() -> Option<&'static str> {
    rustix::process::geteuid()
        .is_root()
        .then_some("--user=root")
}

/// The data directory of a new server, made once: that takes seconds, a copy does not.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    TEMPLATE.get_or_init(install).path()
}

fn install() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let mut command = Command::new("mariadb-install-db");
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", directory.path().display()))
        .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
        .args(user_option())
        .arg("--innodb-log-file-size=8M");
    search_sbin(&mut command);
    let output = command
        .output()
        .expect("mariadb-install-db is installed: cargo xtask test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    directory
}

/// Debian puts servers where only root's search path finds them.
fn search_sbin(command: &mut Command) {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin"));
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the directory is ours");
    for entry in fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("there is room");
        }
    }
}

/// The program `mariadb`, as a user runs it.
fn client(address: SocketAddr) -> Command {
    let mut command = client_by("tcp");
    command
        .arg(format!("--host={}", address.ip()))
        .arg(format!("--port={}", address.port()));
    command
}

fn client_by(protocol: &str) -> Command {
    let mut command = process::command("mariadb");
    command
        .args([
            "--no-defaults",
            "--batch",
            "--skip-column-names",
            "--unbuffered",
        ])
        .arg(format!("--protocol={protocol}"))
        .arg(format!("--user={USER}"))
        .arg(format!("--password={PASSWORD}"))
        .stdin(Stdio::null());
    command
}

/// Runs statements on a connection of their own.
pub(crate) fn run(address: SocketAddr, statements: &str) -> Output {
    let mut command = client(address);
    command.arg("--execute").arg(statements);
    command
        .output()
        .expect("mariadb is installed: cargo xtask test")
}

/// As [`run`]; what they printed, without the last line feed. Panics if they failed.
pub(crate) fn query(address: SocketAddr, statements: &str) -> String {
    printed(statements, &run(address, statements))
}

/// As [`query`], over a Unix socket.
pub(crate) fn query_socket(socket: &Path, statements: &str) -> String {
    let mut command = client_by("socket");
    command
        .arg(format!("--socket={}", socket.display()))
        .arg("--execute")
        .arg(statements);
    let output = command.output();
    printed(
        statements,
        &output.expect("mariadb is installed: cargo xtask test"),
    )
}

fn printed(statements: &str, output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{statements}: {error}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// A client that stays connected, and runs one statement after the other.
pub(crate) struct Session {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let mut command = client(address);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Process::start(command);
        let input = process.child().stdin.take().expect("it is piped");
        let output = process.child().stdout.take().expect("it is piped");
        Self {
            process,
            input,
            output: BufReader::new(output),
        }
    }

    /// Runs a statement whose result is one line, and gives that.
    pub(crate) fn query(&mut self, statement: &str) -> String {
        writeln!(self.input, "{statement};").expect("the client still runs");
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the client's output can be read");
        line.trim_end().to_owned()
    }

    /// Runs a statement that is expected to fail with the connection, and gives what the client said.
    pub(crate) fn last_words(mut self, statement: &str) -> String {
        let _ = writeln!(self.input, "{statement};");
        drop(self.input);
        assert!(!self.process.exit().success(), "the client noticed nothing");
        let mut words = String::new();
        let stderr = self.process.child().stderr.take().expect("it is piped");
        let _ = std::io::Read::read_to_string(&mut BufReader::new(stderr), &mut words);
        words
    }
}

/// A sysbench command against `address`, for the common database; `words` end with prepare, run or cleanup.
pub(crate) fn sysbench(address: SocketAddr, words: &[&str]) -> Command {
    let mut command = process::command("sysbench");
    command
        .arg(format!("--mysql-host={}", address.ip()))
        .arg(format!("--mysql-port={}", address.port()))
        .arg(format!("--mysql-user={USER}"))
        .arg(format!("--mysql-password={PASSWORD}"))
        .arg(format!("--mysql-db={DATABASE}"))
        .args(words)
        .stdin(Stdio::null());
    command
}
