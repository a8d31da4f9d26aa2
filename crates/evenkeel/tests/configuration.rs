//! The configuration from outside: whole files in, settings or a whole report out.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel::config::{
    self, Appearance, Diagnostics, FILE_BYTES_MAX, INCLUDED_FILES_MAX, Loaded, LogLevel,
};
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
        .join("tests/golden")
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
        .join("tests/golden")
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

mod including {
    use super::*;

    const CLUSTER: &str = "[cluster.web]\nendpoints = [\"10.0.0.1:80\"]\n";

    fn listener(name: &str, port: u16) -> String {
        format!("[listener.{name}]\nbind = \"127.0.0.1:{port}\"\nto = \"web\"\n")
    }

    fn names(loaded: &Loaded) -> Vec<&str> {
        loaded
            .settings
            .listeners
            .iter()
            .map(|listener| &*listener.name)
            .collect()
    }

    /// Listeners and clusters may be spread over files; they come in the order of the files' names.
    #[test]
    fn included_files_come_in_order() {
        let main = format!("include = [\"conf.d/*.toml\"]\n{}", listener("first", 1));
        let folder = folder(&[
            ("main.toml", &main),
            ("conf.d/20.toml", &listener("third", 3)),
            ("conf.d/10.toml", &listener("second", 2)),
            ("conf.d/30.toml", CLUSTER),
            ("conf.d/.hidden.toml", "not toml"),
            ("conf.d/old.toml~", "not toml"),
        ]);

        let loaded = load_main(&folder).unwrap();

        assert_eq!(names(&loaded), ["first", "second", "third"]);
    }

    /// An error in an included file names that file, and its line there.
    #[test]
    fn an_error_names_its_file() {
        let main = format!("include = [\"conf.d/*.toml\"]\n{CLUSTER}");
        let wrong = listener("web", 1).replace("bind", "bnd");
        let folder = folder(&[("main.toml", &main), ("conf.d/a.toml", &wrong)]);

        let records = load_main(&folder).unwrap_err().records();

        let file = folder.path().join("conf.d/a.toml").display().to_string();
        assert!(
            records
                .iter()
                .all(|record| record.file.as_ref() == Some(&file)),
            "{records:#?}"
        );
        assert_eq!(records[1].line, Some(2));
    }

    /// The same name in two files is one name too many; the report shows both places.
    #[test]
    fn a_name_is_unique_over_all_files() {
        let main = format!("include = [\"more.toml\"]\n{CLUSTER}{}", listener("web", 1));
        let folder = folder(&[("main.toml", &main), ("more.toml", &listener("web", 2))]);

        let diagnostics = load_main(&folder).unwrap_err();

        let report = diagnostics.render(Appearance::Plain);
        assert!(report.contains("there are two listeners `web`"), "{report}");
        assert!(
            report.contains("main.toml:4:11") && report.contains("more.toml:1:11"),
            "{report}"
        );
    }

    /// A pattern may match nothing, even without its folder; a path by name must be there.
    #[test]
    fn a_pattern_may_match_nothing_and_a_path_may_not() {
        let pattern = folder(&[(
            "main.toml",
            &format!("include = [\"conf.d/*.toml\"]\n{WEB}"),
        )]);
        load_main(&pattern).unwrap();

        let path = folder(&[("main.toml", &format!("include = [\"more.toml\"]\n{WEB}"))]);
        let problem = only_problem(load_main(&path));
        assert!(
            problem.starts_with("main.toml:1:12: cannot read"),
            "{problem}"
        );
        assert!(
            problem.ends_with("(correct the path, or leave it out)"),
            "{problem}"
        );
    }

    /// Files do not include each other: the settings of a process are in its main file, where they are looked for.
    #[test]
    fn an_included_file_holds_listeners_and_clusters_alone() {
        let main = format!("include = [\"more.toml\"]\n{WEB}");
        let folder = folder(&[
            ("main.toml", &main),
            ("more.toml", "include = [\"main.toml\"]\n"),
        ]);

        let problem = only_problem(load_main(&folder));

        assert_eq!(
            problem,
            "more.toml:1:1: unknown key `include` (`include` belongs to the main file)"
        );
    }

