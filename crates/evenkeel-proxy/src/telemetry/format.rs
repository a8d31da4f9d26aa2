//! How a record of a session or an exchange looks as a line of the access log. Bytes only: where they go is not decided here.
//!
//! Every name that a user or a client chose is escaped, so that no name can end a line or forge a field.

use std::fmt::{self, Display};
use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::access_log::Logged;
use super::record::{ExchangeRecord, RequestLine, SessionRecord};
use crate::settings::LogFormat;

/// Appends one line, with its line feed.
pub(super) fn append_line(format: LogFormat, ended: Timestamp, record: &Logged, out: &mut Vec<u8>) {
    let start = out.len();
    let written = match format {
        LogFormat::Text => append_text(ended, record, out),
        LogFormat::Json => append_json(ended, record, out),
    };
    // A `Vec` takes every write and no field can fail to be formatted; if one did, half a line would be worse than none.
    if written.is_err() {
        out.truncate(start);
    }
}

fn append_text(ended: Timestamp, record: &Logged, out: &mut Vec<u8>) -> std::io::Result<()> {
    match record {
        Logged::Session(session) => append_session(ended, session, out)?,
        Logged::Exchange(exchange) => append_exchange(ended, exchange, out)?,
    }
    out.write_all(b"\n")
}

/// A session's words, and after them what only an exchange has.
fn append_exchange(
    ended: Timestamp,
    record: &ExchangeRecord,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    append_session(ended, &record.session, out)?;
    let request = record.request.as_ref();
    write!(
        out,
        " method={} host={} target={} status={}",
        OrDash(request.map(|request| Word(request.method()))),
        OrDash(request.map(|request| Word(request.host()))),
        OrDash(request.map(|request| Word(request.target()))),
        OrDash(record.status),
    )
}

fn append_session(
    ended: Timestamp,
    record: &SessionRecord,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    write!(
        out,
        "time={ended:.6} listener={} client={} peer={} cluster={} endpoint={} attempts={} bytes_up={} bytes_down={} \
         queued_ms={} connect_ms={} first_byte_ms={} total_ms={} reason={}",
        Word(&record.listener),
        record.client,
        OrDash(record.peer),
        OrDash(record.cluster.as_deref().map(Word)),
        OrDash(record.endpoint.as_deref().map(Word)),
        record.attempts,
        record.bytes_up,
        record.bytes_down,
        Millis(record.queued),
        OrDash(record.connect.map(Millis)),
        OrDash(record.first_byte.map(Millis)),
        Millis(record.total),
        record.reason,
    )
}

fn append_json(ended: Timestamp, record: &Logged, out: &mut Vec<u8>) -> std::io::Result<()> {
    match record {
        Logged::Session(session) => {
            serde_json::to_writer(&mut *out, &JsonLine::new(ended, session))?;
        }
        Logged::Exchange(exchange) => {
            serde_json::to_writer(&mut *out, &JsonExchange::new(ended, exchange))?;
        }
    }
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct JsonExchange<'a> {
    #[serde(flatten)]
    session: JsonLine<'a>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    target: Option<&'a str>,
    status: Option<u16>,
}

impl<'a> JsonExchange<'a> {
    fn new(ended: Timestamp, record: &'a ExchangeRecord) -> Self {
        let request = record.request.as_ref();
        Self {
            session: JsonLine::new(ended, &record.session),
            method: request.map(RequestLine::method),
            host: request.map(RequestLine::host),
            target: request.map(RequestLine::target),
            status: record.status,
        }
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    time: String,
    listener: &'a str,
    client: String,
    peer: Option<String>,
    cluster: Option<&'a str>,
    endpoint: Option<&'a str>,
    attempts: u32,
    bytes_up: u64,
    bytes_down: u64,
    queued_ms: f64,
    connect_ms: Option<f64>,
    first_byte_ms: Option<f64>,
    total_ms: f64,
    reason: &'static str,
}

impl<'a> JsonLine<'a> {
    fn new(ended: Timestamp, record: &'a SessionRecord) -> Self {
        Self {
            time: format!("{ended:.6}"),
            listener: &record.listener,
            client: record.client.to_string(),
            peer: record.peer.map(|peer| peer.to_string()),
            cluster: record.cluster.as_deref(),
            endpoint: record.endpoint.as_deref(),
            attempts: record.attempts,
            bytes_up: record.bytes_up,
            bytes_down: record.bytes_down,
            queued_ms: millis(record.queued),
            connect_ms: record.connect.map(millis),
            first_byte_ms: record.first_byte.map(millis),
            total_ms: millis(record.total),
            reason: record.reason.code(),
        }
    }
}

/// Milliseconds, cut to whole microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact below 2^53 µs, which is 285 years"
)]
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// A duration as milliseconds with three decimals.
struct Millis(Duration);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

/// The value, or `-` where there is none.
struct OrDash<T>(Option<T>);

impl<T: Display> Display for OrDash<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

/// A name as one word: bare when it is harmless, otherwise in double quotes with escapes.
struct Word<'a>(&'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare(self.0) {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '\'' => f.write_str("'")?,
                _ => c.escape_debug().fmt(f)?,
            }
        }
        f.write_str("\"")
    }
}

