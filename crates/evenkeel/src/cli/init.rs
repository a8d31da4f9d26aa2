//! `evenkeel init`: writes a commented configuration to start from.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::STARTER;
use crate::exit::Exit;
use crate::output;

/// What `init` takes.
#[derive(Args, Clone, Debug)]
pub struct InitArguments {
    /// Where to write; `-` is standard output
    #[arg(default_value = "evenkeel.toml")]
    file: PathBuf,
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
}

/// Writes the file, and says what to do with it.
pub fn init(arguments: &InitArguments) -> Exit {
    let file = arguments.file.as_path();
    if file == Path::new("-") {
        return output::print(STARTER);
    }
    let opened = if arguments.force {
        File::create(file)
    } else {
        File::create_new(file)
    };
    match opened.and_then(write) {
        Ok(()) => output::print(&next_steps(file)),
        Err(error) => output::complain(&refusal(file, &error)),
    }
}

fn write(mut file: File) -> io::Result<()> {
    file.write_all(STARTER.as_bytes())?;
    file.sync_all()
}

fn next_steps(file: &Path) -> String {
    let file = output::shown_path(file);
    format!("wrote {file}; edit it, then `evenkeel check {file}` and `evenkeel run {file}`\n")
}

fn refusal(file: &Path, error: &io::Error) -> String {
    let file = output::shown_path(file);
    match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{file} is there already; --force overwrites it"),
        io::ErrorKind::NotFound => format!("cannot write {file}: its folder is not there"),
        _ => format!("cannot write {file}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config;

    fn careful(file: &Path) -> InitArguments {
        InitArguments {
            file: file.to_owned(),
            force: false,
        }
    }

    /// What is written can be run as it is.
    #[test]
    fn the_starter_passes_its_own_check() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("evenkeel.toml");

        assert_eq!(init(&careful(&file)), Exit::Done);

        config::load(&file).unwrap();
    }

    /// A file that somebody has written is kept, unless they say otherwise.
    #[test]
    fn a_file_is_overwritten_by_force_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("evenkeel.toml");
        fs::write(&file, "mine").unwrap();

        assert_eq!(init(&careful(&file)), Exit::Failed);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

        let forced = InitArguments {
            force: true,
            ..careful(&file)
        };
        assert_eq!(init(&forced), Exit::Done);
        assert_eq!(fs::read_to_string(&file).unwrap(), STARTER);
    }

    /// A file's name is told on one line, whatever is in it.
    #[test]
    fn a_line_feed_in_a_name_is_shown_and_not_obeyed() {
        let hostile = Path::new("a\nb\u{1b}[2J");
        let there = io::Error::from(io::ErrorKind::AlreadyExists);

        for told in [next_steps(hostile), refusal(hostile, &there)] {
            assert!(told.contains("a\\nb\\u{1b}[2J"), "{told}");
        }
    }
}
