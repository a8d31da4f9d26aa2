//! The asking end of the control socket: plain blocking calls for command-line programs, each with a bound on its time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::protocol::{ANSWER_BYTES_MAX, Fault, Request, decode_answer, encode_request};
use super::socket::{ControlSocketError, check_length};
use super::{lock, peer};

/// How long a running process may take for an answer, unless the caller has less patience: longer than it gives a silent
/// client, so that a full house clears.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a running process.
#[derive(Debug)]
pub struct ControlClient {
    path: PathBuf,
    patience: Duration,
    stream: BufReader<UnixStream>,
}

/// No answer was had.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is no socket, or nobody answers on it.
    #[error("nothing is running on {path}: {source}")]
    NothingRunning {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is one, but it is not for us, or the path cannot be one.
    #[error(
        "cannot connect to the control socket {path}: {source}; only the user who runs evenkeel can"
    )]
    Connect {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path cannot be a socket's.
    #[error(transparent)]
    Path(#[from] ControlSocketError),
    /// It is there and says nothing: frozen, or without a moment for us.
    #[error(
        "no answer on {path} within {} s{}; it may be stopped (SIGCONT lets it go on) or overloaded",
        .patience.as_secs(),
        from_pid(*.pid)
    )]
    Silent {
        /// On which socket.
        path: PathBuf,
        /// Whose socket it is, if the lock beside it says so.
        pid: Option<u32>,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The connection broke.
    #[error("no answer on {path}: {source}")]
    Broken {
        /// On which socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The answer cannot be read; most likely the two programs are of different versions.
    #[error("the answer on {path} cannot be understood (is it another version?): {source}")]
    Strange {
        /// On which socket.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The process refused.
    #[error("{0}")]
    Fault(Fault),
}

fn from_pid(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" from pid {pid}"))
}

impl ControlClient {
    /// Connects to the process that owns the socket; it and each answer may take as long as `patience`.
    ///
    /// # Errors
    ///
    /// [`ClientError::NothingRunning`] when there is none; [`ClientError::Connect`] when it may not be reached;
    /// [`ClientError::Silent`] when it accepts nothing.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, ClientError> {
        check_length(path)?;
        let stream = peer::connect(path, patience)
            .map_err(|source| connect_error(path, patience, source))?;
        Ok(Self {
            path: path.to_owned(),
            patience,
            stream: BufReader::new(stream),
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ClientError> {
        let asked = encode_request(request).map_err(|source| self.strange(source))?;
        let line = self
            .exchange(&asked)
            .map_err(|source| self.broken(source))?;
        let answer = decode_answer(&line).map_err(|source| self.strange(source))?;
        answer.map_err(ClientError::Fault)
    }

    fn exchange(&mut self, asked: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.get_mut().write_all(asked)?;
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(ANSWER_BYTES_MAX as u64);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    fn broken(&self, source: io::Error) -> ClientError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::WouldBlock => ClientError::Silent {
                path,
                pid: lock::owner(&lock::beside(&self.path)),
                patience: self.patience,
            },
            _ => ClientError::Broken { path, source },
        }
    }

    fn strange(&self, source: serde_json::Error) -> ClientError {
        ClientError::Strange {
            path: self.path.clone(),
            source,
        }
    }
}

fn connect_error(path: &Path, patience: Duration, source: io::Error) -> ClientError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::WouldBlock => ClientError::Silent {
            pid: lock::owner(&lock::beside(&path)),
            path,
            patience,
        },
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NothingRunning { path, source }
        }
        _ => ClientError::Connect { path, source },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::control::report::StatusReport;
    use crate::control::socket::ControlSocket;

    /// No socket and a dead one are the same to a user: nothing is running.
    #[test]
    fn a_missing_and_a_stale_socket_mean_nothing_is_running() {
        let dir = tempfile::tempdir().unwrap();
        let stale = dir.path().join("stale.sock");
        drop(UnixListener::bind(&stale).unwrap());

        for path in [stale, dir.path().join("missing.sock")] {
            let error = ControlClient::connect(&path, ANSWER_TIMEOUT).unwrap_err();
            assert!(
                matches!(error, ClientError::NothingRunning { .. }),
                "{error}"
            );
        }
    }

    /// A listener that is no evenkeel leads to an error about the answer, not to a panic or an endless wait.
    #[test]
    fn a_strange_answer_is_an_error() {
        for answer in [&b"\n"[..], b"HTTP/1.1 400 Bad Request\r\n", b"\xff\n", b""] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("other.sock");
            let listener = UnixListener::bind(&path).unwrap();
            let mut client = ControlClient::connect(&path, ANSWER_TIMEOUT).unwrap();
            let (mut other, _) = listener.accept().unwrap();
            other.write_all(answer).unwrap();
            other.shutdown(std::net::Shutdown::Write).unwrap();

            let error = client.ask::<StatusReport>(&Request::Status).unwrap_err();

            assert!(
                matches!(
                    error,
                    ClientError::Strange { .. } | ClientError::Broken { .. }
                ),
                "{error}"
            );
        }
    }

    /// A process that answers nothing, and one that does not even accept, are told from none and from a broken one; the first
    /// also by its id.
    #[test]
    fn a_frozen_process_is_told_from_a_broken_one() {
        const IMPATIENCE: Duration = Duration::from_millis(10);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("frozen.sock");
        let _frozen = ControlSocket::open(&path).unwrap();
        let mut client = ControlClient::connect(&path, IMPATIENCE).unwrap();

        let error = client.ask::<StatusReport>(&Request::Status).unwrap_err();

        let ours = Some(std::process::id());
        assert!(matches!(error, ClientError::Silent { pid, .. } if pid == ours));
        let mut waiting = Vec::new();
        let refused = loop {
            match ControlClient::connect(&path, IMPATIENCE) {
                Ok(client) => waiting.push(client),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, ClientError::Silent { pid, .. } if pid == ours));
    }
}
