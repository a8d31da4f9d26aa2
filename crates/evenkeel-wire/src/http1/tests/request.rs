//! Heads of requests.

use super::*;

/// Each hostile request of the policy, and the rule that it breaks.
#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let first_line = |line: &str| format!("{line}\r\nHost: a\r\n\r\n").into_bytes();
    for (bytes, refusal) in [
        (first_line("G(T / HTTP/1.1"), Refusal::Method),
        (first_line("GE\tT / HTTP/1.1"), Refusal::Method),
        (first_line("G\u{e9}T / HTTP/1.1"), Refusal::Method),
        (first_line(" / HTTP/1.1"), Refusal::Method),
        (
            first_line(&format!("{} / HTTP/1.1", "M".repeat(33))),
            Refusal::Method,
        ),
        (first_line("GET"), Refusal::Method),
        (first_line("GET /"), Refusal::RequestLine),
        (first_line("GET  / HTTP/1.1"), Refusal::RequestLine),
        (first_line("GET /  HTTP/1.1"), Refusal::RequestLine),
        (first_line("GET / HTTP/1.1 "), Refusal::RequestLine),
        (first_line("GET / http/1.1"), Refusal::RequestLine),
        (first_line("GET / HTTP/1.1x HTTP/1.1"), Refusal::RequestLine),
        (first_line("GET / HTTP/ 1.1"), Refusal::RequestLine),
        (first_line("GET /a b HTTP/1.1"), Refusal::RequestLine),
        (first_line("GET /a#b HTTP/1.1"), Refusal::Target),
        (first_line("GET /\u{1}a HTTP/1.1"), Refusal::Target),
        (first_line("GET /\0 HTTP/1.1"), Refusal::Target),
        (first_line("GET /\ta HTTP/1.1"), Refusal::Target),
        (first_line("GET /\u{7f} HTTP/1.1"), Refusal::Target),
        (first_line("GET /\u{e9} HTTP/1.1"), Refusal::Target),
        (first_line("GET a HTTP/1.1"), Refusal::Target),
        (first_line("GET * HTTP/1.1"), Refusal::Target),
        (first_line("GET a:80 HTTP/1.1"), Refusal::Target),
        (first_line("GET ftp://a/ HTTP/1.1"), Refusal::Target),
        (first_line("GET http:///a HTTP/1.1"), Refusal::Target),
        (first_line("GET http://user@a/ HTTP/1.1"), Refusal::Target),
        (first_line("GET http://a:b/ HTTP/1.1"), Refusal::Target),
        (first_line("CONNECT / HTTP/1.1"), Refusal::Target),
        (first_line("CONNECT a HTTP/1.1"), Refusal::Target),
        (first_line("CONNECT a:443 HTTP/1.1"), Refusal::ConnectMethod),
        (first_line("GET / HTTP/1.2"), Refusal::Version),
        (first_line("GET / HTTP/2.0"), Refusal::Version),
        (first_line("GET / HTTP/0.9"), Refusal::Version),
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            Refusal::Version,
        ),
        (
            b"GET / HTTP/1.1\nHost: a\r\n\r\n".to_vec(),
            Refusal::BareLineFeed,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\n\r\n".to_vec(),
            Refusal::BareLineFeed,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec(),
            Refusal::BareLineFeed,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n".to_vec(),
            Refusal::BareLineFeed,
        ),
        (
            b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            Refusal::BareLineFeed,
        ),
        (
            b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            Refusal::BareCarriageReturn,
        ),
        (
            b"GET / HTTP/1.1\rHost: a\r\n\r\n".to_vec(),
            Refusal::BareCarriageReturn,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n".to_vec(),
            Refusal::BareCarriageReturn,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n".to_vec(),
            Refusal::BareCarriageReturn,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\n\rX".to_vec(),
            Refusal::BareCarriageReturn,
        ),
        (
            b"GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_vec(),
            Refusal::Folded,
        ),
        (with("X: a\r\n b"), Refusal::Folded),
        (with("X: a\r\n\tb"), Refusal::Folded),
        (with("X : a"), Refusal::FieldName),
        (with("X\t: a"), Refusal::FieldName),
        (with("X"), Refusal::FieldName),
        (with(": a"), Refusal::FieldName),
        (with("X\0: a"), Refusal::FieldName),
        (with("X\u{e9}: a"), Refusal::FieldName),
        (with("X(: a"), Refusal::FieldName),
        (with("X: a\0b"), Refusal::FieldValue),
        (with("X: \u{b}chunked"), Refusal::FieldValue),
        (with("X: a\u{7f}"), Refusal::FieldValue),
        (with("X: \u{1b}[0m"), Refusal::FieldValue),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Refusal::HostMissing),
        (with("Host: a"), Refusal::HostRepeated),
        (with("hOST: b"), Refusal::HostRepeated),
        (
            b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n".to_vec(),
            Refusal::HostRepeated,
        ),
        (
            b"GET http://a/ HTTP/1.1\r\n\r\n".to_vec(),
            Refusal::HostMissing,
        ),
        (
            b"GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n".to_vec(),
            Refusal::Host,
        ),
        (
            with("Content-Length: 5\r\nContent-Length: 6"),
            Refusal::LengthsDiffer,
        ),
        (
            with("Content-Length: 5\r\nContent-Length: 05"),
            Refusal::LengthsDiffer,
        ),
        (
            with("Content-Length: 5\r\nContent-Length: x"),
            Refusal::Length,
        ),
        (with("Content-Length: 5, 5"), Refusal::Length),
        (with("Content-Length: 5,"), Refusal::Length),
        (with("Content-Length: +5"), Refusal::Length),
        (with("Content-Length: -5"), Refusal::Length),
        (with("Content-Length: 0x5"), Refusal::Length),
        (with("Content-Length: 5 5"), Refusal::Length),
        (with("Content-Length: 5.0"), Refusal::Length),
        (with("Content-Length:"), Refusal::Length),
        (
            with("Content-Length: 18446744073709551616"),
            Refusal::Length,
        ),
        (
            with("Transfer-Encoding: gzip, chunked"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: chunked, gzip"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: chunked, chunked"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: identity"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: xchunked"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: \"chunked\""),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: chunked;q=1"),
            Refusal::TransferEncoding,
        ),
        (
            with("Transfer-Encoding: chunked,"),
            Refusal::TransferEncoding,
        ),
        (with("Transfer-Encoding:"), Refusal::TransferEncoding),
        (
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
            Refusal::TransferEncodingTooOld,
        ),
        (
            with("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            Refusal::LengthAndChunked,
        ),
        (
            with("Transfer-Encoding: chunked\r\nContent-Length: 0"),
            Refusal::LengthAndChunked,
        ),
        (
            with(&format!("Connection: {}", "a,".repeat(33))),
            Refusal::TooManyOptions,
        ),
        (
            b"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            Refusal::LeadingLines,
        ),
    ] {
        assert_eq!(refused(&bytes), refusal, "{}", bytes.escape_ascii());
    }
}

