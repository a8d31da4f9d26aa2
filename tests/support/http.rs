//! The little of HTTP that a probe speaks: one request, one answer, the connection closed.

use std::net::SocketAddr;

use super::client;

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path)
}

pub(crate) fn request(address: SocketAddr, method: &str, path: &str) -> Answer {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut stream = client::connect(address);
    std::io::Write::write_all(&mut stream, text.as_bytes()).expect("it can be written");
    let answer = client::read_to_end(&mut stream).expect("an answer, and an end");
    read(&String::from_utf8(answer).expect("the answer is text"))
}

fn read(answer: &str) -> Answer {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status in {head}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
