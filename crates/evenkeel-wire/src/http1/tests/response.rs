//! Heads of answers.

use super::*;

/// Like that of requests: every beginning is incomplete, or refused as the whole is.
#[track_caller]
fn facts(bytes: &[u8], asked: Asked) -> Result<(String, usize), Refusal> {
    let parse = |bytes: &[u8]| {
        let mut slots = FieldSlots::new();
        match ResponseHead::parse(bytes, asked, &Limits::default(), &mut slots) {
            Parsed::Complete(head, end) => Parsed::Complete(format!("{head:?}"), end),
            Parsed::Incomplete => Parsed::Incomplete,
            Parsed::Refused(refusal) => Parsed::Refused(refusal),
        }
    };
    let whole = parse(bytes);
    for split in 0..bytes.len() {
        let part = parse(&bytes[..split]);
        assert!(
            part == Parsed::Incomplete || part == whole,
            "{split} of {}",
            bytes.escape_ascii()
        );
    }
    match whole {
        Parsed::Complete(facts, end) => Ok((facts, end)),
        Parsed::Refused(refusal) => Err(refusal),
        Parsed::Incomplete => panic!("incomplete: {}", bytes.escape_ascii()),
    }
}

#[track_caller]
fn read_answer<'h, 'b: 'h>(
    bytes: &'b [u8],
    asked: Asked,
    slots: &'h mut FieldSlots<'b>,
) -> ResponseHead<'h> {
    let facts = facts(bytes, asked);
    assert!(facts.is_ok(), "{facts:?}: {}", bytes.escape_ascii());
    match ResponseHead::parse(bytes, asked, &Limits::default(), slots) {
        Parsed::Complete(head, _) => head,
        other => panic!("{other:?}"),
    }
}

