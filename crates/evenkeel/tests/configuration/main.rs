//! The configuration from outside: whole files in, settings or a whole report out.

mod including;
mod names;
mod rules_between_keys;
mod unusual_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel::config::{self, Appearance, Diagnostics, Loaded, LogLevel};
use evenkeel_core::{Balance, HashPolicy};
use evenkeel_proxy::settings::{FailureReply, KeySource, LogDestination};
use tempfile::TempDir;

const WEB: &str = r#"
[listener.web]
bind = "127.0.0.1:8080"
to = "web"

[cluster.web]
endpoints = ["10.0.0.1:80"]
"#;

/// A folder with the given files in it, which goes when it is dropped.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn load_main(folder: &TempDir) -> Result<Loaded, Diagnostics> {
    config::load(&folder.path().join("main.toml"))
}

/// The one problem of a configuration, as `file:line:column: message (help)`.
#[track_caller]
fn only_problem(result: Result<Loaded, Diagnostics>) -> String {
    let records = result.expect_err("this configuration is wrong").records();
    let [problem] = records.as_slice() else {
        panic!("one problem is expected, not {records:#?}");
    };
    let file = problem.file.as_deref().unwrap_or("-");
    let file = Path::new(file).file_name().unwrap().to_string_lossy();
    let (line, column) = (problem.line.unwrap_or(0), problem.column.unwrap_or(0));
    let help = problem.help.as_deref().unwrap_or_default();
    format!("{file}:{line}:{column}: {} ({help})", problem.message)
}

/// Holds a text against a file of the repository; `EVENKEEL_BLESS=1` writes the file instead.
#[track_caller]
fn assert_golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/configuration/golden")
        .join(name);
    if std::env::var_os("EVENKEEL_BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{} is not what is printed now:\n{actual}",
        path.display()
    );
}

fn report_on(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/configuration/golden")
        .join(name);
    let text = fs::read_to_string(path).unwrap();
    let diagnostics = config::parse_text(name, &text).unwrap_err();
    diagnostics.render(Appearance::Plain)
}

/// A user who has made every mistake at once is told of all of them at once, each with its place and the way out.
#[test]
fn every_mistake_is_reported_at_once() {
    assert_golden("broken.txt", &report_on("broken.toml"));
}

/// Where the syntax is so broken that the rest would be guesswork, the report stops there instead of guessing.
#[test]
fn after_a_broken_syntax_nothing_is_guessed() {
    assert_golden("unparsable.txt", &report_on("unparsable.toml"));
}

/// A terminal gets the same words with colours.
#[test]
fn colours_change_no_word() {
    let diagnostics = config::parse_text("web.toml", &WEB.replace("to =", "too =")).unwrap_err();

    let coloured = diagnostics.render(Appearance::Coloured);

    assert!(coloured.contains('\u{1b}'));
    for word in [
        "unknown key `too`",
        "did you mean `to`?",
        "web.toml",
        ":4:1",
    ] {
        assert!(coloured.contains(word), "{word} is missing in {coloured}");
    }
}

/// Three lines are a configuration: everything else has a default.
#[test]
fn what_is_not_written_has_its_default() {
    let Loaded {
        settings,
        log_level,
    } = config::parse_text("web.toml", WEB).unwrap();

    let (listener, cluster) = (&settings.listeners[0], &settings.clusters[0]);
    assert_eq!(log_level, LogLevel::Info);
    assert_eq!(settings.access_log.destination, LogDestination::Stdout);
    assert_eq!(settings.process.stop_deadline, Duration::from_secs(25));
    assert_eq!(listener.timeouts.idle, Some(Duration::from_secs(3600)));
    assert_eq!(listener.timeouts.dead_peer, Some(Duration::from_secs(300)));
    assert_eq!(cluster.connect_timeout, Duration::from_secs(2));
    assert_eq!(cluster.first_byte_timeout, None);
    assert_eq!((cluster.attempts, cluster.replay), (3, 0));
    assert_eq!(cluster.spec.balance, Balance::RoundRobin);
    assert_eq!(&*cluster.spec.endpoints[0].name, "10.0.0.1:80");
}