    /// A pattern that matches the main file as well does not read it twice, but naming it is a mistake.
    #[test]
    fn a_file_is_read_once() {
        let pattern = folder(&[(
            "main.toml",
            &format!("include = [\"*.toml\", \"m*\"]\n{WEB}"),
        )]);
        assert_eq!(names(&load_main(&pattern).unwrap()), ["web"]);

        let path = folder(&[("main.toml", &format!("include = [\"main.toml\"]\n{WEB}"))]);
        let problem = only_problem(load_main(&path));
        assert_eq!(
            problem,
            "main.toml:1:12: this file is already part of the configuration (leave it out)"
        );
    }

    /// A pattern in the wrong folder cannot make the program read without end.
    #[test]
    fn the_number_of_files_is_bounded() {
        let main = format!("include = [\"conf.d/*\"]\n{WEB}");
        let folder = folder(&[("main.toml", &main), ("conf.d/0", "")]);
        for number in 1..=INCLUDED_FILES_MAX {
            fs::write(folder.path().join(format!("conf.d/{number}")), "").unwrap();
        }

        let problem = only_problem(load_main(&folder));

        assert!(
            problem.contains("more than 256 files are included"),
            "{problem}"
        );
    }

    /// Wildcards in a folder's name are not followed, and the report says so instead of finding nothing.
    #[test]
    fn wildcards_are_for_file_names() {
        let folder = folder(&[("main.toml", &format!("include = [\"*/a.toml\"]\n{WEB}"))]);

        let problem = only_problem(load_main(&folder));

        assert!(
            problem.contains("wildcards are for the file's name"),
            "{problem}"
        );
    }
}

mod unusual_files {
    use super::*;

    fn load_bytes(bytes: &[u8]) -> Result<Loaded, Diagnostics> {
        let folder = folder(&[]);
        fs::write(folder.path().join("main.toml"), bytes).unwrap();
        load_main(&folder)
    }

    /// A file that is not there: the way to get one.
    #[test]
    fn a_missing_file_points_to_init() {
        let diagnostics = config::load(Path::new("/nowhere/evenkeel.toml")).unwrap_err();

        let report = diagnostics.render(Appearance::Plain);

        assert!(
            report.contains("cannot read `/nowhere/evenkeel.toml`"),
            "{report}"
        );
        assert!(
            report.contains("`evenkeel init /nowhere/evenkeel.toml`"),
            "{report}"
        );
    }

    /// A folder is no file.
    #[test]
    fn a_folder_is_refused() {
        let folder = folder(&[]);
        let diagnostics = config::load(folder.path()).unwrap_err();
        assert_eq!(diagnostics.count(), 1);
    }

    /// Latin-1 instead of UTF-8: the place of the first wrong byte.
    #[test]
    fn text_in_another_encoding_is_refused() {
        let problem = only_problem(load_bytes(b"# gr\xfc\xdfe\n[listener.web]\n"));
        assert_eq!(
            problem,
            "main.toml:1:5: this file is not valid UTF-8 (save it as plain text in UTF-8)"
        );
    }

    /// UTF-16, or a program instead of a text.
    #[test]
    fn a_nul_byte_is_refused() {
        let problem = only_problem(load_bytes(b"a = 1\nb\0c\0\xff"));
        assert_eq!(
            problem,
            "main.toml:2:2: this file holds a NUL byte (save it as plain text in UTF-8)"
        );
    }

    /// What some editors put in front of every file, and the line ends of others, are no errors.
    #[test]
    fn byte_order_marks_and_carriage_returns_are_harmless() {
        let text = format!("\u{feff}{}", WEB.replace('\n', "\r\n"));
        load_bytes(text.as_bytes()).unwrap();
    }

    /// A file of the largest size is read, and one byte more is not, so that a wrong path cannot fill the memory.
    #[test]
    fn the_size_of_a_file_is_bounded() {
        let largest = usize::try_from(FILE_BYTES_MAX).unwrap();
        let mut text = format!("{WEB}#");
        text.extend(std::iter::repeat_n('x', largest - text.len()));
        load_bytes(text.as_bytes()).unwrap();

        text.push('x');
        let problem = only_problem(load_bytes(text.as_bytes()));
        assert!(problem.contains("at most 4194304 bytes"), "{problem}");
    }

    /// Nothing in it: nothing would be served.
    #[test]
    fn an_empty_file_is_refused() {
        let problem = only_problem(load_bytes(b""));
        assert!(
            problem.contains("there is no listener, so nothing would be served"),
            "{problem}"
        );
    }

