//! Heads as they are written: byte for byte.

use std::net::IpAddr;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn plain() -> RequestEdits<'static> {
    RequestEdits {
        persistence: Persistence::KeepAlive,
        upgrade: Upgrade::Forward,
        forwarding: Forwarding {
            client: ip("192.0.2.7"),
            scheme: Scheme::Http,
            x_forwarded: Forward::Leave,
            forwarded: Forward::Leave,
            via: None,
            request_id: None,
        },
        fields: &[],
    }
}

fn forwarding(client: &str, forward: Forward) -> RequestEdits<'static> {
    let mut edits = plain();
    edits.forwarding.client = ip(client);
    edits.forwarding.x_forwarded = forward;
    edits.forwarding.forwarded = forward;
    edits
}

/// What an endpoint gets of a request that is right.
#[track_caller]
pub(super) fn passed_on(request: &str, edits: &RequestEdits<'_>) -> String {
    let mut slots = FieldSlots::new();
    let mut out = Vec::new();
    read(request.as_bytes(), &mut slots).write(edits, &mut out);
    String::from_utf8(out).unwrap()
}

fn answer_edits() -> ResponseEdits<'static> {
    ResponseEdits {
        client: Version::Http11,
        persistence: Persistence::KeepAlive,
        framing: BodyFraming::Length(5),
        upgrade: Upgrade::Forward,
        via: None,
        fields: &[],
    }
}

/// What a client gets of an answer that is right. How the body is sent can depend on how it comes.
#[track_caller]
fn answered(answer: &str, edits: impl Fn(&ResponseHead<'_>) -> ResponseEdits<'static>) -> String {
    let mut slots = FieldSlots::new();
    let Parsed::Complete(head, _) = ResponseHead::parse(
        answer.as_bytes(),
        Asked::Other,
        &Limits::default(),
        &mut slots,
    ) else {
        panic!("it is right: {answer:?}");
    };
    let mut out = Vec::new();
    head.write(&edits(&head), &mut out);
    String::from_utf8(out).unwrap()
}

fn as_it_comes(head: &ResponseHead<'_>) -> ResponseEdits<'static> {
    ResponseEdits {
        framing: head.framing,
        ..answer_edits()
    }
}

/// Names, values and order stay; `Host` comes first.
#[test]
fn a_request_is_written_as_it_was_understood() {
    let request = "POST /a?b HTTP/1.1\r\nUser-Agent:  x \r\nhost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\nCookie: c\r\n\r\n";
    let expected =
        "POST /a?b HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nContent-Length: 5\r\nCookie: c\r\n\r\n";
    assert_eq!(passed_on(request, &plain()), expected);
}

/// An absolute target becomes a path, and its host counts.
#[test]
fn an_absolute_target_goes_on_as_a_path() {
    let request = "GET http://b:81?c HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(
        passed_on(request, &plain()),
        "GET /?c HTTP/1.1\r\nHost: b:81\r\n\r\n"
    );
    let options = "OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(
        passed_on(options, &plain()),
        "OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n"
    );
}

/// A client of HTTP/1.0 without a `Host` is passed on with an empty one, and waits for no 100.
#[test]
fn an_old_request_goes_on_as_a_new_one() {
    let request = "GET / HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(
        passed_on(request, &plain()),
        "GET / HTTP/1.1\r\nHost: \r\n\r\n"
    );
}

/// What `Connection` names stays behind, but not what framing, routing or trust depends on.
#[test]
fn connection_removes_what_is_for_one_hop_and_nothing_else() {
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: X-One, host, content-length, x-forwarded-for, close\r\n\
                   X-One: 1\r\nx-one: 2\r\nX-Two: 3\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\n\
                   X-Forwarded-For: 1.2.3.4\r\nContent-Length: 5\r\n\r\n";
    let expected = "POST / HTTP/1.1\r\nHost: a\r\nX-Two: 3\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(passed_on(request, &plain()), expected);

    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(passed_on(chunked, &plain()).contains("Transfer-Encoding: chunked\r\n"));
}

