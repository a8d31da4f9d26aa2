//! Running other programs: shown before they start, from the root of the repository, with failures as errors.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

/// The root of the repository, which is where every command runs.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The cargo that started this program.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = program_in_root(program);
    command.args(arguments);
    command
}

/// Any other program.
pub(crate) fn program_in_root(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs it to its end; anything but success is an error.
pub(crate) fn run(mut command: Command) -> Result<()> {
    show(&command);
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", words(&command)))?;
    expect_success(&command, status)
}

pub(crate) fn expect_success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{}: {status}", words(command));
    }
    Ok(())
}

pub(crate) fn show(command: &Command) {
    eprintln!("+ {}", words(command));
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a program of this name can be found, also where only an administrator's search path would find it.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .any(|directory| directory.join(program).is_file())
}
