//! Messages to be sent: heads that are rendered once, in which only the exchange's number changes, and bodies out of the pattern.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::ops::Range;

use crate::pattern::{PIECE_MAX, Pattern};
use crate::plan::Request;

/// The digits of an exchange's number, hexadecimal.
pub(super) const NUMBER_LENGTH: usize = 16;

/// Where the number is to stand.
const NUMBER: &str = "<exchange-number>";

/// Bodies of neighbouring exchanges begin so far apart in the pattern.
const STRIDE: u64 = 4099;

/// Where the body of an exchange begins in the pattern.
pub(super) const fn place(number: u64) -> u64 {
    number.wrapping_mul(STRIDE)
}

/// A message without its exchange's number.
pub(super) struct Template {
    head: Vec<u8>,
    number: Range<usize>,
    body: u64,
}

impl Template {
    /// What a client asks, with the few headers that many clients send.
    pub(super) fn request(request: Request, answer_bytes: u64) -> Self {
        let (method, body) = match request {
            Request::Get => ("GET", 0),
            Request::Post(body) => ("POST", body),
        };
        let content = match request {
            Request::Get => String::new(),
            Request::Post(body) => {
                format!("Content-Type: application/octet-stream\r\nContent-Length: {body}\r\n")
            }
        };
        Self::new(
            &format!(
                "{method} /{answer_bytes}/{NUMBER} HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: evenkeel-bench/1\r\n\
                 Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nCookie: session=4f1c2a9be07d\r\n{content}\r\n"
            ),
            body,
        )
    }

    /// What an endpoint answers.
    pub(super) fn answer(body: u64) -> Self {
        Self::new(
            &format!(
                "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: \
                 application/octet-stream\r\nETag: \"{NUMBER}\"\r\nContent-Length: {body}\r\n\r\n"
            ),
            body,
        )
    }

    fn new(head: &str, body: u64) -> Self {
        let start = head.find(NUMBER).unwrap_or(0);
        let head = head.replace(NUMBER, &"0".repeat(NUMBER_LENGTH));
        Self {
            head: head.into_bytes(),
            number: start..start + NUMBER_LENGTH,
            body,
        }
    }

    /// Bytes of its body.
    pub(super) const fn body(&self) -> u64 {
        self.body
    }

    /// Sends as much as the stream takes.
    pub(super) fn send(
        &mut self,
        outgoing: &mut Outgoing,
        pattern: &Pattern,
        stream: &mut impl Write,
    ) -> io::Result<Sent> {
        self.write_number(outgoing.number);
        let whole = self.head.len() as u64 + self.body;
        while outgoing.sent < whole {
            match stream.write_vectored(&self.rest(outgoing, pattern)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => outgoing.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Sent::Partly),
                Err(error) => return Err(error),
            }
        }
        Ok(Sent::Whole)
    }

    fn write_number(&mut self, number: u64) {
        let digits = self.head[self.number.clone()].iter_mut().rev();
        for (position, digit) in digits.enumerate() {
            let value = (number >> (4 * position)) & 0xf;
            *digit = b"0123456789abcdef"[usize::try_from(value).unwrap_or(0)];
        }
    }

    /// What is left of the head, and the next piece of the body.
    fn rest<'a>(&'a self, outgoing: &Outgoing, pattern: &'a Pattern) -> [IoSlice<'a>; 2] {
        let head = usize::try_from(outgoing.sent)
            .map_or(self.head.len(), |sent| sent.min(self.head.len()));
        let started = outgoing.sent - head as u64;
        let left = self.body - started;
        let length = usize::try_from(left).map_or(PIECE_MAX, |left| left.min(PIECE_MAX));
        let body = &pattern.piece(place(outgoing.number).wrapping_add(started))[..length];
        [IoSlice::new(&self.head[head..]), IoSlice::new(body)]
    }
}

/// A message under way, and how far it has got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    number: u64,
    sent: u64,
}

impl Outgoing {
    pub(super) const fn new(number: u64) -> Self {
        Self { number, sent: 0 }
    }
}

/// How much of a message the stream has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Whole,
    Partly,
}
