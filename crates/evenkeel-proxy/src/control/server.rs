//! The serving end of the control socket: reads lines within bounds, asks the handler, writes answers.
//!
//! It runs on the control plane's thread, which also ticks and waits for signals, so nothing here may block: a client
//! that sends nothing, too much, or never reads its answer is closed. What a request means is the handler's business.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::protocol::{self, Answer, Fault, FaultKind, REQUEST_BYTES_MAX, Request, decode_request};

/// Connections served at one time; more wait in the kernel's backlog.
pub const CONNECTIONS_MAX: usize = 16;
/// How long a request may take to arrive, counted from the connection or the answer before it.
pub const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to read its answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long accepting pauses when the system has nothing to give (descriptors, memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Carries requests out. Called on the control plane's thread; must not block.
pub trait ControlHandler: Send + Sync {
    /// Answers one request.
    ///
    /// # Errors
    ///
    /// A fault, which is sent to the client in place of an answer.
    fn answer(&self, request: Request) -> Result<Answer, Fault>;
}

/// Serves the socket until it is dropped; then its connections are closed with it.
///
/// # Errors
///
/// The socket cannot be registered with the runtime. Once it serves, it does not end.
pub async fn serve(listener: StdListener, handler: Arc<dyn ControlHandler>) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let slot = free_slot(&slots).await?;
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let handler = Arc::clone(&handler);
                connections.spawn(serve_connection(stream, handler, slot));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the control socket");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn free_slot(slots: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    let slot = Arc::clone(slots).acquire_owned().await;
    // Nobody closes the semaphore; if someone did, there would be nothing left to serve.
    slot.map_err(io::Error::other)
}

/// Requests one after the other, until the client is done or breaks a rule.
async fn serve_connection(
    stream: UnixStream,
    handler: Arc<dyn ControlHandler>,
    _slot: OwnedSemaphorePermit,
) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        let answer = match read_line(&mut reader, &mut line).await {
            Incoming::Line => handle(&line, handler.as_ref()),
            Incoming::End => return,
            // After this the place of the next line is unknown.
            Incoming::Fault(fault) => {
                let _ = write_answer(&mut writer, &Err(fault)).await;
                return;
            }
        };
        if write_answer(&mut writer, &answer).await.is_err() {
            return;
        }
    }
}

enum Incoming {
    /// A line was read.
    Line,
    /// The client is done, or gone.
    End,
    /// No line came that could be read.
    Fault(Fault),
}

