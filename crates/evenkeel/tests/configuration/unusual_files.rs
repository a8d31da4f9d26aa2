//! Files that are too large, too empty, no text, or not there.

use std::fs;
use std::path::Path;

use evenkeel::config::{self, Appearance, Diagnostics, FILE_BYTES_MAX, Loaded};

use crate::{WEB, folder, load_main, only_problem};

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

/// A pipe that nobody writes to is refused instead of waited for: as the main file, by name and by pattern.
#[test]
fn a_pipe_is_not_waited_for() {
    for (main, pipe) in [
        (None, "main.toml"),
        (Some("include = [\"pipe.toml\"]"), "pipe.toml"),
        (Some("include = [\"p*.toml\"]"), "pipe.toml"),
    ] {
        let folder = folder(&[]);
        if let Some(include) = main {
            let text = format!("{include}\n{WEB}");
            fs::write(folder.path().join("main.toml"), text).unwrap();
        }
        make_pipe(&folder.path().join(pipe));

        let problem = only_problem(load_main(&folder));

        assert!(
            problem.contains("it is a pipe, not a regular file"),
            "{problem}"
        );
    }
}

fn make_pipe(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

/// Devices have no end or none that is known, and the kernel's own files are read like pipes though they call themselves regular.
#[test]
fn devices_and_files_of_the_kernel_are_refused() {
    for path in ["/dev/zero", "/proc/self/status"] {
        let diagnostics = config::load(Path::new(path)).unwrap_err();

        let report = diagnostics.render(Appearance::Plain);

        assert!(report.contains("not a regular file"), "{report}");
    }
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
        report.ends_with("1000 errors, 900 of them not shown; nothing was started or changed\n"),
        "{report}"
    );
}