/// Each hostile answer of the policy, and the rule that it breaks. The client is told 502.
#[test]
fn an_answer_that_can_be_read_in_two_ways_is_refused() {
    let ok = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
    for (text, refusal) in [
        (
            "\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(),
            Refusal::StatusLine,
        ),
        ("ICY 200 OK\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/1.1  200 OK\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/1.1 200 O\0K\r\n\r\n".to_owned(), Refusal::StatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n".to_owned(), Refusal::Version),
        (
            "HTTP/1.1 200 OK\nX: y\r\n\r\n".to_owned(),
            Refusal::BareLineFeed,
        ),
        (
            "HTTP/1.1 200 OK\r\nX: y\n\r\n".to_owned(),
            Refusal::BareLineFeed,
        ),
        (ok("X: a\rb"), Refusal::BareCarriageReturn),
        (ok("X: a\r\n b"), Refusal::Folded),
        (ok("X : a"), Refusal::FieldName),
        (ok("X: a\0"), Refusal::FieldValue),
        (ok("Content-Length: 5, 5"), Refusal::Length),
        (
            ok("Content-Length: 5\r\nContent-Length: 6"),
            Refusal::LengthsDiffer,
        ),
        (
            ok("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            Refusal::LengthAndChunked,
        ),
        (
            ok("Transfer-Encoding: gzip, chunked"),
            Refusal::TransferEncoding,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            Refusal::TransferEncodingTooOld,
        ),
    ] {
        assert_eq!(
            facts(text.as_bytes(), Asked::Other).unwrap_err(),
            refusal,
            "{text:?}"
        );
        assert_eq!(refusal.status(Message::Response), 502);
    }
}

/// Where the body ends depends on the status and on what was asked.
#[test]
fn a_body_ends_as_status_and_method_have_it() {
    for (status, lines, asked, framing) in [
        (
            200,
            "Content-Length: 5",
            Asked::Other,
            BodyFraming::Length(5),
        ),
        (200, "Content-Length: 0", Asked::Other, BodyFraming::None),
        (
            200,
            "Transfer-Encoding: chunked",
            Asked::Other,
            BodyFraming::Chunked,
        ),
        (200, "X: y", Asked::Other, BodyFraming::UntilClose),
        (200, "Content-Length: 5", Asked::Head, BodyFraming::None),
        (200, "X: y", Asked::Head, BodyFraming::None),
        (200, "X: y", Asked::Connect, BodyFraming::None),
        (
            403,
            "Content-Length: 5",
            Asked::Connect,
            BodyFraming::Length(5),
        ),
        (100, "X: y", Asked::Other, BodyFraming::None),
        (101, "X: y", Asked::Other, BodyFraming::None),
        (103, "X: y", Asked::Other, BodyFraming::None),
        (204, "X: y", Asked::Other, BodyFraming::None),
        (304, "Content-Length: 5", Asked::Other, BodyFraming::None),
    ] {
        let bytes = format!("HTTP/1.1 {status} \r\n{lines}\r\n\r\n").into_bytes();
        let mut slots = FieldSlots::new();
        let head = read_answer(&bytes, asked, &mut slots);
        assert_eq!(head.framing, framing, "{status} {lines} {asked:?}");
        assert_eq!(head.is_interim(), matches!(status, 100 | 103));
        assert_eq!(
            head.begins_tunnel(),
            status == 101 || (asked == Asked::Connect && status == 200)
        );
    }
}

/// A connection on which more could come than was announced is not used again.
#[test]
fn an_endpoint_cannot_poison_the_next_exchange() {
    for (line, lines, persistence) in [
        ("HTTP/1.1 200", "Content-Length: 5", Persistence::KeepAlive),
        (
            "HTTP/1.1 200",
            "Content-Length: 5\r\nConnection: close",
            Persistence::Close,
        ),
        ("HTTP/1.1 200", "X: y", Persistence::Close),
        ("HTTP/1.1 204", "Content-Length: 0", Persistence::KeepAlive),
        ("HTTP/1.1 204", "Content-Length: 5", Persistence::Close),
        (
            "HTTP/1.1 204",
            "Transfer-Encoding: chunked",
            Persistence::Close,
        ),
        ("HTTP/1.1 100", "Content-Length: 5", Persistence::Close),
        ("HTTP/1.1 304", "Content-Length: 5", Persistence::KeepAlive),
        ("HTTP/1.0 200", "Content-Length: 5", Persistence::Close),
        (
            "HTTP/1.0 200",
            "Content-Length: 5\r\nConnection: keep-alive",
            Persistence::KeepAlive,
        ),
    ] {
        let bytes = format!("{line} OK\r\n{lines}\r\n\r\n").into_bytes();
        let mut slots = FieldSlots::new();
        let head = read_answer(&bytes, Asked::Other, &mut slots);
        assert_eq!(head.persistence(), persistence, "{line} {lines}");
    }
}

/// A reason is passed on as it was written; it may be missing, with or without its space.
#[test]
fn a_reason_is_kept() {
    for (line, reason) in [
        ("HTTP/1.1 200 OK", "OK"),
        ("HTTP/1.1 200 ", ""),
        ("HTTP/1.1 200", ""),
        (
            "HTTP/1.1 404 Nicht\tgefunden \u{fc}",
            "Nicht\tgefunden \u{fc}",
        ),
    ] {
        let bytes = format!("{line}\r\n\r\n").into_bytes();
        let mut slots = FieldSlots::new();
        assert_eq!(
            read_answer(&bytes, Asked::Other, &mut slots).reason,
            reason.as_bytes()
        );
    }
}

/// Nobody sends an answer of such a size by mistake.
#[test]
fn an_answer_is_as_large_as_the_limits_say() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(20_000));
    assert_eq!(
        facts(long.as_bytes(), Asked::Other).unwrap_err(),
        Refusal::HeadTooLarge
    );
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(101));
    assert_eq!(
        facts(many.as_bytes(), Asked::Other).unwrap_err(),
        Refusal::TooManyFields
    );
}
