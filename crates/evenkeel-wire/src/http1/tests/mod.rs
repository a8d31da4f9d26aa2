//! Both roles: what is right is read, however it is split, and what is not is refused, each for its own reason.

mod body;
mod faults;
mod property;
mod request;
mod response;
mod write;

use super::*;

/// A head is read from the whole of the bytes and from every beginning of them. A beginning is incomplete, or refused as the whole is.
#[track_caller]
fn request_facts(bytes: &[u8], limits: &Limits) -> Result<(Facts, usize), Refusal> {
    let whole = facts_of_request(bytes, limits);
    for split in 0..bytes.len() {
        match (facts_of_request(&bytes[..split], limits), &whole) {
            (Parsed::Incomplete, _) => {}
            (Parsed::Complete(facts, end), Parsed::Complete(of_whole, end_of_whole)) => {
                assert_eq!((&facts, end), (of_whole, *end_of_whole), "{split}");
            }
            (part, whole) => assert_eq!(
                &part,
                whole,
                "{split} of {:?}",
                bytes.escape_ascii().to_string()
            ),
        }
    }
    match whole {
        Parsed::Complete(facts, end) => Ok((facts, end)),
        Parsed::Refused(refusal) => Err(refusal),
        Parsed::Incomplete => panic!("incomplete: {}", bytes.escape_ascii()),
    }
}

/// What a request says, in words: owned, so that it can be compared between buffers.
type Facts = String;

fn facts_of_request(bytes: &[u8], limits: &Limits) -> Parsed<Facts> {
    match RequestHead::parse(bytes, limits, &mut FieldSlots::new()) {
        Parsed::Complete(head, end) => Parsed::Complete(format!("{head:?}"), end),
        Parsed::Incomplete => Parsed::Incomplete,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

/// Why a request is refused.
#[track_caller]
fn refused(bytes: &[u8]) -> Refusal {
    request_facts(bytes, &Limits::default()).expect_err("it is refused")
}

/// A head out of what is said, with the `Host` that 1.1 needs.
fn with(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n").into_bytes()
}

/// Reads a request that is right.
#[track_caller]
fn read<'h, 'b: 'h>(bytes: &'b [u8], slots: &'h mut FieldSlots<'b>) -> RequestHead<'h> {
    let facts = request_facts(bytes, &Limits::default());
    assert!(facts.is_ok(), "{facts:?}: {}", bytes.escape_ascii());
    match RequestHead::parse(bytes, &Limits::default(), slots) {
        Parsed::Complete(head, _) => head,
        other => panic!("{other:?}"),
    }
}
