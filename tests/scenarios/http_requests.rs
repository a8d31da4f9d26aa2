//! HTTP through the real program: curl and nginx at its sides, reloads while requests come, endpoints that close as they like.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::nginx::Nginx;
use crate::support::process::Signal;
use crate::support::service::{Service, echo};
use crate::support::{client, ports};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn config(front: SocketAddr, endpoints: &[SocketAddr], weight: usize) -> String {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|address| format!("{{ address = \"{address}\", weight = {weight} }}"))
        .collect();
    format!(
        "[listener.web]\nbind = \"{front}\"\nprotocol = \"http\"\nto = \"web\"\n\
         [cluster.web]\nendpoints = [{}]\n",
        endpoints.join(", ")
    )
}

fn curl(words: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(words)
        .output()
        .expect("curl is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The head of a request and its body, or `None` at the end of the stream.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let begin = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[begin..].trim();
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(head)
}

/// Asks for a file on an open connection, and reads the answer.
fn get(stream: &mut TcpStream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    client::expect(stream, HELLO);
}

/// curl gets nginx's files, several over one connection, and each is a line of the access log.
#[test]
fn curl_gets_what_nginx_serves() {
    let nginx = Nginx::start();
    nginx.add_file("index.txt");
    let front = ports::free();
    let evenkeel = Evenkeel::start(config(front, &[nginx.address], 1));
    let url = format!("http://{front}/index.txt");

    assert_eq!(curl(&[&url, &url]), "here\nhere\n");
    let missing = format!("http://{front}/missing");
    let status = curl(&[
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code} %{num_connects}",
        &missing,
    ]);
    assert_eq!(status, "404 1");

    let lines = evenkeel.sessions(3);
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["target"].as_str().unwrap(),
                line["status"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [("/index.txt", 200), ("/index.txt", 200), ("/missing", 404)]
    );
}

/// Endpoints that close kept connections at random, and reloads all the while: no GET fails, and no POST arrives twice.
#[test]
fn no_request_is_lost_and_no_post_sent_twice() {
    const RELOADS: usize = 20;
    let posts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&posts);
    let closing = Service::start(move |stream, number| {
        let mut random = numbers(number);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while let Some(head) = read_request(&mut reader) {
            counter.fetch_add(usize::from(head.starts_with("POST")), Ordering::SeqCst);
            if stream.write_all(HELLO).is_err() || random().is_multiple_of(4) {
                return;
            }
        }
    });
    let front = ports::free();
    let evenkeel = Evenkeel::start(config(front, &[closing.address()], 1));
    let stop = Arc::new(AtomicBool::new(false));
    let askers: Vec<_> = (0..4)
        .map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut stream = client::connect(front);
                let mut asked = 0;
                while !stop.load(Ordering::Relaxed) {
                    get(&mut stream);
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    let poster = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                let mut stream = client::connect(front);
                stream
                    .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
                    .unwrap();
                let mut answer = [0; 12];
                stream.read_exact(&mut answer).unwrap();
                sent += 1;
            }
            sent
        })
    };

    for number in 1..=RELOADS {
        evenkeel.reloaded(&config(front, &[closing.address()], 1 + number % 2));
    }
    stop.store(true, Ordering::Relaxed);

    let asked: usize = askers.into_iter().map(|asker| asker.join().unwrap()).sum();
    assert!(asked > 0);
    let sent: usize = poster.join().unwrap();
    let arrived = posts.load(Ordering::SeqCst);
    assert!(arrived <= sent, "{arrived} of {sent}");
}

/// A small generator, seeded by a connection's number: the test is the same each time.
fn numbers(seed: usize) -> impl FnMut() -> u64 {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    }
}

/// A connection that has gone over to another protocol echoes across reloads, and ends at the stop deadline.
#[test]
fn a_tunnel_outlives_reloads_and_ends_with_the_process() {
    let service = Service::start(|stream, _| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        read_request(&mut reader);
        let mut writer = stream.try_clone().unwrap();
        writer
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            .unwrap();
        echo(stream);
    });
    let front = ports::free();
    let mut evenkeel = Launch::new(config(front, &[service.address()], 1))
        .process("workers = 2\nstop_deadline = \"1s\"")
        .start();
    let mut stream = client::connect(front);
    stream
        .write_all(
            b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )
        .unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head = read_request(&mut reader).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");

    for number in 1..=20 {
        evenkeel.reloaded(&config(front, &[service.address()], 1 + number % 2));
        client::echo(&mut stream, b"still here");
    }
    evenkeel.process().signal(Signal::TERM);

    let mut rest = [0; 1];
    assert!(!matches!(stream.read(&mut rest), Ok(1)));
}