/// A `Host` is a name, or an address in its one form, and perhaps a port.
#[test]
fn a_host_is_a_name_or_an_address() {
    for (value, name, port) in [
        ("a", "a", None),
        ("a.example:8080", "a.example", Some(8080)),
        ("a:", "a", None),
        ("", "", None),
        ("192.0.2.7:80", "192.0.2.7", Some(80)),
        ("[2001:db8::1]", "[2001:db8::1]", None),
        ("[::1]:65535", "[::1]", Some(65535)),
        ("a_b-c~%41", "a_b-c~%41", None),
    ] {
        let host = Host::parse(value.as_bytes()).unwrap();
        assert_eq!((host.text, host.name, host.port), (value, name, port));
    }
    for value in [
        "a b",
        "a,b",
        "a/b",
        "a?b",
        "a#b",
        "a@b",
        "a:b",
        "a:+80",
        "a:65536",
        "a:80:80",
        "::1",
        "[::1",
        "[a]",
        "[::1]a",
        "[::1]80",
        "[fe80::1%25lo]",
        "a\\b",
        "\u{e9}",
        "a\"",
        "<a>",
    ] {
        assert_eq!(Host::parse(value.as_bytes()), Err(Refusal::Host), "{value}");
    }
}

/// Every form of target, as it is routed by.
#[test]
fn a_target_says_path_query_and_host() {
    for (line, path, query, host) in [
        ("GET / HTTP/1.1", "/", None, "a"),
        ("GET /b/c?d=e?f HTTP/1.1", "/b/c", Some("d=e?f"), "a"),
        ("GET /? HTTP/1.1", "/", Some(""), "a"),
        ("GET //b HTTP/1.1", "//b", None, "a"),
        ("OPTIONS * HTTP/1.1", "*", None, "a"),
        ("GET http://b HTTP/1.1", "/", None, "b"),
        ("GET HTTPS://b:81?c HTTP/1.1", "/", Some("c"), "b:81"),
        ("GET http://[::1]/c/?d HTTP/1.1", "/c/", Some("d"), "[::1]"),
        ("OPTIONS http://b HTTP/1.1", "*", None, "b"),
    ] {
        let bytes = format!("{line}\r\nHost: a\r\n\r\n").into_bytes();
        let mut slots = FieldSlots::new();
        let head = read(&bytes, &mut slots);
        assert_eq!(head.target.path(), path, "{line}");
        assert_eq!(head.target.query(), query, "{line}");
        assert_eq!(head.host.map(|host| host.text), Some(host), "{line}");
    }
}