async fn read_line(reader: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> Incoming {
    line.clear();
    let mut bounded = reader.take(REQUEST_BYTES_MAX as u64 + 1);
    match timeout(READ_TIMEOUT, bounded.read_until(b'\n', line)).await {
        Err(_) => Incoming::Fault(Fault::new(
            FaultKind::TimedOut,
            format_args!("no request within {} s", READ_TIMEOUT.as_secs()),
        )),
        Ok(Ok(0) | Err(_)) => Incoming::End,
        Ok(Ok(count)) if count > REQUEST_BYTES_MAX => Incoming::Fault(Fault::new(
            FaultKind::TooLong,
            format_args!("a request has at most {REQUEST_BYTES_MAX} bytes"),
        )),
        Ok(Ok(_)) => Incoming::Line,
    }
}

fn handle(line: &[u8], handler: &dyn ControlHandler) -> Result<Answer, Fault> {
    handler.answer(decode_request(line)?)
}

async fn write_answer(
    writer: &mut OwnedWriteHalf,
    answer: &Result<Answer, Fault>,
) -> io::Result<()> {
    let line = protocol::encode_answer(answer);
    timeout(WRITE_TIMEOUT, writer.write_all(&line)).await?
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader as StdReader, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream as StdStream;
    use std::path::Path;

    use super::*;
    use crate::control::client::{ClientError, ControlClient};
    use crate::control::protocol::StopMode;
    use crate::control::report::StopReport;
    use crate::control::socket::ControlSocket;

    /// Knows one thing to say.
    struct Parrot;

    impl ControlHandler for Parrot {
        fn answer(&self, request: Request) -> Result<Answer, Fault> {
            match request {
                Request::Stop { .. } => Ok(Answer::Stop(farewell())),
                _ => Err(Fault::new(
                    FaultKind::Internal,
                    "a parrot knows only one word",
                )),
            }
        }
    }

    fn farewell() -> StopReport {
        StopReport {
            pid: 7,
            sessions: 3,
            deadline_ms: 25_000,
        }
    }

    const STOP: &[u8] = b"{\"version\":1,\"command\":\"stop\",\"mode\":\"graceful\"}\n";

    /// Runs the client's side against a served socket, on a thread of its own.
    fn with_server(client: impl FnOnce(&Path) + Send) {
        let dir = tempfile::tempdir().unwrap();
        let socket = ControlSocket::open(&dir.path().join("control.sock")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (done, is_done) = tokio::sync::oneshot::channel();
        std::thread::scope(|scope| {
            let path = socket.path();
            scope.spawn(move || {
                client(path);
                let _ = done.send(());
            });
            runtime.block_on(async {
                let listener = socket.listener().unwrap();
                tokio::select! {
                    served = serve(listener, Arc::new(Parrot)) => panic!("ended: {served:?}"),
                    _ = is_done => {}
                }
            });
        });
    }

    fn send_and_read_all(path: &Path, bytes: &[u8]) -> String {
        let mut stream = StdStream::connect(path).unwrap();
        // A server that has seen enough may close before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// The client's typed question comes back as the handler's typed answer.
    #[test]
    fn a_question_is_answered() {
        with_server(|path| {
            let mut client = ControlClient::connect(path).unwrap();
            let mode = StopMode::Graceful;

            let answer: StopReport = client.ask(&Request::Stop { mode }).unwrap();

            assert_eq!(answer, farewell());
        });
    }

    /// What the handler refuses reaches the client as a fault with its words, and the connection goes on.
    #[test]
    fn a_fault_does_not_end_the_connection() {
        with_server(|path| {
            let mut client = ControlClient::connect(path).unwrap();

            let error = client.ask::<StopReport>(&Request::Status).unwrap_err();

            assert!(
                matches!(&error, ClientError::Fault(fault) if fault.message.contains("parrot"))
            );
            let mode = StopMode::Now;
            client.ask::<StopReport>(&Request::Stop { mode }).unwrap();
        });
    }

    /// Several requests in one write get one line each, in their order; garbage between them is answered, too.
    #[test]
    fn pipelined_lines_are_answered_in_order() {
        with_server(|path| {
            let asked = [STOP, b"\xff\x00garbage\n", STOP].concat();

            let answers = send_and_read_all(path, &asked);

            let lines: Vec<&str> = answers.lines().collect();
            assert_eq!(lines.len(), 3, "{answers}");
            assert!(lines[0].contains(r#""pid":7"#));
            assert!(lines[1].contains(r#""kind":"bad_request""#));
            assert!(lines[2].contains(r#""pid":7"#));
        });
    }

    /// A request may come without a line feed, if the client ends its side.
    #[test]
    fn the_last_line_feed_may_be_missing() {
        with_server(|path| {
            let answers = send_and_read_all(path, STOP.trim_ascii_end());

            assert!(answers.contains(r#""pid":7"#), "{answers}");
        });
    }

    /// A request as long as the bound is read (and found to be no JSON); one byte more is refused unread.
    #[test]
    fn a_request_has_a_longest_length() {
        with_server(|path| {
            let mut longest = vec![b'x'; REQUEST_BYTES_MAX];
            longest[REQUEST_BYTES_MAX - 1] = b'\n';
            let too_long = vec![b'x'; REQUEST_BYTES_MAX + 1];

            let read = send_and_read_all(path, &longest);
            let refused = send_and_read_all(path, &too_long);

            assert!(read.contains(r#""kind":"bad_request""#), "{read}");
            assert!(refused.contains(r#""kind":"too_long""#), "{refused}");
        });
    }

    /// However a request is cut into pieces, it is one request.
    #[test]
    fn a_request_may_come_byte_by_byte() {
        with_server(|path| {
            let mut stream = StdStream::connect(path).unwrap();
            for byte in STOP {
                stream.write_all(&[*byte]).unwrap();
            }
            let mut answer = String::new();
            StdReader::new(&stream).read_line(&mut answer).unwrap();

            assert!(answer.contains(r#""pid":7"#), "{answer}");
        });
    }

    /// With every slot taken by a silent client, the next one waits, and is served when one of them leaves.
    #[test]
    fn more_clients_than_slots_wait_their_turn() {
        with_server(|path| {
            let mut silent: Vec<_> = (0..CONNECTIONS_MAX)
                .map(|_| StdStream::connect(path).unwrap())
                .collect();
            let mut next = ControlClient::connect(path).unwrap();

            silent.pop();

            let mode = StopMode::Graceful;
            next.ask::<StopReport>(&Request::Stop { mode }).unwrap();
        });
    }

    /// A client that never sends a line is told so and closed (with time standing still but for the timeout).
    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_closed() {
        let (client, served) = UnixStream::pair().unwrap();
        let slots = Arc::new(Semaphore::new(1));
        let slot = free_slot(&slots).await.unwrap();

        serve_connection(served, Arc::new(Parrot), slot).await;

        let mut answer = String::new();
        let mut client = BufReader::new(client);
        client.read_line(&mut answer).await.unwrap();
        assert!(answer.contains(r#""kind":"timed_out""#), "{answer}");
        assert_eq!(slots.available_permits(), 1);
    }
}
