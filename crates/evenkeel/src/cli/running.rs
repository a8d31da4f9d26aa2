//! Finding the process that a command is meant for, and what to say when there is none.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use evenkeel_proxy::control::client::{ANSWER_TIMEOUT, ClientError, ControlClient};
use evenkeel_proxy::control::socket::check_directory;

use crate::config::{self, DEFAULT_PATH, Diagnostics, Surroundings};
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
            ClientError::Silent { .. } => Exit::TimedOut,
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
        self.connect_within(ANSWER_TIMEOUT)
    }

    /// As [`connect`](Self::connect), with another bound on the time for connecting and for each answer.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect_within(&self, patience: Duration) -> Result<ControlClient, Refused> {
        connect_to_first(&self.candidates()?, patience)
    }

    /// Where it could be, the likeliest first.
    fn candidates(&self) -> Result<Vec<Candidate>, Refused> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => Ok(vec![Candidate::Named(socket.clone())]),
            (None, Some(file)) => Ok(vec![Candidate::Named(socket_of(file)?)]),
            (None, None) => Ok(guesses(&Surroundings::of_this_process())),
        }
    }
}

/// Where the process could be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Candidate {
    /// Somebody has said so.
    Named(PathBuf),
    /// Where this user's process has its socket unless configured. In `/tmp`, anybody could have made it.
    OwnDefault(PathBuf),
}

impl Candidate {
    fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::OwnDefault(path) => path,
        }
    }

    fn connect(&self, patience: Duration) -> Result<ControlClient, ClientError> {
        if let Self::OwnDefault(path) = self {
            check_directory(path)?;
        }
        ControlClient::connect(self.path(), patience)
    }
}

/// A process runs on while its file is being edited, so that a file may be wrong as long as it tells this.
fn socket_of(file: &Path) -> Result<PathBuf, Refused> {
    let socket = config::control_socket_of(file);
    let socket = socket.map_err(|diagnostics| invalid(file, &diagnostics))?;
    socket.ok_or_else(|| Refused {
        message: format!(
            "{}: the control socket is turned off in this configuration",
            output::shown_path(file)
        ),
        exit: Exit::NothingRunning,
    })
}

/// The first fault is often the only one, and says whether the file is there at all.
fn invalid(file: &Path, diagnostics: &Diagnostics) -> Refused {
    let file = output::shown_path(file);
    let others = match diagnostics.count() {
        0 | 1 => String::new(),
        count => format!(" (and errors beside it: {})", count - 1),
    };
    Refused {
        message: format!(
            "{file}: {}{others}; see `evenkeel check {file}`, or name the socket with --socket",
            diagnostics.first_message()
        ),
        exit: Exit::ConfigInvalid,
    }
}

/// The configuration in its usual place may name a socket; then the user's own default, then root's.
fn guesses(surroundings: &Surroundings) -> Vec<Candidate> {
    let own = Candidate::OwnDefault(surroundings.control_socket());
    let configured = config::control_socket_of(Path::new(DEFAULT_PATH));
    let configured = configured.ok().flatten();
    // A configuration without one has the user's own default filled in.
    let configured = configured.filter(|path| path != own.path());
    let system = Candidate::Named(PathBuf::from(SYSTEM_SOCKET));
    let mut guesses = Vec::from_iter(configured.map(Candidate::Named));
    guesses.push(own);
    if guesses.iter().all(|guess| guess.path() != system.path()) {
        guesses.push(system);
    }
    guesses
}

/// A place that is not to be trusted is passed over; it is told of only if no other place has a process.
fn connect_to_first(
    candidates: &[Candidate],
    patience: Duration,
) -> Result<ControlClient, Refused> {
    let mut distrusted = None;
    for candidate in candidates {
        match candidate.connect(patience) {
            Err(ClientError::NothingRunning { .. }) => {}
            Err(ClientError::Path(error)) => distrusted = distrusted.or(Some(error)),
            connected => return connected.map_err(Refused::from),
        }
    }
    Err(distrusted.map_or_else(
        || nothing_running(candidates),
        |error| ClientError::Path(error).into(),
    ))
}

fn nothing_running(tried: &[Candidate]) -> Refused {
    let mut message = "nothing is running: no process answers on ".to_owned();
    for (index, candidate) in tried.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", nor on " };
        // A `String` takes every write.
        let _ = write!(
            message,
            "{separator}{}",
            output::shown_path(candidate.path())
        );
    }
    message.push_str("\nstart one with `evenkeel run FILE`, or say where it is with --socket PATH or --config FILE; \
         without `control_socket` in its configuration, each user's process has a socket of its own");
    Refused {
        message,
        exit: Exit::NothingRunning,
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_proxy::control::protocol::Request;
    use evenkeel_proxy::control::report::StatusReport;
    use evenkeel_proxy::control::socket::ControlSocket;

    use super::*;

    /// Every place that was looked at is named, and so is the way out.
    #[test]
    fn all_that_was_tried_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one.sock", "two.sock"].map(|name| dir.path().join(name));

        let candidates = [&one, &two].map(|path| Candidate::Named(path.clone()));
        let refused = connect_to_first(&candidates, ANSWER_TIMEOUT).unwrap_err();

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

        let mine = dir.path().join("./mine.sock");
        assert_eq!(candidates, [Candidate::Named(mine)]);
    }

    /// A file that is not there is called that, and not one with errors.
    #[test]
    fn a_missing_configuration_is_called_missing() {
        let which = Which {
            socket: None,
            config: Some(PathBuf::from("/nowhere/evenkeel.toml")),
        };

        let refused = which.candidates().unwrap_err();

        assert_eq!(refused.exit, Exit::ConfigInvalid);
        let message = refused.message;
        assert!(message.contains("No such file or directory"), "{message}");
    }

    /// A process that does not answer has the exit code of a wait that ran out.
    #[test]
    fn a_silent_process_is_a_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("frozen.sock");
        let _frozen = ControlSocket::open(&path).unwrap();
        let which = Which {
            socket: Some(path),
            config: None,
        };
        let mut client = which.connect_within(Duration::from_millis(1)).unwrap();

        let error = client.ask::<StatusReport>(&Request::Status).unwrap_err();

        let refused = Refused::from(error);
        assert_eq!(refused.exit, Exit::TimedOut);
        let pid = format!("from pid {}", std::process::id());
        assert!(refused.message.contains(&pid), "{}", refused.message);
    }
}
