//! The example service: ask by user name, get the user's record. What demo and tests put behind the balancer.
//!
//! A request/response service as plain as they come. A client sends a user name, ended by a line feed or by the end of its
//! stream, and reads one JSON line until the end of the service's. A few threads with blocking sockets serve it: enough
//! for an example, bounded, and without a line that a reader has to look up.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

/// Clients served at one time; more wait in the kernel's backlog.
pub const THREADS: usize = 16;
/// The longest question, with its line feed.
pub const QUESTION_BYTES_MAX: usize = 256;
/// How long a client may keep a thread waiting, for each read and write.
pub const PATIENCE: Duration = Duration::from_secs(6);
/// What is read and thrown away after the answer, so that unread input does not destroy it on its way. A client that sends
/// even more is reset.
const LEFTOVER_BYTES_MAX: u64 = 64 * 1024;

/// The table.
const USERS: [User; 5] = [
    User {
        user: "ada",
        name: "Ada Lovelace",
        born: 1815,
    },
    User {
        user: "alan",
        name: "Alan Turing",
        born: 1912,
    },
    User {
        user: "edsger",
        name: "Edsger Dijkstra",
        born: 1930,
    },
    User {
        user: "grace",
        name: "Grace Hopper",
        born: 1906,
    },
    User {
        user: "leslie",
        name: "Leslie Lamport",
        born: 1941,
    },
];

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct User {
    user: &'static str,
    name: &'static str,
    born: u16,
}

/// A running example service; dropping it ends it, and new connections are refused from then on.
#[derive(Debug)]
pub struct ExampleService {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    listener: TcpListener,
    stopping: AtomicBool,
    answered: AtomicU64,
}

impl ExampleService {
    /// Listens on `bind` and serves. `name` is told in every answer.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or no thread is to be had.
    pub fn start(name: &str, bind: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(bind)?;
        let mut service = Self {
            address: listener.local_addr()?,
            shared: Arc::new(Shared {
                name: name.to_owned(),
                listener,
                stopping: AtomicBool::new(false),
                answered: AtomicU64::new(0),
            }),
            threads: Vec::with_capacity(THREADS),
        };
        for _ in 0..THREADS {
            let shared = Arc::clone(&service.shared);
            let thread = thread::Builder::new().name(format!("example-{name}"));
            service.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(service)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Questions answered so far.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for thread in self.threads.drain(..) {
            // A thread that panicked serves no more; the others do.
            let _ = thread.join();
        }
    }
}

impl Drop for ExampleService {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // On Linux this ends `accept` in every thread, and the kernel refuses connections from now on.
        let _ = rustix::net::shutdown(&self.shared.listener, rustix::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self) {
        while !self.stopping.load(Ordering::Relaxed) {
            match self.listener.accept() {
                // What goes wrong with one client concerns nobody else.
                Ok((stream, _)) => drop(self.serve_client(stream)),
                Err(_) if self.stopping.load(Ordering::Relaxed) => return,
                // Out of descriptors or memory: give others time to return some.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn serve_client(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let question = read_question(&mut stream)?;
        let mut answer = answer(&question, &self.name);
        answer.push('\n');
        // Counted before it is sent, so that whoever has read the answer sees it counted.
        self.answered.fetch_add(1, Ordering::Relaxed);
        stream.write_all(answer.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        io::copy(&mut stream.take(LEFTOVER_BYTES_MAX), &mut io::sink())?;
        Ok(())
    }
}

/// The bytes up to the first line feed, the end of the stream, or [`QUESTION_BYTES_MAX`].
fn read_question(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut question = [0; QUESTION_BYTES_MAX];
    let mut filled = 0;
    while filled < question.len() {
        let count = match stream.read(&mut question[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let line_feed = question[filled..filled + count]
            .iter()
            .position(|byte| *byte == b'\n');
        if let Some(position) = line_feed {
            return Ok(question[..filled + position].to_vec());
        }
        filled += count;
        if count == 0 {
            break;
        }
    }
    Ok(question[..filled].to_vec())
}

#[derive(Serialize)]
struct Found<'a> {
    #[serde(flatten)]
    user: User,
    served_by: &'a str,
}

#[derive(Serialize)]
struct NotFound<'a> {
    error: &'static str,
    user: &'a str,
    served_by: &'a str,
}

/// One JSON object: the user's record, or why there is none.
fn answer(question: &[u8], served_by: &str) -> String {
    let user = String::from_utf8_lossy(question.trim_ascii());
    let row = USERS.iter().find(|row| row.user == user);
    let json = match row {
        Some(row) => serde_json::to_string(&Found {
            user: *row,
            served_by,
        }),
        None => serde_json::to_string(&NotFound {
            error: reason_for_none(question),
            user: &user,
            served_by,
        }),
    };
    // Strings and numbers under fixed names always can be written.
    json.unwrap_or_default()
}

fn reason_for_none(question: &[u8]) -> &'static str {
    if question.len() >= QUESTION_BYTES_MAX {
        "the question is too long"
    } else if question.trim_ascii().is_empty() {
        "no user name was sent"
    } else {
        "no such user"
    }
}

/// Asks a service, or a balancer in front of it, as its clients do: send, end the stream, read to the end.
///
/// # Errors
///
/// The connection failed, or nobody answered within `patience` for each step.
pub fn ask(address: SocketAddr, user: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(user.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// The record comes out of the table, with the name of who served it.
    #[test]
    fn a_known_user_is_answered_with_the_record() {
        let service = ExampleService::start("a", any_port()).unwrap();

        let record = ask(service.address(), "ada", LONG).unwrap();

        assert_eq!(
            record,
            "{\"user\":\"ada\",\"name\":\"Ada Lovelace\",\"born\":1815,\"served_by\":\"a\"}\n"
        );
        assert_eq!(service.answered(), 1);
    }

    /// A line feed ends a question as well as the end of the stream does.
    #[test]
    fn a_line_feed_is_enough() {
        let service = ExampleService::start("a", any_port()).unwrap();
        let mut stream = TcpStream::connect(service.address()).unwrap();

        stream.write_all(b"grace\r\nand more").unwrap();

        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("Grace Hopper"), "{answer}");
    }

    /// A user that is not in the table is not made up.
    #[test]
    fn an_unknown_user_is_an_error() {
        assert_eq!(
            answer(b"bob", "a"),
            r#"{"error":"no such user","user":"bob","served_by":"a"}"#
        );
        assert!(answer(b" \n", "a").contains("no user name was sent"));
    }

    /// Bytes of any kind, and far too many of them, get an answer that is one line of JSON.
    #[test]
    fn hostile_questions_get_a_plain_answer() {
        let service = ExampleService::start("a", any_port()).unwrap();
        for question in [&b"\xff\xfe\x00\"\\"[..], &[b'x'; 60_000], b"\0"] {
            let mut stream = TcpStream::connect(service.address()).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream.write_all(question).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();

            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let parsed: serde_json::Value = serde_json::from_str(&answer).unwrap();
            assert!(parsed["error"].is_string(), "{answer}");
        }
    }

    /// Once it is stopped it refuses, and its address is free for the next one at once.
    #[test]
    fn a_stopped_service_refuses_and_can_return() {
        let service = ExampleService::start("a", any_port()).unwrap();
        let address = service.address();
        ask(address, "ada", LONG).unwrap();

        drop(service);

        assert_eq!(
            ask(address, "ada", LONG).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
        let service = ExampleService::start("a", address).unwrap();
        ask(service.address(), "ada", LONG).unwrap();
    }
}
