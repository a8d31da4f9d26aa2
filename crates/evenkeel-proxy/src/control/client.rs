//! The asking end of the control socket: plain blocking calls for command-line programs, each with a bound on its time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::protocol::{ANSWER_BYTES_MAX, Fault, Request, decode_answer, encode_request};
use super::socket::{ControlSocketError, check_length};

/// How long a running process may take for an answer: longer than it gives a silent client, so that a full house clears.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a running process.
#[derive(Debug)]
pub struct ControlClient {
    path: PathBuf,
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
    /// The connection broke, or the answer took longer than [`ANSWER_TIMEOUT`].
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

impl ControlClient {
    /// Connects to the process that owns the socket.
    ///
    /// # Errors
    ///
    /// [`ClientError::NothingRunning`] when there is none; [`ClientError::Connect`] when it may not be reached.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        check_length(path)?;
        let stream = UnixStream::connect(path).map_err(|source| connect_error(path, source))?;
        let client = Self {
            path: path.to_owned(),
            stream: BufReader::new(stream),
        };
        client
            .bound_waits()
            .map_err(|source| client.broken(source))?;
        Ok(client)
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

    fn bound_waits(&self) -> io::Result<()> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))
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
        ClientError::Broken {
            path: self.path.clone(),
            source,
        }
    }

    fn strange(&self, source: serde_json::Error) -> ClientError {
        ClientError::Strange {
            path: self.path.clone(),
            source,
        }
    }
}

fn connect_error(path: &Path, source: io::Error) -> ClientError {
    let path = path.to_owned();
    match source.kind() {
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

    /// No socket and a dead one are the same to a user: nothing is running.
    #[test]
    fn a_missing_and_a_stale_socket_mean_nothing_is_running() {
        let dir = tempfile::tempdir().unwrap();
        let stale = dir.path().join("stale.sock");
        drop(UnixListener::bind(&stale).unwrap());

        for path in [stale, dir.path().join("missing.sock")] {
            let error = ControlClient::connect(&path).unwrap_err();
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
            let mut client = ControlClient::connect(&path).unwrap();
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
}
