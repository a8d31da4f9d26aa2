//! Faults that were seen in other proxies, each by its name; and the page that promises what is done instead.

use super::body::read_in_pieces;
use super::write::{passed_on, plain};
use super::*;

/// Seen: a value with LF alone in it went on as it was, and was two headers to the endpoint.
#[test]
fn a_bare_line_feed_does_not_become_a_header() {
    assert_eq!(
        refused(&with("X: a\nTransfer-Encoding: chunked")),
        Refusal::BareLineFeed
    );
}

/// Seen: both went on, and the endpoint believed the other one.
#[test]
fn two_hosts_are_not_passed_on() {
    assert_eq!(refused(&with("Host: b")), Refusal::HostRepeated);
}

/// Seen: `X_Forwarded_For` of anybody, which an application that is given headers as variables took for the proxy's `X-Forwarded-For`.
#[test]
fn a_known_name_in_disguise_is_not_passed_on() {
    for line in [
        "X_Forwarded_For: b",
        "x-forwarded_proto: https",
        "Transfer_Encoding: chunked",
        "Content_Length: 5",
    ] {
        let request = String::from_utf8(with(line)).unwrap();
        assert!(!passed_on(&request, &plain()).contains(line), "{line}");
    }
    let own = "My_Own_Name: b";
    let request = String::from_utf8(with(own)).unwrap();
    assert!(passed_on(&request, &plain()).contains(own));
}

/// Seen: passed on by who did not know `gzip`, to who took the body for one without chunks.
#[test]
fn a_coding_before_chunked_is_not_passed_on() {
    assert_eq!(
        refused(&with("Transfer-Encoding: gzip, chunked")),
        Refusal::TransferEncoding
    );
}

/// Seen: the proxy answered 100 itself, and the endpoint was asked for it all the same. Here `Expect` goes on, and who answers is the endpoint.
#[test]
fn an_expectation_goes_to_the_endpoint() {
    let request = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(passed_on(request, &plain()), request);
}

/// Seen: a connection that closed without a word. Here there is a reason, and a status to say it with.
#[test]
fn a_bad_chunk_has_an_answer() {
    let refusal = read_in_pieces(BodyFraming::Chunked, b"x\r\n", 3).unwrap_err();
    assert_eq!(
        (refusal.status(Message::Request), refusal.code()),
        (400, "bad_chunk_size")
    );
}

/// Seen: trailers that never arrived, and with them the status of every call of gRPC-Web.
#[test]
fn trailers_are_not_dropped() {
    let (_, trailers, _) =
        read_in_pieces(BodyFraming::Chunked, b"0\r\nGrpc-Status: 0\r\n\r\n", 1).unwrap();
    assert_eq!(trailers, b"Grpc-Status: 0\r\n");
}

/// Seen: `/a b` became `/a%20b`, or `/a`.
#[test]
fn a_space_in_a_target_is_not_repaired() {
    let request = b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(refused(request), Refusal::RequestLine);
}

/// Every rule stands in the table of the decision, by its code; and no two have the same.
#[test]
fn every_refusal_is_documented() {
    let page = include_str!("../../../../../docs/decisions/0011-http1-framing.md");
    for refusal in Refusal::ALL {
        let cell = format!("| `{}` | ", refusal.code());
        assert_eq!(page.matches(&cell).count(), 1, "{cell}");
    }
}