/// Where tunnels are accepted, they lead to a host and a port.
#[test]
fn a_tunnel_leads_to_a_host_and_a_port() {
    let limits = Limits {
        connect: ConnectMethod::Accept,
        ..Limits::default()
    };
    let bytes = b"CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut slots = FieldSlots::new();
    let Parsed::Complete(head, _) = RequestHead::parse(bytes, &limits, &mut slots) else {
        panic!("it is right");
    };
    assert_eq!(head.method, Method::Connect);
    assert!(matches!(
        head.target,
        Target::Authority(Host {
            port: Some(443),
            ..
        })
    ));
}

/// Where a body ends.
#[test]
fn a_body_is_framed_in_one_way() {
    for (lines, framing) in [
        ("X: y", BodyFraming::None),
        ("Content-Length: 0", BodyFraming::None),
        ("Content-Length: 5", BodyFraming::Length(5)),
        ("content-length:\t5 ", BodyFraming::Length(5)),
        (
            "Content-Length: 5\r\nContent-Length: 5",
            BodyFraming::Length(5),
        ),
        (
            "Content-Length: 18446744073709551615",
            BodyFraming::Length(u64::MAX),
        ),
        ("Transfer-Encoding: Chunked", BodyFraming::Chunked),
    ] {
        let bytes = with(lines);
        assert_eq!(
            read(&bytes, &mut FieldSlots::new()).framing,
            framing,
            "{lines}"
        );
    }
}

/// Whether a connection stays, in both versions.
#[test]
fn a_connection_stays_as_its_version_has_it() {
    for (version, lines, persistence) in [
        ("1.1", "X: y", Persistence::KeepAlive),
        ("1.1", "Connection: close", Persistence::Close),
        ("1.1", "Connection: keep-alive, Close", Persistence::Close),
        ("1.0", "X: y", Persistence::Close),
        ("1.0", "Connection: Keep-Alive", Persistence::KeepAlive),
        (
            "1.0",
            "Connection: keep-alive\r\nConnection: close",
            Persistence::Close,
        ),
        ("1.0", "Proxy-Connection: keep-alive", Persistence::Close),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n\r\n").into_bytes();
        let mut slots = FieldSlots::new();
        assert_eq!(
            read(&bytes, &mut slots).persistence(),
            persistence,
            "{version} {lines}"
        );
    }
}

