//! The serving end of the control socket: reads lines within bounds, asks the handler, writes answers.
//!
//! It runs on the control plane's thread, which also ticks and waits for signals, so nothing here may block: a client
//! that sends nothing, too much, or never reads its answer is closed. What a request means is the handler's business.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{ReadHalf, WriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::protocol::{self, Answer, Fault, FaultKind, REQUEST_BYTES_MAX, Request, decode_request};
use super::reserve::{Reserve, is_out_of_descriptors};

/// Connections served at one time; more wait in the kernel's backlog.
pub const CONNECTIONS_MAX: usize = 16;
/// How long a request may take to arrive, counted from the connection or the answer before it.
pub const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to read its answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long accepting pauses when the system has nothing to give (descriptors, memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often at most it is said that accepting fails.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// An answer, or the fault that is sent in place of one, as soon as there is one.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// Carries requests out. Called on the control plane's thread; must not block. What takes its time is waited for: the client
/// has to be patient, and other connections are served meanwhile.
pub trait ControlHandler: Send + Sync {
    /// Answers one request.
    fn answer(&self, request: Request) -> Answering;
}

/// Serves the socket until it is dropped; then its connections are closed with it. When `left` comes to an end, the socket is
/// somebody else's: it is closed, and this ends with the last connection.
///
/// # Errors
///
/// The socket cannot be registered with the runtime.
pub async fn serve(
    listener: StdListener,
    handler: Arc<dyn ControlHandler>,
    left: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let mut door = Door::new(listener)?;
    let mut connections = JoinSet::new();
    let mut left = pin!(left);
    loop {
        let may_accept = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            () = &mut left => break,
            Some(ended) = connections.join_next() => door.closed(ended),
            stream = door.accept(), if may_accept => {
                connections.spawn(serve_connection(stream, Arc::clone(&handler)));
            }
        }
    }
    drop(door);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Where connections come in, also when sessions have taken every descriptor.
struct Door {
    listener: UnixListener,
    reserve: Reserve,
    /// When it was last said that nobody can be let in.
    said_at: Option<Instant>,
}

impl Door {
    fn new(listener: UnixListener) -> io::Result<Self> {
        Ok(Self {
            reserve: Reserve::of(&listener)?,
            listener,
            said_at: None,
        })
    }

    /// The next connection. Nothing is lost when this is dropped before it is done.
    async fn accept(&mut self) -> UnixStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.reserve.fill();
                    return stream;
                }
                Err(error) if is_out_of_descriptors(&error) && self.reserve.give_up_one() => {}
                Err(error) => {
                    self.say(&error);
                    sleep(ACCEPT_PAUSE).await;
                    self.reserve.fill();
                }
            }
        }
    }

    fn say(&mut self, error: &io::Error) {
        if self.said_at.is_none_or(|at| at.elapsed() >= SAID_EVERY) {
            self.said_at = Some(Instant::now());
            tracing::warn!(%error, "cannot accept on the control socket");
        }
    }

    /// A connection has ended, and its descriptor with it.
    fn closed(&mut self, ended: Result<UnixStream, JoinError>) {
        if let Ok(stream) = ended
            .map_err(io::Error::other)
            .and_then(UnixStream::into_std)
        {
            self.reserve.take_over(stream.into());
        }
    }
}

/// Requests one after the other, until the client is done or breaks a rule. The connection comes back to be closed.
async fn serve_connection(mut stream: UnixStream, handler: Arc<dyn ControlHandler>) -> UnixStream {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        let answer = match read_line(&mut reader, &mut line).await {
            Incoming::Line => handle(&line, handler.as_ref()).await,
            Incoming::End => break,
            // After this the place of the next line is unknown.
            Incoming::Fault(fault) => {
                let _ = write_answer(&mut writer, &Err(fault)).await;
                break;
            }
        };
        if write_answer(&mut writer, &answer).await.is_err() {
            break;
        }
    }
    stream
}

enum Incoming {
    /// A line was read.
    Line,
    /// The client is done, or gone.
    End,
    /// No line came that could be read.
    Fault(Fault),
}

async fn read_line(reader: &mut BufReader<ReadHalf<'_>>, line: &mut Vec<u8>) -> Incoming {
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

async fn handle(line: &[u8], handler: &dyn ControlHandler) -> Result<Answer, Fault> {
    handler.answer(decode_request(line)?).await
}

async fn write_answer(
    writer: &mut WriteHalf<'_>,
    answer: &Result<Answer, Fault>,
) -> io::Result<()> {
    let line = protocol::encode_answer(answer);
    timeout(WRITE_TIMEOUT, writer.write_all(&line)).await?
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io::{BufRead, BufReader as StdReader, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream as StdStream;
    use std::path::Path;

    use super::*;
    use crate::control::client::{ANSWER_TIMEOUT, ClientError, ControlClient};
    use crate::control::protocol::StopMode;
    use crate::control::report::StopReport;
    use crate::control::socket::ControlSocket;

    /// Knows one thing to say.
    struct Parrot;

    impl ControlHandler for Parrot {
        fn answer(&self, request: Request) -> Answering {
            let answer = match request {
                Request::Stop { .. } => Ok(Answer::Stop(farewell())),
                _ => Err(Fault::new(
                    FaultKind::Internal,
                    "a parrot knows only one word",
                )),
            };
            Box::pin(ready(answer))
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
                    served = serve(listener, Arc::new(Parrot), pending()) => panic!("ended: {served:?}"),
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
            let mut client = ControlClient::connect(path, ANSWER_TIMEOUT).unwrap();
            let mode = StopMode::Graceful;

            let answer: StopReport = client.ask(&Request::Stop { mode }).unwrap();

            assert_eq!(answer, farewell());
        });
    }

    /// What the handler refuses reaches the client as a fault with its words, and the connection goes on.
    #[test]
    fn a_fault_does_not_end_the_connection() {
        with_server(|path| {
            let mut client = ControlClient::connect(path, ANSWER_TIMEOUT).unwrap();

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
            let mut next = ControlClient::connect(path, ANSWER_TIMEOUT).unwrap();

            silent.pop();

            let mode = StopMode::Graceful;
            next.ask::<StopReport>(&Request::Stop { mode }).unwrap();
        });
    }

    /// A client that never sends a line is told so and closed (with time standing still but for the timeout).
    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_closed() {
        let (client, served) = UnixStream::pair().unwrap();

        serve_connection(served, Arc::new(Parrot)).await;

        let mut answer = String::new();
        let mut client = BufReader::new(client);
        client.read_line(&mut answer).await.unwrap();
        assert!(answer.contains(r#""kind":"timed_out""#), "{answer}");
    }
}