/// Only of `TE` is there something to pass on: that trailers are welcome.
#[test]
fn te_is_said_anew() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers, gzip\r\nConnection: TE\r\n\r\n";
    let expected = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\n\r\n";
    assert_eq!(passed_on(request, &plain()), expected);
    let gzip = "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\nConnection: TE\r\n\r\n";
    assert_eq!(
        passed_on(gzip, &plain()),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    );
}

/// A WebSocket's upgrade goes on if it may; HTTP/2 in the clear never does.
#[test]
fn an_upgrade_goes_on_if_it_may() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let expected = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    assert_eq!(passed_on(request, &plain()), expected);
    let dropped = RequestEdits {
        upgrade: Upgrade::Drop,
        ..plain()
    };
    assert_eq!(
        passed_on(request, &dropped),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    );
    let h2c = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n";
    assert_eq!(
        passed_on(h2c, &plain()),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    );
}

/// An endpoint is told when its connection ends.
#[test]
fn an_endpoint_is_told_to_close() {
    let edits = RequestEdits {
        persistence: Persistence::Close,
        ..plain()
    };
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(
        passed_on(request, &edits),
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    );
}

/// What a trusted proxy has said is kept, and the peer added; what anybody else has said is not.
#[test]
fn the_client_is_told_of() {
    let request = "GET / HTTP/1.1\r\nHost: a:80\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\n\
                   X-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n\r\n";
    let start = "GET / HTTP/1.1\r\nHost: a:80\r\n";
    assert_eq!(
        passed_on(request, &forwarding("192.0.2.7", Forward::Append)),
        format!(
            "{start}X-Forwarded-Proto: https\r\nX-Forwarded-For: 1.2.3.4, 5.6.7.8, 192.0.2.7\r\nX-Forwarded-Host: a:80\r\n\
             Forwarded: for=1.2.3.4, for=192.0.2.7;proto=http;host=\"a:80\"\r\n\r\n"
        )
    );
    assert_eq!(
        passed_on(request, &forwarding("2001:db8::1", Forward::Replace)),
        format!(
            "{start}X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n\
             Forwarded: for=\"[2001:db8::1]\";proto=http;host=\"a:80\"\r\n\r\n"
        )
    );
}

/// `Via` grows, a request id is one, and edits take the place of what was there.
#[test]
fn a_head_is_edited() {
    let name = |text| FieldName::new(text).unwrap();
    let value = |text: &'static str| FieldValue::new(text.as_bytes()).unwrap();
    let mut edits = plain();
    edits.forwarding.via = Some(value("evenkeel"));
    edits.forwarding.request_id = Some(value("7"));
    let fields = [
        FieldEdit::Set(name("X-One"), value("new")),
        FieldEdit::Remove(name("X-Two")),
        FieldEdit::Add(name("X-Three"), value("more")),
    ];
    edits.fields = &fields;
    let request = "GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 b\r\nX-Request-Id: 6\r\nx-one: 1\r\nX-One: 2\r\nx-two: 3\r\nX-Three: 4\r\n\r\n";
    let expected = "GET / HTTP/1.1\r\nHost: a\r\nX-Three: 4\r\nVia: 1.1 b, 1.0 evenkeel\r\nX-Request-Id: 7\r\nX-One: new\r\nX-Three: more\r\n\r\n";
    assert_eq!(passed_on(request, &edits), expected);
}

/// Nothing that a head is given can end its line, or say again what it says once.
#[test]
fn an_edit_cannot_break_a_head() {
    for name in [
        "",
        "a b",
        "a:",
        "a\r\n",
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
    ] {
        assert_eq!(FieldName::new(name), None, "{name:?}");
    }
    for value in ["a\r\nb", "a\n", "\0", "\u{7f}"] {
        assert_eq!(FieldValue::new(value.as_bytes()), None, "{value:?}");
    }
}

/// An answer keeps its names, values, order and reason.
#[test]
fn an_answer_is_written_as_it_was_understood() {
    let answer = "HTTP/1.0 404 Nope\r\nServer: x\r\nContent-Length: 5\r\nContent-Length: 5\r\nConnection: X-One, close\r\nX-One: 1\r\nKeep-Alive: 5\r\n\r\n";
    let expected = "HTTP/1.1 404 Nope\r\nServer: x\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(answered(answer, as_it_comes), expected);
}

