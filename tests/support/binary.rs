//! Which evenkeel is tested: the one that `EVENKEEL_BIN` names, or one built here, once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Optimised a little, with overflow checks and assertions on; the same profile that `cargo xtask test` uses.
const PROFILE: &str = "e2e";

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests live in a folder of the repository")
}

/// The program under test.
pub(crate) fn evenkeel() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("EVENKEEL_BIN").map_or_else(build, PathBuf::from))
}

/// Over the whole workspace, as the tests themselves are built, so that the dependencies are built once.
fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--bin", "evenkeel"])
        .args([
            "--profile",
            PROFILE,
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "evenkeel does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    messages
        .lines()
        .find_map(executable)
        .expect("cargo names what it built")
}

fn executable(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    message.get("executable")?.as_str().map(PathBuf::from)
}
