//! Answers that evenkeel gives itself, when no endpoint does.

use evenkeel_wire::http1::{self, Asked, FieldEdit, FieldName, FieldValue, Form, Persistence};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::settings::ReasonHeader;
use crate::telemetry::reason::Reason;

/// What a client is told instead of an endpoint's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) reason: Reason,
}

/// In which shape an answer is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) asked: Asked,
    pub(super) reason: ReasonHeader,
    pub(super) persistence: Persistence,
}

impl Answer {
    pub(super) const fn new(status: u16, reason: Reason) -> Self {
        Self { status, reason }
    }

    /// Appends the whole answer.
    pub(super) fn write(self, shape: Shape, out: &mut Vec<u8>) {
        let date = date();
        let code = self.reason.code();
        let fields = [
            field("Date", &date),
            field("Cache-Control", "no-store"),
            field("X-Evenkeel-Reason", code),
        ];
        let shown = match shape.reason {
            ReasonHeader::Sent => &fields[..],
            ReasonHeader::Left => &fields[..2],
        };
        http1::Answer {
            status: self.status,
            code,
            detail: self.reason.meaning(),
            form: shape.form,
            persistence: shape.persistence,
            asked: shape.asked,
            fields: shown,
        }
        .write(out);
    }
}

fn field<'a>(name: &'a str, value: &'a str) -> FieldEdit<'a> {
    match (FieldName::new(name), FieldValue::new(value.as_bytes())) {
        (Some(name), Some(value)) => FieldEdit::Add(name, value),
        _ => unreachable!("a name and a value of our own"),
    }
}

/// Now, as HTTP writes it.
fn date() -> String {
    let printer = DateTimePrinter::new();
    printer
        .timestamp_to_rfc9110_string(&Timestamp::now())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reason: ReasonHeader) -> String {
        let mut out = Vec::new();
        let shape = Shape {
            form: Form::Text,
            asked: Asked::Other,
            reason,
            persistence: Persistence::Close,
        };
        Answer::new(502, Reason::ConnectRefused).write(shape, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The reason is in a header and in the body; the header can be left out.
    #[test]
    fn an_answer_tells_its_reason() {
        let text = written(ReasonHeader::Sent);
        assert!(text.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{text}");
        assert!(
            text.contains("\r\nX-Evenkeel-Reason: connect_refused\r\n"),
            "{text}"
        );
        assert!(text.contains("\r\nDate: "), "{text}");
        assert!(text.ends_with("(connect_refused)\n"), "{text}");
        assert!(!written(ReasonHeader::Left).contains("X-Evenkeel"));
    }
}
