//! The repository holds itself to its own rules: STYLE.md, checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::binary::root;

/// A bigger file, without its tests, holds two ideas.
const LINES_MAX: usize = 600;

/// A story may be longer than a thing.
const TEST_LINES_MAX: usize = 800;

/// Folders of the repository that are not ours to check.
const NOT_OURS: &[&str] = &[".git", "target", "corpus", "artifacts"];

/// Every file of the repository below `folder`, as paths from the root.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if NOT_OURS.contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path.strip_prefix(root()).expect("it is below").to_owned());
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let all = files("").into_iter();
    all.filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Panics with all of them, so that one run shows everything.
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_file_opens_with_what_it_owns() {
    let silent = sources().into_iter().filter(|path| {
        !read(path)
            .trim_start_matches("#![no_main]")
            .trim_start()
            .starts_with("//! ")
    });
    none("no opening paragraph", &names(silent));
}

#[test]
fn no_file_holds_two_ideas() {
    let is_long = |path: &PathBuf| {
        let is_test = path.iter().any(|part| part == "tests");
        let limit = if is_test { TEST_LINES_MAX } else { LINES_MAX };
        lines_without_tests(&read(path)) > limit
    };
    none("too long", &names(sources().into_iter().filter(is_long)));
}

fn lines_without_tests(source: &str) -> usize {
    let code = source.split("#[cfg(test)]\nmod tests {").next();
    code.map_or(0, |code| code.lines().count())
}

/// An unfinished thing is an issue, not a comment.
#[test]
fn nothing_is_left_to_do() {
    let words = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["X", "XX"].concat(),
    ];
    let unfinished = sources()
        .into_iter()
        .filter(|path| words.iter().any(|word| read(path).contains(word)));
    none("unfinished", &names(unfinished));
}

/// Nothing depends on a file outside the repository, or on the machine it was written on.
#[test]
fn no_path_of_a_machine_is_named() {
    let foreign = ["/wo", "/ro", "/ho"]
        .into_iter()
        .zip(["rk/", "ot/", "me/"])
        .map(|(start, end)| format!("{start}{end}"));
    let foreign: Vec<String> = foreign.collect();
    let text = files("")
        .into_iter()
        .filter(|path| fs::read_to_string(root().join(path)).is_ok());
    let found = text.filter(|path| foreign.iter().any(|word| read(path).contains(word)));
    none("paths of a machine", &names(found));
}

#[test]
fn the_architecture_names_every_crate_and_module() {
    let architecture = read("ARCHITECTURE.md");
    let missing = files("crates")
        .into_iter()
        .filter(|path| is_module(path) && !mentions(&architecture, path));
    none("not in ARCHITECTURE.md", &names(missing));
    for crate_name in [
        "evenkeel-core",
        "evenkeel-wire",
        "evenkeel-reactor",
        "evenkeel-proxy",
        "xtask",
        "fuzz",
    ] {
        assert!(
            architecture.contains(crate_name),
            "no {crate_name} in ARCHITECTURE.md"
        );
    }
}

/// A file directly in `src`, or a folder of modules there.
fn is_module(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let is_source = parts.get(2).is_some_and(|folder| folder == "src");
    is_source
        && parts
            .last()
            .is_some_and(|name| name != "lib.rs" && name != "main.rs")
}

/// A module in a folder is named by one of its folders at least.
fn mentions(architecture: &str, path: &Path) -> bool {
    let inside: Vec<_> = path
        .iter()
        .skip(3)
        .map(|part| part.to_string_lossy())
        .collect();
    let Some((file, folders)) = inside.split_last() else {
        return false;
    };
    let stem = file.trim_end_matches(".rs");
    let names_file = architecture.contains(&format!("`{stem}`")) || architecture.contains(&**file);
    names_file
        || folders
            .iter()
            .any(|folder| architecture.contains(&format!("{folder}/")))
}

/// Whatever the log may say, an operator can look up.
#[test]
fn every_reason_code_is_documented() {
    let operations = read("docs/operations.md");
    let source = read("crates/evenkeel-proxy/src/telemetry/reason.rs");
    let codes = source
        .lines()
        .filter_map(|line| line.trim().split_once(" = \"")?.1.strip_suffix("\","));
    let codes: Vec<&str> = codes.collect();
    assert!(
        codes.len() > 10,
        "the list of reasons is no longer where this test looks"
    );
    let missing = codes
        .into_iter()
        .filter(|code| !operations.contains(&format!("`{code}`")));
    none(
        "not in docs/operations.md",
        &missing.map(str::to_owned).collect::<Vec<_>>(),
    );
}

/// Every dependency has its line, and no line speaks of one that has gone.
#[test]
fn every_dependency_is_explained() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("it is TOML");
    let workspace = manifest["workspace"]["dependencies"]
        .as_table()
        .expect("a table");
    let ours = |name: &&String| !name.starts_with("evenkeel");
    let mut used: BTreeSet<String> = workspace.keys().filter(ours).cloned().collect();
    let fuzz: toml::Table = read("fuzz/Cargo.toml").parse().expect("it is TOML");
    let fuzz = fuzz["dependencies"].as_table().expect("a table");
    used.extend(fuzz.keys().filter(ours).cloned());

    let page = read("docs/decisions/dependencies.md");
    let explained = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let explained: BTreeSet<String> = explained.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(used, explained);
}

/// Nothing in the workspace is declared and used by nobody.
#[test]
fn every_workspace_dependency_is_used() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("it is TOML");
    let declared = manifest["workspace"]["dependencies"]
        .as_table()
        .expect("a table");
    let manifests = files("")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml") && path != Path::new("Cargo.toml"));
    let manifests: String = manifests.map(read).collect();
    let unused = declared
        .keys()
        .filter(|name| !manifests.contains(&format!("{name}.workspace")));
    none(
        "declared and not used",
        &unused.cloned().collect::<Vec<_>>(),
    );
}

/// The links in our own pages lead somewhere.
#[test]
fn links_between_pages_lead_somewhere() {
    let pages = files("")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let broken: Vec<String> = pages.flat_map(|page| broken_links(&page)).collect();
    none("broken links", &broken);
}

fn broken_links(page: &Path) -> Vec<String> {
    let text = read(page);
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.starts_with("http") && !target.starts_with('#'));
    let folder = root().join(page.parent().unwrap_or(page));
    let missing =
        local.filter(|target| !folder.join(target.split('#').next().unwrap_or("")).exists());
    missing
        .map(|target| format!("{}: {target}", page.display()))
        .collect()
}

/// Each fault that `docs/faults.md` says is tested has the test that it names.
#[test]
fn every_listed_fault_has_its_test() {
    let everything: String = sources().into_iter().map(read).collect();
    let page = read("docs/faults.md");
    let tests = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.contains('_'));
    let missing = tests.filter(|test| !everything.contains(&format!("fn {test}(")));
    none(
        "no such test",
        &missing.map(str::to_owned).collect::<Vec<_>>(),
    );
}

fn names(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
    paths.map(|path| path.display().to_string()).collect()
}
