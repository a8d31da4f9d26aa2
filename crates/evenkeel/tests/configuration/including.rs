//! Configurations of several files.

use std::fs;

use evenkeel::config::{
    Appearance, CONFIGURATION_BYTES_MAX, FILE_BYTES_MAX, INCLUDED_FILES_MAX, Loaded,
};

use crate::{WEB, folder, load_main, only_problem};

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

/// A file that is missing may hold what others refer to: only what is certain is reported beside it.
#[test]
fn what_a_missing_file_may_hold_is_not_missed() {
    let main = format!(
        "include = [\"more.toml\"]\n{}",
        listener("web", 1).replace("bind", "bnd")
    );
    let folder = folder(&[("main.toml", &main)]);

    let records = load_main(&folder).unwrap_err().records();

    let messages: Vec<&str> = records
        .iter()
        .map(|record| record.message.as_str())
        .collect();
    assert!(messages[0].starts_with("cannot read"), "{messages:?}");
    assert_eq!(
        messages[1..],
        ["listener `web` has no `bind`", "unknown key `bnd`"]
    );
}

/// Many files of the largest size are not all read, so that a pattern in the wrong folder cannot fill the memory.
#[test]
fn the_size_of_all_files_is_bounded() {
    let main = format!("include = [\"conf.d/*\"]\n{WEB}");
    let folder = folder(&[("main.toml", &main), ("conf.d/0", "")]);
    let largest = "#".repeat(usize::try_from(FILE_BYTES_MAX).unwrap());
    for number in 0..CONFIGURATION_BYTES_MAX / FILE_BYTES_MAX {
        fs::write(folder.path().join(format!("conf.d/{number}")), &largest).unwrap();
    }

    let problem = only_problem(load_main(&folder));

    assert!(problem.contains("conf.d/3`: "), "{problem}");
    assert!(problem.contains("and all of them 16777216"), "{problem}");
}
