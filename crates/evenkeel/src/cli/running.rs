//! Finding the process that a command is meant for, and what to say when there is none.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use evenkeel_proxy::control::client::{ClientError, ControlClient};

use crate::config::{self, DEFAULT_PATH, Surroundings};
use crate::exit::Exit;
use crate::output;

/// Where root's process has its socket.
const SYSTEM_SOCKET: &str = "/run/evenkeel/control.sock";

/// Which process.
#[derive(Args, Clone, Debug, Default)]
pub struct Which {
    /// The control socket of the running process
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub socket: Option<PathBuf>,
    /// The configuration file that the running process was started with
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// A command that could not be carried out: what the user is told, and the shell.
#[derive(Debug)]
pub struct Refused {
    /// What, where, and what to do.
    pub message: String,
    /// The exit code.
    pub exit: Exit,
}

impl Refused {
    /// Says it on standard error.
    pub fn report(self) -> Exit {
        output::complain(&self.message);
        self.exit
    }
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        let exit = match error {
            ClientError::NothingRunning { .. } => Exit::NothingRunning,
            _ => Exit::Failed,
        };
        Self {
            message: error.to_string(),
            exit,
        }
    }
}

impl Which {
    /// Connects to the process.
    ///
    /// # Errors
    ///
    /// None of the places where it could be has one, or one of them does not let us in.
    pub fn connect(&self) -> Result<ControlClient, Refused> {
        connect_to_first(&self.candidates()?)
    }

    /// Where it could be, the likeliest first.
    fn candidates(&self) -> Result<Vec<PathBuf>, Refused> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => Ok(vec![socket.clone()]),
            (None, Some(file)) => Ok(vec![socket_of(file)?]),
            (None, None) => Ok(guesses()),
        }
    }
}

fn socket_of(file: &Path) -> Result<PathBuf, Refused> {
    let loaded = config::load(file).map_err(|_| Refused {
        message: format!("{0}: this configuration has errors; see `evenkeel check {0}`, or name the socket with --socket", file.display()),
        exit: Exit::ConfigInvalid,
    })?;
    loaded
        .settings
        .process
        .control_socket
        .ok_or_else(|| Refused {
            message: format!(
                "{}: the control socket is turned off in this configuration",
                file.display()
            ),
            exit: Exit::NothingRunning,
        })
}

/// The configuration in its usual place may name a socket; then the user's own default, then root's.
fn guesses() -> Vec<PathBuf> {
    let configured = config::load(Path::new(DEFAULT_PATH)).ok();
    let configured = configured.and_then(|loaded| loaded.settings.process.control_socket);
    let usual = [
        Surroundings::of_this_process().control_socket(),
        PathBuf::from(SYSTEM_SOCKET),
    ];
    let mut guesses = Vec::new();
    for path in configured.into_iter().chain(usual) {
        if !guesses.contains(&path) {
            guesses.push(path);
        }
    }
    guesses
}

fn connect_to_first(candidates: &[PathBuf]) -> Result<ControlClient, Refused> {
    for path in candidates {
        match ControlClient::connect(path) {
            Err(ClientError::NothingRunning { .. }) => {}
            connected => return connected.map_err(Refused::from),
        }
    }
    Err(nothing_running(candidates))
}

fn nothing_running(tried: &[PathBuf]) -> Refused {
    let mut message = "nothing is running: no process answers on ".to_owned();
    for (index, path) in tried.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", nor on " };
        // A `String` takes every write.
        let _ = write!(message, "{separator}{}", path.display());
    }
    message.push_str("\nstart one with `evenkeel run FILE`, or say where it is with --socket PATH or --config FILE");
    Refused {
        message,
        exit: Exit::NothingRunning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place that was looked at is named, and so is the way out.
    #[test]
    fn all_that_was_tried_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one.sock", "two.sock"].map(|name| dir.path().join(name));

        let refused = connect_to_first(&[one.clone(), two.clone()]).unwrap_err();

        assert_eq!(refused.exit, Exit::NothingRunning);
        for path in [one, two] {
            assert!(
                refused.message.contains(path.to_str().unwrap()),
                "{}",
                refused.message
            );
        }
        assert!(refused.message.contains("--socket"));
    }

    /// A configuration file leads to its own socket.
    #[test]
    fn a_configuration_names_its_socket() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("evenkeel.toml");
        let text = "[process]\ncontrol_socket = \"./mine.sock\"\n\
                    [listener.x]\nbind = \"127.0.0.1:1\"\nprotocol = \"tcp\"\nto = \"y\"\n\
                    [cluster.y]\nendpoints = [\"127.0.0.1:2\"]\n";
        std::fs::write(&file, text).unwrap();
        let which = Which {
            socket: None,
            config: Some(file),
        };

        let candidates = which.candidates().unwrap();

        assert_eq!(candidates, [dir.path().join("./mine.sock")]);
    }
}
