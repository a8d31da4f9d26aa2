//! Whatever comes: nothing panics, and what is written is read again.

use proptest::prelude::*;

use super::body::read_in_pieces;
use super::write::plain;
use super::*;

/// Bytes that look like a message more often than not.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "GET ",
        "POST ",
        "OPTIONS * ",
        "/a?b ",
        "http://b/c ",
        "HTTP/1.1",
        "HTTP/1.0",
        " ",
        "\r\n",
        "\n",
        "\r",
        "Host: a\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 204 \r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close, x\r\n",
        "X: y\r\n",
        "5\r\nhello\r\n",
        "0\r\n",
        "ffffffffffffffff\r\n",
        ";a=b",
        "\0",
        "\u{e9}",
    ]);
    let piece = prop_oneof![
        8 => words.prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A request that is right.
fn request() -> impl Strategy<Value = String> {
    let field = ("[A-Z][a-z]{2}-[a-z]{1,8}", "[!-~]([ -~]{0,20}[!-~])?");
    let fields = prop::collection::vec(field, 0..8);
    let framing = prop::sample::select(vec![
        "",
        "Content-Length: 12\r\n",
        "Transfer-Encoding: chunked\r\n",
    ]);
    (
        "[A-Z]{1,8}",
        "/[a-z/]{0,20}(\\?[a-z=&]{0,20})?",
        fields,
        framing,
    )
        .prop_map(|(method, target, fields, framing)| {
            let lines = fields
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"));
            let lines: String = lines.collect();
            format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}{framing}\r\n")
        })
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in message()) {
        let limits = Limits { head_bytes: 200, fields: 5, target_bytes: 20, connect: ConnectMethod::Accept };
        let _ = request_facts_of_parts(&bytes, &limits);
        for asked in [Asked::Head, Asked::Connect, Asked::Other] {
            let _ = ResponseHead::parse(&bytes, asked, &limits, &mut FieldSlots::new());
        }
    }

    #[test]
    fn a_chunked_body_is_the_same_however_it_comes(bytes in message(), piece in 1_usize..20) {
        let whole = read_in_pieces(BodyFraming::Chunked, &bytes, bytes.len().max(1));
        prop_assert_eq!(read_in_pieces(BodyFraming::Chunked, &bytes, piece), whole);
    }

    #[test]
    fn chunks_that_are_written_are_read(data in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8), piece in 1_usize..20) {
        let mut bytes = Vec::new();
        for chunk in &data {
            bytes.extend_from_slice(ChunkHead::new(chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(CHUNK_END);
        }
        append_last_chunk(&mut bytes, b"X: y\r\n");
        let body = (data.concat(), b"X: y\r\n".to_vec(), bytes.len());
        prop_assert_eq!(read_in_pieces(BodyFraming::Chunked, &bytes, piece), Ok(body));
    }

    #[test]
    fn a_head_that_is_written_is_read_as_it_was(text in request()) {
        let mut slots = FieldSlots::new();
        let Parsed::Complete(head, _) = RequestHead::parse(text.as_bytes(), &Limits::default(), &mut slots) else {
            return Err(TestCaseError::reject("CONNECT, or the like"));
        };
        let mut out = Vec::new();
        head.write(&plain(), &mut out);
        let mut slots = FieldSlots::new();
        prop_assert_eq!(RequestHead::parse(&out, &Limits::default(), &mut slots), Parsed::Complete(head, out.len()));
    }
}

/// A first line with a wrong method and a target that is too long besides was refused for the one or the other, depending on where
/// its bytes were split. So was one whose target goes wrong before it is too long.
#[test]
fn of_two_faults_the_first_is_the_answer() {
    let limits = Limits {
        target_bytes: 20,
        ..Limits::default()
    };
    for (line, refusal) in [
        (
            " /0123456789012345678901234567890123456789 HTTP/1.1\r\n\r\n",
            Refusal::Method,
        ),
        (
            "a:b /0123456789012345678901234567890123456789 HTTP/1.1\r\n\r\n",
            Refusal::Method,
        ),
        (
            "GET /\x07 23456789012345678901234567890123456789 HTTP/1.1\r\n\r\n",
            Refusal::Target,
        ),
        (
            "GET /0123456789012345678901234567890123456789\x07 HTTP/1.1\r\n\r\n",
            Refusal::TargetTooLong,
        ),
    ] {
        let verdict = request_facts_of_parts(line.as_bytes(), &limits);
        assert_eq!(verdict, Parsed::Refused(refusal), "{line:?}");
    }
}

/// The verdict on a whole is the verdict on every part that has one.
fn request_facts_of_parts(bytes: &[u8], limits: &Limits) -> Parsed<Facts> {
    let whole = facts_of_request(bytes, limits);
    for split in 0..bytes.len() {
        let part = facts_of_request(&bytes[..split], limits);
        assert!(
            part == Parsed::Incomplete || part == whole,
            "{split} of {}",
            bytes.escape_ascii()
        );
    }
    whole
}