/// An upgrade is asked for in two places, and HTTP/2 in the clear is none.
#[test]
fn an_upgrade_is_asked_for_twice_over() {
    for (lines, upgrade) in [
        (
            "Connection: Upgrade\r\nUpgrade: websocket",
            Some("websocket"),
        ),
        (
            "Connection: keep-alive, upgrade\r\nUpgrade: a, b/1",
            Some("a, b/1"),
        ),
        ("Connection: Upgrade", None),
        ("Upgrade: websocket", None),
        ("Connection: Upgrade\r\nUpgrade:", None),
        (
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: a",
            None,
        ),
        ("Connection: Upgrade\r\nUpgrade: websocket, H2C", None),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c",
            None,
        ),
    ] {
        let bytes = with(lines);
        let mut slots = FieldSlots::new();
        let found = read(&bytes, &mut slots).upgrade();
        assert_eq!(found, upgrade.map(str::as_bytes), "{lines}");
    }
}

/// What a client waits for; in HTTP/1.0 it waits for nothing.
#[test]
fn an_expectation_is_read() {
    for (version, lines, expect) in [
        ("1.1", "X: y", Expect::Nothing),
        ("1.1", "Expect: 100-Continue", Expect::Continue),
        ("1.1", "Expect: 200-ok", Expect::Other),
        (
            "1.1",
            "Expect: 100-continue\r\nExpect: 100-continue",
            Expect::Other,
        ),
        ("1.0", "Expect: 100-continue", Expect::Nothing),
    ] {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n\r\n").into_bytes();
        assert_eq!(
            read(&bytes, &mut FieldSlots::new()).expect,
            expect,
            "{lines}"
        );
    }
}

/// Some clients send an empty line behind a body.
#[test]
fn a_few_empty_lines_before_a_request_are_passed_over() {
    let bytes = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next";
    let (_, end) = request_facts(bytes, &Limits::default()).unwrap();
    assert_eq!(&bytes[end..], b"GET /next");
}

/// Each limit, at its last byte and behind it.
#[test]
fn a_head_is_as_large_as_the_limits_say() {
    let limits = Limits {
        head_bytes: 60,
        fields: 2,
        target_bytes: 10,
        ..Limits::default()
    };
    let head =
        |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let outcome = |text: &str| request_facts(text.as_bytes(), &limits).map(|(_, end)| end);

    assert!(outcome(&head("/234567890", "")).is_ok());
    assert_eq!(
        outcome(&head("/2345678901", "")),
        Err(Refusal::TargetTooLong)
    );
    assert_eq!(
        outcome(&head("/2345678901", "Bad Name: x\r\n")),
        Err(Refusal::TargetTooLong)
    );
    assert!(outcome(&head("/", "X: 1\r\n")).is_ok());
    assert_eq!(
        outcome(&head("/", "X: 1\r\nY: 2\r\n")),
        Err(Refusal::TooManyFields)
    );
    let line = |bytes: usize| format!("X: {}\r\n", "y".repeat(bytes));
    let rest = 60 - head("/", &line(0)).len();
    assert_eq!(outcome(&head("/", &line(rest))), Ok(60));
    assert_eq!(
        outcome(&head("/", &line(rest + 1))),
        Err(Refusal::HeadTooLarge)
    );
    assert_eq!(
        outcome(&format!("GET {}", "/".repeat(100))),
        Err(Refusal::TargetTooLong)
    );
}

/// A head that comes byte by byte is not parsed for each of them.
#[test]
fn a_head_is_worth_parsing_when_its_last_line_is_there() {
    let limits = Limits {
        head_bytes: 60,
        ..Limits::default()
    };
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for seen in 0..bytes.len() - 1 {
        assert!(!is_worth_parsing(&bytes[..=seen], seen, &limits), "{seen}");
    }
    for seen in 0..bytes.len() {
        assert!(is_worth_parsing(bytes, seen, &limits), "{seen}");
    }
    assert!(is_worth_parsing(b"GET / HTTP/1.1\n\n", 15, &limits));
    assert!(is_worth_parsing(&[b'x'; 60], 59, &limits));
}
