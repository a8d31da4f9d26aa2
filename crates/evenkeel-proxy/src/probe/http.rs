//! The HTTP probe: one request, and the first line of its answer.

use evenkeel_core::units::Address;

use super::dialogue::Dialogue;
use super::verdict::{Verdict, quoted};
use crate::settings::{HttpCheck, HttpMethod, StatusRange};

/// The most bytes of a status line.
const STATUS_LINE_MAX: usize = 1024;
/// `HTTP/1.1 200`; what follows is for people.
const STATUS_BYTES: usize = 12;

pub(super) struct Http {
    outbound: Vec<u8>,
    heard: Vec<u8>,
    right: Vec<StatusRange>,
}

impl Http {
    pub(super) fn new(check: &HttpCheck, asked: &Address) -> Self {
        Self {
            outbound: request(check, asked).into_bytes(),
            heard: Vec::new(),
            right: check.status.clone(),
        }
    }

    fn judge(&self, status: u16) -> Verdict {
        if self.right.iter().any(|range| range.contains(status)) {
            Verdict::Passed
        } else {
            Verdict::failed(format_args!("status {status}"))
        }
    }

    fn not_http(&self) -> Verdict {
        Verdict::failed(format_args!(
            "the answer is not HTTP/1: {}",
            quoted(&self.heard)
        ))
    }
}

fn request(check: &HttpCheck, asked: &Address) -> String {
    let method = match check.method {
        HttpMethod::Get => "GET",
        HttpMethod::Head => "HEAD",
    };
    let host = match (&check.host, asked) {
        (Some(host), _) => host.to_string(),
        (None, Address::Ip(address)) => address.to_string(),
        (None, Address::Unix(_)) => "localhost".to_owned(),
    };
    format!(
        "{method} {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: evenkeel\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        check.path
    )
}

impl Dialogue for Http {
    fn take_outbound(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbound)
    }

    fn hear(&mut self, bytes: &[u8]) -> Option<Verdict> {
        let room = STATUS_LINE_MAX - self.heard.len();
        self.heard
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        let line_end = self.heard.iter().position(|byte| *byte == b'\n');
        let line = &self.heard[..line_end.unwrap_or(self.heard.len())];
        match (could_be_status_line(line), line_end) {
            (false, _) => Some(self.not_http()),
            (true, Some(_)) => {
                Some(status_of(line).map_or_else(|| self.not_http(), |status| self.judge(status)))
            }
            (true, None) if self.heard.len() == STATUS_LINE_MAX => Some(self.not_http()),
            (true, None) => None,
        }
    }

    fn hear_end(&mut self) -> Verdict {
        if self.heard.is_empty() {
            Verdict::failed("the connection was closed without an answer")
        } else {
            self.not_http()
        }
    }

    fn waiting_for(&self) -> &'static str {
        "answer"
    }
}

/// Whether each byte so far is one that a status line has there.
fn could_be_status_line(line: &[u8]) -> bool {
    line.iter().zip(0..).all(|(byte, place)| match place {
        0..=6 => b"HTTP/1."[place] == *byte,
        7 | 9..=11 => byte.is_ascii_digit(),
        8 => *byte == b' ',
        12 => matches!(byte, b' ' | b'\r'),
        _ => true,
    })
}

/// The code of a line that could be a status line.
fn status_of(line: &[u8]) -> Option<u16> {
    let code = line.get(9..STATUS_BYTES)?;
    let status = std::str::from_utf8(code).ok()?.parse().ok()?;
    (100..600).contains(&status).then_some(status)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::judged;
    use super::*;

    fn asked() -> Address {
        Address::Ip("127.0.0.1:8080".parse().unwrap())
    }

    fn check(first: u16, last: u16) -> HttpCheck {
        HttpCheck {
            method: HttpMethod::Get,
            path: Arc::from("/health"),
            host: None,
            status: vec![StatusRange { first, last }],
        }
    }

    fn answered(answer: &[u8]) -> Verdict {
        judged(|| Box::new(Http::new(&check(200, 399), &asked())), answer)
    }

    /// The request, as it goes out.
    #[test]
    fn the_request_names_the_host_and_keeps_nothing_open() {
        let request = Http::new(&check(200, 200), &asked()).take_outbound();
        let text = String::from_utf8(request).unwrap();
        assert!(text.starts_with("GET /health HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
        assert!(text.ends_with("Connection: close\r\n\r\n"));
    }

    /// The code alone decides, in whichever version and with whatever words.
    #[test]
    fn the_status_decides() {
        let passes = [
            &b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nbody"[..],
            b"HTTP/1.0 399\r\n",
            b"HTTP/1.1 204 \r\n",
        ];
        for answer in passes {
            assert_eq!(
                answered(answer),
                Verdict::Passed,
                "{}",
                answer.escape_ascii()
            );
        }
        assert_eq!(
            answered(b"HTTP/1.1 503 Service Unavailable\r\n"),
            Verdict::failed("status 503")
        );
    }

    /// Another protocol, half a line, nothing, a line without end: each a failure that says what was heard.
    #[test]
    fn what_is_not_http_fails() {
        let reason = |answer: &[u8]| answered(answer).reason().unwrap().to_string();
        assert!(reason(b"SSH-2.0-OpenSSH_9.2\r\n").contains("SSH"));
        assert!(reason(b"HTTP/1.1 20x OK\r\n").contains("not HTTP/1"));
        assert!(reason(b"HTTP/1.1 999 OK\r\n").contains("not HTTP/1"));
        assert!(reason(b"HTTP/1.1\r\n").contains("not HTTP/1"));
        assert!(reason(b"HTTP/1.1 200").contains("not HTTP/1"));
        assert!(reason(b"").contains("without an answer"));
        let endless = [&b"HTTP/1.1 200 "[..], &[b'a'; 2 * STATUS_LINE_MAX]].concat();
        assert!(reason(&endless).contains("not HTTP/1"));
    }
}
