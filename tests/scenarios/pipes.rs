//! Splicing where the kernel gives few pipes: a user without privilege has so many pages of them, and no more.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use tempfile::TempDir;

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::service::Service;
use crate::support::{binary, client, ports, process, stream, wait};

/// Nobody else's: what a user may have of pipes is counted over all of its processes.
const USER: &str = "61173";
/// As many pages as the kernel allows a user unless it is told otherwise.
const PIPE_PAGES: u64 = 16_384;
/// More than there are pages for: 64 pipes of 256 pages are all.
const READERS: usize = 100;
const BYTES: usize = 8 << 20;
/// What a reader takes before it stalls: by then its stream is spliced.
const FIRST_BYTES: usize = 2 << 20;
/// A stalled reader's own buffer, so that the pipe before it fills.
const RECEIVE_BUFFER: usize = 64 << 10;

/// Runs a command as that user, who holds one small pipe already: a named one. So the pages do not come out even, and the last
/// pipes are smaller ones.
const HOLDING_A_PIPE: &str = r#"mkfifo "$0" && exec 9<>"$0" && exec "$@""#;

/// The words that start a command as that user, each of them.
fn as_user<'w>(rest: &[&'w str]) -> Vec<&'w str> {
    let words = ["setpriv", "--reuid", USER, "--regid", USER];
    let more = ["--clear-groups", "--inh-caps=-all", "--pdeathsig", "KILL"];
    [&words[..], &more[..], &["--"], rest].concat()
}

/// Why this cannot be tried here, if it cannot.
fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("to become another user takes root".to_owned());
    }
    let limit = fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").unwrap_or_default();
    if limit.trim().parse() != Ok(PIPE_PAGES) {
        return Some(format!("fs.pipe-user-pages-soft is {limit:?}"));
    }
    let program = binary::evenkeel().to_str()?;
    // By way of a shell, which has no privilege left: setpriv itself may still have what opens every folder.
    let words = as_user(&["sh", "-c", "exec \"$0\" --version", program]);
    let done = process::command(words[0]).args(&words[1..]).output();
    let may_run = done.is_ok_and(|output| output.status.success());
    (!may_run).then(|| format!("user {USER} may not run {program}"))
}

fn start(front: SocketAddr, endpoint: &Service, home: &TempDir) -> Evenkeel {
    let user = USER.parse().expect("a number");
    std::os::unix::fs::chown(home.path(), Some(user), Some(user)).expect("we are root");
    let pipe = home.path().join("pipe");
    let pipe = pipe.to_str().expect("it is text");
    Launch::new(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "bulk"
        [cluster.bulk]
        endpoints = ["{}"]
        "#,
        endpoint.address()
    ))
    .owned_by(user)
    .under(&as_user(&["sh", "-c", HOLDING_A_PIPE, pipe]))
    .start()
}

/// A client that has read a little of its stream, and no more until it is told to.
struct Reader {
    stream: TcpStream,
    begun: Vec<u8>,
}

impl Reader {
    fn stalled(front: SocketAddr, seed: usize) -> Self {
        let mut stream = client::connect(front);
        set_socket_recv_buffer_size(&stream, RECEIVE_BUFFER).expect("it is open");
        let seed = u8::try_from(seed).expect("there are few");
        std::io::Write::write_all(&mut stream, &[seed]).expect("it is connected");
        let mut begun = vec![0; FIRST_BYTES];
        stream.read_exact(&mut begun).expect("it has begun");
        Self { stream, begun }
    }

    fn finish(self, seed: usize) {
        let mut all = self.begun.chain(self.stream);
        let (count, end) = stream::check(&mut all, seed as u64);
        end.expect("an orderly end");
        assert_eq!(count, BYTES);
    }
}

/// A hundred readers that stall at once as a user without privilege: some get pipes, a few get smaller ones, the others are
/// copied for, which is counted; and every stream is whole.
#[test]
fn out_of_pipes_streams_are_copied() {
    if let Some(why) = obstacle() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let endpoint = Service::start(|mut stream, _| {
        let mut seed = [0];
        if stream.read_exact(&mut seed).is_ok() {
            let _ = stream::write(&mut stream, seed[0].into(), BYTES);
        }
    });
    let (front, home) = (ports::free(), TempDir::new().expect("a directory"));
    let evenkeel = start(front, &endpoint, &home);
    let readers: Vec<Reader> = (0..READERS)
        .map(|seed| Reader::stalled(front, seed))
        .collect();

    let splice = wait::until("the kernel gives no more pipes", || {
        let splice = evenkeel.status()["splice"].clone();
        let count = |field: &str| splice[field].as_u64().expect("a number");
        let none_is_left = count("refused") > 0 && count("smaller") > 0;
        none_is_left.then_some(splice)
    });
    assert_eq!(splice["over_budget"], 0, "{splice}");

    std::thread::scope(|scope| {
        for (seed, reader) in readers.into_iter().enumerate() {
            scope.spawn(move || reader.finish(seed));
        }
    });
    assert!(
        evenkeel
            .reasons(READERS)
            .iter()
            .all(|reason| reason == "done")
    );
}
