//! Messages that two programs could read in two ways: the endpoint gets nothing of them, and the client is told.

use crate::world::{Endpoint, Then, World};

/// Each is refused with its own reason, and no endpoint hears of it.
#[test]
fn a_hostile_request_reaches_nobody() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    for (request, status, reason) in [
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "length_and_chunked",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            400,
            "bad_transfer_encoding",
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "transfer_encoding_in_1_0",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            400,
            "content_lengths_differ",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n",
            400,
            "bad_content_length",
        ),
        ("GET / HTTP/1.1\r\n\r\n", 400, "host_missing"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            400,
            "host_repeated",
        ),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "bare_lf"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
            400,
            "obs_fold",
        ),
        (
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "bad_request_line",
        ),
        ("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_target"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "bad_header_name"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "bad_version"),
    ] {
        let mut client = world.connect();
        client.send(request);
        let answer = client.answer();
        assert_eq!(
            (answer.status(), answer.header("x-evenkeel-reason")),
            (status, Some(reason)),
            "{request:?}"
        );
        assert_eq!(answer.header("connection"), Some("close"));
    }
    assert_eq!(east.connections(), 0);
}

/// A body that turns out to be no chunks is refused, and its endpoint gets no end of it.
#[test]
fn a_bad_chunk_is_refused() {
    let east = Endpoint::hello("east");
    let world = World::of(&[&east]);
    let mut client = world.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.header("x-evenkeel-reason")),
        (400, Some("bad_chunk_end"))
    );
    assert!(east.requests().is_empty());
}

/// An endpoint's answer that could be read in two ways is a 502, and its connection is not used again.
#[test]
fn a_hostile_answer_is_a_502() {
    for (answer, reason) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "length_and_chunked",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            "content_lengths_differ",
        ),
        ("hello\r\n\r\n", "bad_status_line"),
    ] {
        let east = Endpoint::answering("east", answer, Then::Keep);
        let world = World::of(&[&east]);
        let mut client = world.connect();
        for connections in 1..=2 {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let refused = client.answer();
            assert_eq!(
                (refused.status(), refused.header("x-evenkeel-reason")),
                (502, Some(reason))
            );
            assert_eq!(east.connections(), connections);
        }
    }
}

/// What an endpoint sends beyond its answer is not taken for the answer to the next request.
#[test]
fn a_second_answer_poisons_nothing() {
    let east = Endpoint::answering(
        "east",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        Then::Keep,
    );
    let world = World::of(&[&east]);
    let mut client = world.connect();
    for _ in 0..5 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().text(), "hi");
    }
    assert_eq!(east.connections(), 5);
}
