//! Answers that evenkeel makes itself: a status, a code for programs, a sentence for people.

use super::forwarding::lists;
use super::write::{append_field, append_number, append_status};
use super::{Asked, FieldEdit, Fields, Known, Persistence};

/// An answer of evenkeel's own.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Three digits.
    pub status: u16,
    /// A word of a closed list.
    pub code: &'a str,
    /// What is wrong, in a sentence.
    pub detail: &'a str,
    /// In which form the client takes it.
    pub form: Form,
    /// What becomes of the client's connection.
    pub persistence: Persistence,
    /// What was asked: the answer to HEAD has no body.
    pub asked: Asked,
    /// Further headers; those that are removed are none.
    pub fields: &'a [FieldEdit<'a>],
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line of text.
    Text,
    /// RFC 9457: `application/problem+json`.
    Problem,
}

impl Form {
    /// What the client accepts: JSON only if it names it.
    pub fn accepted(fields: Fields<'_>) -> Self {
        let names_json = |value: &[u8]| {
            lists(value, b"application/problem+json") || lists(value, b"application/json")
        };
        if fields.of(Known::Accept).any(names_json) {
            Self::Problem
        } else {
            Self::Text
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Problem => "application/problem+json",
        }
    }
}

impl Answer<'_> {
    /// Appends the whole answer.
    pub fn write(&self, out: &mut Vec<u8>) {
        let body = self.body();
        append_status(out, self.status, reason_phrase(self.status).as_bytes());
        append_field(out, "Content-Type", self.form.content_type().as_bytes());
        out.extend_from_slice(b"Content-Length: ");
        append_number(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
        let connection: &[u8] = match self.persistence {
            Persistence::Close => b"close",
            // A client of HTTP/1.0 has to be told.
            Persistence::KeepAlive => b"keep-alive",
        };
        append_field(out, "Connection", connection);
        super::write::append_edits(self.fields, out);
        out.extend_from_slice(b"\r\n");
        if self.asked != Asked::Head {
            out.extend_from_slice(body.as_bytes());
        }
    }

    fn body(&self) -> String {
        let (status, title) = (self.status, reason_phrase(self.status));
        match self.form {
            Form::Text => format!("{status} {title}: {} ({})\n", self.detail, self.code),
            Form::Problem => format!(
                "{{\"status\":{status},\"title\":\"{title}\",\"code\":\"{}\",\"detail\":\"{}\"}}\n",
                escaped(self.code),
                escaped(self.detail)
            ),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// What a status is called; empty for one that evenkeel never makes.
pub const fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