    /// A text has no folder to look in.
    #[test]
    fn a_text_cannot_include() {
        let text = format!("include = [\"a.toml\"]\n{WEB}");
        let problem = only_problem(config::parse_text("text", &text));
        assert_eq!(
            problem,
            "text:1:12: `include` needs a file on disk (check the file by its path)"
        );
    }

    /// A thousand mistakes are counted, and a hundred shown.
    #[test]
    fn a_report_is_bounded() {
        let unknown: String = (0..1000)
            .map(|number| format!("key{number} = 1\n"))
            .collect();
        let diagnostics = config::parse_text("long.toml", &format!("{unknown}{WEB}")).unwrap_err();

        let report = diagnostics.render(Appearance::Plain);

        assert_eq!(report.matches("error: unknown key").count(), 100);
        assert!(
            report
                .ends_with("1000 errors, 900 of them not shown; nothing was started or changed\n"),
            "{report}"
        );
    }
}

mod rules_between_keys {
    use super::*;

    /// Two listeners on `one` and `other`.
    fn two_binds(one: &str, other: &str) -> Result<Loaded, Diagnostics> {
        let text = format!(
            "[listener.a]\nbind = \"{one}\"\nto = \"web\"\n[listener.b]\nbind = \"{other}\"\nto = \"web\"\n[cluster.web]\nendpoints = [\"10.0.0.1:80\"]\n"
        );
        config::parse_text("binds.toml", &text)
    }

    /// An address can be listened on once; every address of a family includes each of them; port 0 is a new port each time.
    #[test]
    fn listeners_do_not_share_an_address() {
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::1]:80", "[::]:80"),
        ] {
            let problem = only_problem(two_binds(one, other));
            assert!(
                problem.starts_with("binds.toml:5:8"),
                "{one} and {other}: {problem}"
            );
        }
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("0.0.0.0:80", "[::]:80"),
            ("127.0.0.1:0", "127.0.0.1:0"),
        ] {
            assert!(two_binds(one, other).is_ok(), "{one} and {other}");
        }
    }

    /// A listener that is its own endpoint would feed itself until the descriptors run out.
    #[test]
    fn a_circle_is_refused() {
        let text = WEB.replace("10.0.0.1:80", "127.0.0.1:8080");
        let problem = only_problem(config::parse_text("web.toml", &text));
        assert!(
            problem.starts_with("web.toml:7:14: `127.0.0.1:8080` is the listener `web` itself"),
            "{problem}"
        );
    }

    /// A mistyped balancer is one mistake: what depends on it is not blamed as well.
    #[test]
    fn one_mistake_is_reported_once() {
        let text =
            format!("{WEB}balance = \"hsh\"\nkey = \"first-line\"\nbounded_load = \"125%\"\n");
        let problem = only_problem(config::parse_text("web.toml", &text));
        assert!(problem.ends_with("(did you mean \"hash\"?)"), "{problem}");
    }

    /// An endpoint may be named by its own address, as the dump does it, and by no other.
    #[test]
    fn an_address_is_a_name_for_its_own_endpoint_alone() {
        let named = |name: &str| {
            let endpoint = format!("{{ name = \"{name}\", address = \"10.0.0.1:80\" }}");
            config::parse_text("web.toml", &WEB.replace("\"10.0.0.1:80\"", &endpoint))
        };
        assert!(named("10.0.0.1:80").is_ok());
        let problem = only_problem(named("10.0.0.2:80"));
        assert!(
            problem.contains("`10.0.0.2:80` is no name for an endpoint"),
            "{problem}"
        );
    }
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

/// A dump means what its source means.
#[test]
fn a_dump_reads_back_the_same() {
    for example in examples() {
        let loaded = config::load(&example).unwrap();
        let again = config::parse_text("dump", &config::dump(&loaded));
        assert_eq!(again.unwrap(), loaded, "{}", example.display());
    }
}

/// Editors complete by the schema that the program prints.
#[test]
fn the_schema_in_the_repository_is_the_program_s() {
    let schema = serde_json::to_string_pretty(&config::schema()).unwrap() + "\n";
    assert_golden("../../../../examples/evenkeel.schema.json", &schema);
}