/// Whether a name needs no quotes. A lone `-` does: bare, it would read as "none".
fn is_bare(name: &str) -> bool {
    !name.is_empty()
        && name != "-"
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.:/[]@+%~".contains(c))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_reactor::Origin;

    use super::*;
    use crate::telemetry::reason::Reason;

    fn served() -> SessionRecord {
        SessionRecord {
            listener: Arc::from("mysql"),
            cluster: Some(Arc::from("databases")),
            client: Origin::Ip("192.0.2.7:50312".parse().unwrap()),
            peer: None,
            endpoint: Some(Arc::from("db1")),
            attempts: 2,
            bytes_up: 1_204,
            bytes_down: 88_213,
            queued: Duration::ZERO,
            connect: Some(Duration::from_micros(2_031)),
            first_byte: Some(Duration::from_micros(3_500)),
            total: Duration::from_nanos(1_234_567_899),
            reason: Reason::Done,
        }
    }

    fn line(format: LogFormat, record: &SessionRecord) -> String {
        logged(format, record.clone().into())
    }

    fn logged(format: LogFormat, record: Logged) -> String {
        let ended: Timestamp = "2026-03-01T08:30:00.5Z".parse().unwrap();
        let mut out = Vec::new();
        append_line(format, ended, &record, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn exchange(target: &str) -> Logged {
        Logged::Exchange(Box::new(ExchangeRecord {
            session: served(),
            request: Some(RequestLine::new("GET", "shop.example:8080", (target, None))),
            status: Some(200),
        }))
    }

    /// An exchange is a session's line and four words more, whatever its target is.
    #[test]
    fn an_exchange_is_a_line_of_its_own() {
        let text = logged(LogFormat::Text, exchange("/a?b=\" reason=x\n"));
        assert!(
            text.ends_with(
                " reason=done method=GET host=shop.example:8080 target=\"/a?b=\\\" reason=x\\n\" status=200\n"
            ),
            "{text}"
        );
        let json = logged(LogFormat::Json, exchange("/a?b"));
        assert!(json.contains(r#""reason":"done","method":"GET","host":"shop.example:8080","target":"/a?b","status":200}"#), "{json}");
    }

    /// The text form, word for word: people's scripts depend on it.
    #[test]
    fn a_served_session_as_text() {
        assert_eq!(
            line(LogFormat::Text, &served()),
            "time=2026-03-01T08:30:00.500000Z listener=mysql client=192.0.2.7:50312 peer=- cluster=databases endpoint=db1 \
             attempts=2 bytes_up=1204 bytes_down=88213 queued_ms=0.000 connect_ms=2.031 first_byte_ms=3.500 \
             total_ms=1234.567 reason=done\n"
        );
    }

    /// The JSON form, byte for byte.
    #[test]
    fn a_served_session_as_json() {
        assert_eq!(
            line(LogFormat::Json, &served()),
            concat!(
                r#"{"time":"2026-03-01T08:30:00.500000Z","listener":"mysql","client":"192.0.2.7:50312","peer":null,"#,
                r#""cluster":"databases","endpoint":"db1","attempts":2,"bytes_up":1204,"bytes_down":88213,"#,
                r#""queued_ms":0.0,"connect_ms":2.031,"first_byte_ms":3.5,"total_ms":1234.567,"reason":"done"}"#,
                "\n"
            )
        );
    }

    /// The documentation explains every field of a line.
    #[test]
    fn the_documentation_explains_every_field() {
        let operations = include_str!("../../../../docs/operations.md");
        let (_, logs) = operations.split_once("## Logs").unwrap();

        for word in logged(LogFormat::Text, exchange("/")).split_whitespace() {
            let (field, _) = word.split_once('=').unwrap();
            assert!(logs.contains(&format!("`{field}`")), "{field}");
        }
    }

    /// What never happened is a dash in text and null in JSON, not a zero.
    #[test]
    fn a_session_that_found_no_endpoint() {
        let record = SessionRecord {
            endpoint: None,
            attempts: 0,
            connect: None,
            first_byte: None,
            reason: Reason::NoEndpoint,
            ..served()
        };

        let text = line(LogFormat::Text, &record);
        assert!(text.contains(" endpoint=- attempts=0 "), "{text}");
        assert!(text.contains(" connect_ms=- first_byte_ms=- "), "{text}");
        let json = line(LogFormat::Json, &record);
        assert!(json.contains(r#""endpoint":null"#), "{json}");
        assert!(
            json.contains(r#""connect_ms":null,"first_byte_ms":null"#),
            "{json}"
        );
    }

    /// A name with a line feed, quotes and `=` stays one word on one line, and no field after it can be forged.
    #[test]
    fn a_hostile_name_cannot_break_out() {
        let record = SessionRecord {
            endpoint: Some(Arc::from("a\" reason=done\n\r\u{1b}[31m\u{2028}\\'")),
            ..served()
        };

        let text = line(LogFormat::Text, &record);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(
            text.contains(r#" endpoint="a\" reason=done\n\r\u{1b}[31m\u{2028}\\'" attempts="#),
            "{text}"
        );
        let json = line(LogFormat::Json, &record);
        assert_eq!(json.matches('\n').count(), 1);
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(parsed["endpoint"], record.endpoint.as_deref().unwrap());
    }

    /// An endpoint that is really called `-`, or nothing at all, is told apart from no endpoint.
    #[test]
    fn names_that_look_like_nothing_are_quoted() {
        assert_eq!(Word("-").to_string(), r#""-""#);
        assert_eq!(Word("").to_string(), r#""""#);
        assert_eq!(Word("10.0.0.1:3306").to_string(), "10.0.0.1:3306");
        assert_eq!(Word("größe").to_string(), "größe");
    }
}