/// A client of HTTP/1.0 is told that its connection stays, and gets no chunks.
#[test]
fn a_client_of_http_1_0_gets_what_it_knows() {
    let old = |framing, persistence| {
        move |_: &ResponseHead<'_>| ResponseEdits {
            client: Version::Http10,
            framing,
            persistence,
            ..answer_edits()
        }
    };
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        answered(length, old(BodyFraming::Length(5), Persistence::KeepAlive)),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"
    );
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(
        answered(chunked, old(BodyFraming::UntilClose, Persistence::Close)),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    );
}

/// A body that ends with its connection can be sent in chunks.
#[test]
fn a_body_can_be_framed_anew() {
    let chunks = |_: &ResponseHead<'_>| ResponseEdits {
        framing: BodyFraming::Chunked,
        ..answer_edits()
    };
    assert_eq!(
        answered("HTTP/1.1 200 OK\r\n\r\n", chunks),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
}

/// Interim answers pass without a word about bodies or connections; 101 says what is spoken next.
#[test]
fn interim_answers_pass() {
    let hints =
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
    assert_eq!(
        answered(hints, as_it_comes),
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    );
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(
        answered(switch, as_it_comes),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    );
}

/// An answer of our own, in the form that the client takes.
#[test]
fn our_own_answers_are_text_or_json() {
    let written = |accept: &str, asked| {
        let request = with(&format!("Accept: {accept}"));
        let mut slots = FieldSlots::new();
        let form = Form::accepted(read(&request, &mut slots).fields);
        let answer = Answer {
            status: 404,
            code: "no_route",
            detail: "nothing is served \"here\"",
            form,
            persistence: Persistence::KeepAlive,
            asked,
            fields: &[],
        };
        let mut out = Vec::new();
        answer.write(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        written("text/html, */*", Asked::Other),
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 51\r\nConnection: keep-alive\r\n\r\n\
         404 Not Found: nothing is served \"here\" (no_route)\n"
    );
    let json = written("text/html, application/json;q=0.9", Asked::Other);
    assert!(json.ends_with(
        "\r\n\r\n{\"status\":404,\"title\":\"Not Found\",\"code\":\"no_route\",\"detail\":\"nothing is served \\\"here\\\"\"}\n"
    ), "{json}");
    assert!(written("*/*", Asked::Head).ends_with("\r\n\r\n"));
}

/// The right-most address that is not itself trusted; a peer that is not trusted is believed nothing.
#[test]
fn the_client_is_the_right_most_stranger() {
    let is_trusted = |address: IpAddr| address.to_string().starts_with("10.");
    for (lines, peer, client) in [
        ("X: y", "10.0.0.1", "10.0.0.1"),
        ("X-Forwarded-For: 1.2.3.4", "192.0.2.7", "192.0.2.7"),
        ("X-Forwarded-For: 1.2.3.4", "10.0.0.1", "1.2.3.4"),
        (
            "X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.2",
            "10.0.0.1",
            "1.2.3.4",
        ),
        (
            "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 1.2.3.4",
            "10.0.0.1",
            "1.2.3.4",
        ),
        (
            "X-Forwarded-For: 10.0.0.3, 10.0.0.2",
            "10.0.0.1",
            "10.0.0.3",
        ),
        (
            "X-Forwarded-For: 6.6.6.6, unknown, 10.0.0.2",
            "10.0.0.1",
            "10.0.0.2",
        ),
        ("X-Forwarded-For: 1.2.3.4:5678", "10.0.0.1", "1.2.3.4"),
        (
            "X-Forwarded-For: [2001:db8::1]:5678,",
            "10.0.0.1",
            "2001:db8::1",
        ),
        ("X-Forwarded-For: [2001:db8::1]", "10.0.0.1", "2001:db8::1"),
        ("X-Forwarded-For: 2001:db8::1", "10.0.0.1", "2001:db8::1"),
    ] {
        let request = with(lines);
        let mut slots = FieldSlots::new();
        let fields = read(&request, &mut slots).fields;
        assert_eq!(
            client_address(fields, ip(peer), is_trusted),
            ip(client),
            "{lines}"
        );
    }
}