/// A listener's or cluster's own timeout wins over `[defaults]`, key by key, and `"off"` is a value like another.
#[test]
fn own_timeouts_win_over_the_defaults() {
    let text = r#"
        [defaults]
        timeouts = { idle = "off", half_closed = "10s", connect = "7s", queue = "9s", first_byte = "3s" }
        [listener.web]
        bind = "127.0.0.1:8080"
        to = "web"
        timeouts = { half_closed = "20s" }
        [cluster.web]
        endpoints = ["10.0.0.1:80"]
        timeouts = { connect = "1s", first_byte = "off" }
    "#;

    let settings = config::parse_text("web.toml", text).unwrap().settings;

    let (listener, cluster) = (&settings.listeners[0], &settings.clusters[0]);
    assert_eq!(listener.timeouts.idle, None);
    assert_eq!(listener.timeouts.half_closed, Some(Duration::from_secs(20)));
    assert_eq!(listener.timeouts.preread, Duration::from_secs(3));
    assert_eq!(cluster.connect_timeout, Duration::from_secs(1));
    assert_eq!(cluster.queue_timeout, Duration::from_secs(9));
    assert_eq!(cluster.first_byte_timeout, None);
}

/// The words of the file arrive as the settings they stand for.
#[test]
fn words_become_settings() {
    let text = r#"
        [log]
        access = "off"
        level = "debug"
        [process]
        control_socket = "off"
        [listener.web]
        bind = "[::1]:0"
        to = "web"
        failure_reply = "mysql-error"
        [cluster.web]
        balance = "hash"
        key = "first-line"
        bounded_load = "125%"
        endpoints = ["10.0.0.1:80"]
        ejection = "off"
        replay = "64KiB"
    "#;

    let Loaded {
        settings,
        log_level,
    } = config::parse_text("web.toml", text).unwrap();

    let cluster = &settings.clusters[0];
    assert_eq!(log_level, LogLevel::Debug);
    assert_eq!(settings.access_log.destination, LogDestination::Off);
    assert_eq!(settings.process.control_socket, None);
    assert_eq!(
        settings.listeners[0].failure_reply,
        Some(FailureReply::MysqlError)
    );
    assert_eq!(
        cluster.spec.balance,
        Balance::Hash(HashPolicy {
            bounded_load_percent: Some(125)
        })
    );
    assert_eq!(cluster.key, Some(KeySource::FirstLine));
    assert_eq!(cluster.spec.ejection, None);
    assert_eq!(cluster.replay, 65_536);
}

/// Listeners and clusters come in the order of the file, which `status` shows them in, not in that of the alphabet.
#[test]
fn the_order_of_the_file_is_kept() {
    let text = r#"
        [cluster.zebra]
        endpoints = ["10.0.0.1:80"]
        [listener.b]
        bind = "127.0.0.1:2"
        to = "ape"
        [listener.a]
        bind = "127.0.0.1:1"
        to = "zebra"
        [cluster.ape]
        endpoints = ["10.0.0.2:80"]
    "#;

    let settings = config::parse_text("zoo.toml", text).unwrap().settings;

    let listeners: Vec<&str> = settings
        .listeners
        .iter()
        .map(|listener| &*listener.name)
        .collect();
    let clusters: Vec<&str> = settings
        .clusters
        .iter()
        .map(|cluster| &*cluster.spec.name)
        .collect();
    assert_eq!(
        (listeners, clusters),
        (vec!["b", "a"], vec!["zebra", "ape"])
    );
}

/// Paths start from the folder of the file that they are written in, wherever the program is started.
#[test]
fn paths_are_relative_to_the_file() {
    let text = format!(
        "[log]\naccess = \"./access.log\"\n[process]\ncontrol_socket = \"run/control.sock\"\n{WEB}"
    );
    let folder = folder(&[("main.toml", &text)]);

    let settings = load_main(&folder).unwrap().settings;

    let socket = settings.process.control_socket.unwrap();
    assert_eq!(
        settings.access_log.destination,
        LogDestination::File(folder.path().join("./access.log"))
    );
    assert_eq!(socket, folder.path().join("run/control.sock"));
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut examples: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    examples.sort();
    assert!(!examples.is_empty());
    examples
}

/// Every example that the repository shows can be run as it is.
#[test]
fn every_example_passes_the_check() {
    for example in examples() {
        if let Err(diagnostics) = config::load(&example) {
            panic!("{}:\n{diagnostics}", example.display());
        }
    }
}

/// A dump means what its source means, but for the password that is in it and is not printed.
#[test]
fn a_dump_reads_back_the_same() {
    for example in examples() {
        let loaded = config::load(&example).unwrap();
        let dump = config::dump(&loaded);
        assert!(!dump.contains("sesame"), "a password is printed");
        let again = config::parse_text("dump", &dump.replace("(not shown)", "sesame"));
        assert_eq!(again.unwrap(), loaded, "{}", example.display());
    }
}

/// Editors complete by the schema that the program prints.
#[test]
fn the_schema_in_the_repository_is_the_program_s() {
    let schema = serde_json::to_string_pretty(&config::schema()).unwrap() + "\n";
    assert_golden("../../../../../examples/evenkeel.schema.json", &schema);
}
