//! Messages that are carried as they should be, both ways.

use std::io::Write;

use evenkeel_proxy::telemetry::reason::Reason;

use crate::world::{Endpoint, HELLO, Message, Then, World};

/// What the endpoint gets is the request written anew, and what the client gets the answer.
#[test]
fn a_request_is_carried_and_answered() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("GET /a?b HTTP/1.1\r\nHost: shop.example\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n");

    assert_eq!(client.answer().text(), "hello");
    assert_eq!(
        east.next_request().head,
        "GET /a?b HTTP/1.1\r\nHost: shop.example\r\nX-Kept: 2\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Host: shop.example\r\n\r\n"
    );
    let record = world.next_record();
    assert_eq!(
        (record.status, record.session.reason),
        (Some(200), Reason::Done)
    );
    let line = record.request.unwrap();
    assert_eq!(
        (line.method(), line.host(), line.target()),
        ("GET", "shop.example", "/a?b")
    );
}

/// Ten requests on one connection take one connection to the endpoint.
#[test]
fn connections_are_kept_on_both_sides() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    let mut client = world.connect();

    for _ in 0..10 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().text(), "hello");
    }

    assert_eq!(east.connections(), 1);
}

/// Requests that are sent at once are answered one after the other, in their order.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let east = Endpoint::serving("east", |mut stream, _| {
        while let Some(request) = Message::read(&mut stream) {
            let path = request.head.split(' ').nth(1).unwrap();
            let length = path.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{path}"
            )
            .unwrap();
        }
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nPOST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxyGET /4 HTTP/1.1\r\nHost: a\r\n\r\n");

    let answers: Vec<String> = (0..4).map(|_| client.answer().text().to_owned()).collect();
    assert_eq!(answers, ["/1", "/2", "/3", "/4"]);
}

/// A body by its length arrives whole, however large, and so does the answer.
#[test]
fn large_bodies_are_streamed() {
    const LENGTH: usize = 3 << 20;
    let east = Endpoint::serving("east", |mut stream, _| {
        while let Some(request) = Message::read(&mut stream) {
            let length = request.body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
            )
            .unwrap();
            stream.write_all(&request.body).unwrap();
        }
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();
    let body: Vec<u8> = (0..=250).cycle().take(LENGTH).collect();

    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"
    ));
    let mut sender = client.0.try_clone().unwrap();
    let sent = body.clone();
    let sending = std::thread::spawn(move || sender.write_all(&sent).unwrap());

    assert_eq!(client.answer().body, body);
    sending.join().unwrap();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().status(), 200);
}

/// Chunks go on without their extensions, and with their trailers, both ways.
#[test]
fn chunks_and_trailers_are_carried() {
    let east = Endpoint::answering(
        "east",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
        Then::Keep,
    );
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;name=value\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n");

    let answer = client.answer();
    assert_eq!(answer.text(), "2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n");
    assert_eq!(
        east.next_request().body,
        b"3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n"
    );
}

/// A body that ends with the endpoint's connection comes in chunks to a client that keeps its own, and plainly to one of HTTP/1.0.
#[test]
fn a_body_without_a_length_is_delimited_for_the_client() {
    let east = Endpoint::answering("east", "HTTP/1.0 200 OK\r\n\r\nold", Then::Close);
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().text(), "3\r\nold\r\n0\r\n\r\n");
    client.send("GET / HTTP/1.0\r\n\r\n");
    let rest = client.rest();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{rest}");
    assert!(rest.ends_with("\r\n\r\nold"), "{rest}");
}

/// A client of HTTP/1.0 knows no chunks: it gets the body plainly, up to the end of the stream.
#[test]
fn chunks_are_taken_apart_for_http_1_0() {
    let east = Endpoint::answering(
        "east",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n",
        Then::Keep,
    );
    let world = World::of(&[&east]);
    let rest = world.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(rest.ends_with("\r\n\r\nhi yo"), "{rest}");
    assert!(!rest.to_lowercase().contains("chunked"), "{rest}");
}

/// A client of HTTP/1.0 that asks for it keeps its connection, where the answer has a length.
#[test]
fn http_1_0_may_keep_its_connection() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    let mut client = world.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer();
        assert_eq!(answer.header("connection"), Some("keep-alive"));
        assert_eq!(answer.text(), "hello");
    }
}

/// The answer to HEAD has no body, whatever its head says, nor has 204 or 304; the connections stay.
#[test]
fn answers_without_a_body_have_none() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
    ] {
        let east = Endpoint::answering("east", answer, Then::Keep);
        let world = World::of(&[&east]);
        let mut client = world.connect();
        for _ in 0..2 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = String::from_utf8(client.bytes(answer.len())).unwrap();
            assert_eq!(head, answer);
        }
        assert_eq!(east.connections(), 1);
    }
}

/// The client waits for 100 from the endpoint, not from us, and sends its body then.
#[test]
fn expectations_go_end_to_end() {
    let east = Endpoint::serving("east", |mut stream, report| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
            head.push(byte[0]);
        }
        stream
            .write_all(
                b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
            )
            .unwrap();
        let mut body = vec![0; 4];
        std::io::Read::read_exact(&mut stream, &mut body).unwrap();
        let head = String::from_utf8(head).unwrap();
        report.send(Message { head, body }).unwrap();
        stream.write_all(HELLO.as_bytes()).unwrap();
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    let hints = client.answer();
    assert_eq!((hints.status(), hints.header("link")), (103, Some("</a>")));
    assert_eq!(client.answer().status(), 100);
    client.send("body");

    assert_eq!(client.answer().text(), "hello");
    let request = east.next_request();
    assert_eq!(request.header("expect"), Some("100-continue"));
    assert_eq!(request.body, b"body");
}

/// Interim answers, the answer and the end of the stream may come in one piece: the answer waits for nothing more.
#[test]
fn what_follows_an_interim_answer_is_not_waited_for() {
    let east = Endpoint::serving("east", |mut stream, report| {
        report.send(Message::read(&mut stream).unwrap()).unwrap();
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let all = format!(
            "{hints}{hints}HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        );
        stream.write_all(all.as_bytes()).unwrap();
    });
    let world = World::with(&[&east], |_, http| {
        // Whoever waited for a wake-up from elsewhere would wait for this one, in vain.
        http.timeouts.upstream_idle = None;
    });
    let mut client = world.connect();

    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");

    assert_eq!(client.answer().status(), 103);
    assert_eq!(client.answer().status(), 103);
    assert_eq!(client.answer().text(), "hello");
}

/// A client that waits to be told to send its body, and gets its answer instead, has it at once, and its connection ends.
#[test]
fn an_expectation_may_be_refused() {
    let east = Endpoint::serving("east", |mut stream, _| {
        let mut head = [0; 256];
        let _ = std::io::Read::read(&mut stream, &mut head);
        stream
            .write_all(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
            .unwrap();
        let _ = std::io::Read::read(&mut stream, &mut head);
    });
    let world = World::of(&[&east]);
    let mut client = world.connect();

    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");

    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (417, "no"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.rest(), "");
}
