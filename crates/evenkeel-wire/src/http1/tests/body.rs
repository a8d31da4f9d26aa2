//! Bodies: what passes, and where they end.

use super::*;

/// The data, the trailers, and how many bytes were taken.
type Body = (Vec<u8>, Vec<u8>, usize);

/// Reads a body that comes in pieces of so many bytes.
pub(super) fn read_in_pieces(
    framing: BodyFraming,
    bytes: &[u8],
    piece: usize,
) -> Result<Body, Refusal> {
    let mut decoder = BodyDecoder::new(framing);
    let mut data = Vec::new();
    let mut taken = 0;
    let mut there = 0;
    loop {
        let part = decoder.next(&bytes[taken..there])?;
        data.extend_from_slice(&bytes[taken + part.skip..taken + part.taken()]);
        taken += part.taken();
        if part.is_end {
            return Ok((data, decoder.trailers().to_vec(), taken));
        }
        if part.taken() == 0 && there == bytes.len() {
            return decoder.end_of_stream().map(|()| (data, Vec::new(), taken));
        }
        if taken == there {
            there = bytes.len().min(there + piece);
        }
    }
}

/// The same, however it comes.
#[track_caller]
fn read_chunks(text: &str) -> Result<Body, Refusal> {
    let bytes = text.as_bytes();
    let whole = read_in_pieces(BodyFraming::Chunked, bytes, bytes.len());
    for piece in 1..bytes.len() {
        assert_eq!(
            read_in_pieces(BodyFraming::Chunked, bytes, piece),
            whole,
            "{piece} of {text:?}"
        );
    }
    whole
}

/// Chunks become data; extensions are dropped, and what follows is left alone.
#[test]
fn chunks_are_read() {
    for (text, data) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", "hello world"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("a;b=c;d=\"e\"\r\n0123456789\r\n0;f\r\n\r\n", "0123456789"),
        ("1 ; b\r\nx\r\n0\r\n\r\n", "x"),
        ("0000000000000001\r\nx\r\n0\r\n\r\n", "x"),
    ] {
        let all = format!("{text}GET / HTTP/1.1");
        assert_eq!(
            read_chunks(&all),
            Ok((data.into(), Vec::new(), text.len())),
            "{text:?}"
        );
    }
}

/// Each way to write chunks that others read differently.
#[test]
fn what_are_not_quite_chunks_is_refused() {
    let long = format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(5000));
    let often = "1;eeeeeeee\r\nx\r\n".repeat(1000);
    for (text, refusal) in [
        ("\r\n", Refusal::ChunkSize),
        (";a\r\n", Refusal::ChunkSize),
        ("g\r\n", Refusal::ChunkSize),
        ("0x1\r\nx\r\n", Refusal::ChunkSize),
        ("+1\r\nx\r\n", Refusal::ChunkSize),
        ("-1\r\nx\r\n", Refusal::ChunkSize),
        (" 1\r\nx\r\n", Refusal::ChunkSize),
        ("1 \r\nx\r\n", Refusal::ChunkSize),
        ("1_0\r\nx\r\n", Refusal::ChunkSize),
        ("10000000000000000\r\n", Refusal::ChunkSize),
        ("00000000000000001\r\n", Refusal::ChunkSize),
        ("1\nx\r\n", Refusal::BareLineFeed),
        ("1;a\nx\r\n", Refusal::BareLineFeed),
        ("1\rx\r\n", Refusal::BareCarriageReturn),
        ("1;a\rb\r\nx\r\n", Refusal::BareCarriageReturn),
        ("1;a\0\r\nx\r\n", Refusal::ChunkExtension),
        (&long, Refusal::ChunkExtension),
        ("1\r\nxy\r\n", Refusal::ChunkEnd),
        ("1\r\nx\n0\r\n\r\n", Refusal::ChunkEnd),
        ("1\r\nx\ry", Refusal::ChunkEnd),
        ("1\r\nx0\r\n\r\n", Refusal::ChunkEnd),
        ("0\r\n\n", Refusal::BareLineFeed),
        ("0\r\n\rx", Refusal::BareCarriageReturn),
        ("0\r\nX: y\n\r\n", Refusal::BareLineFeed),
        ("0\r\nX: y\rz\r\n\r\n", Refusal::BareCarriageReturn),
        ("0\r\nX: y\r\n z\r\n\r\n", Refusal::Folded),
        ("0\r\nX : y\r\n\r\n", Refusal::FieldName),
        ("0\r\nX\r\n\r\n", Refusal::FieldName),
        ("0\r\nX: \0\r\n\r\n", Refusal::FieldValue),
        ("5\r\nhel", Refusal::BodyCut),
        ("5\r\nhello\r\n", Refusal::BodyCut),
        ("0\r\n", Refusal::BodyCut),
        ("0\r\n\r", Refusal::BodyCut),
    ] {
        assert_eq!(read_chunks(text), Err(refusal), "{text:?}");
    }
    let whole = read_in_pieces(BodyFraming::Chunked, often.as_bytes(), often.len());
    assert_eq!(whole, Err(Refusal::ChunkExtension));
}

/// Trailers go on as trailers, but for those that would change what the head has said.
#[test]
fn trailers_are_kept_and_policed() {
    let text = "1\r\nx\r\n0\r\nGrpc-Status: 0\r\ncontent-length: 5\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\
                X-Forwarded-For: 1.2.3.4\r\nChecksum:  abc \r\n\r\n";
    let (data, trailers, _) = read_chunks(text).unwrap();
    assert_eq!(data, b"x");
    assert_eq!(trailers, b"Grpc-Status: 0\r\nChecksum: abc\r\n");

    let mut out = Vec::new();
    append_last_chunk(&mut out, &trailers);
    assert_eq!(out, b"0\r\nGrpc-Status: 0\r\nChecksum: abc\r\n\r\n");
}

/// Trailers have limits of their own.
#[test]
fn trailers_are_bounded() {
    let of = |lines: String| {
        let text = format!("0\r\n{lines}\r\n");
        read_in_pieces(BodyFraming::Chunked, text.as_bytes(), 100).map(|_| ())
    };
    assert_eq!(of("X: y\r\n".repeat(32)), Ok(()));
    assert_eq!(of("X: y\r\n".repeat(33)), Err(Refusal::TooManyTrailers));
    assert_eq!(
        of(format!("X: {}\r\n", "y".repeat(9000))),
        Err(Refusal::TrailersTooLarge)
    );
}

/// A body of a known length, of none, and of whatever comes.
#[test]
fn other_bodies_end_where_they_should() {
    for piece in 1..8 {
        let read = |framing| read_in_pieces(framing, b"hello!", piece);
        assert_eq!(
            read(BodyFraming::Length(5)),
            Ok((b"hello".to_vec(), Vec::new(), 5))
        );
        assert_eq!(read(BodyFraming::Length(7)), Err(Refusal::BodyCut));
        assert_eq!(read(BodyFraming::None), Ok((Vec::new(), Vec::new(), 0)));
        assert_eq!(
            read(BodyFraming::UntilClose),
            Ok((b"hello!".to_vec(), Vec::new(), 6))
        );
    }
}

/// Sizes are written as others read them.
#[test]
fn the_head_of_a_chunk_is_its_size() {
    for (length, bytes) in [
        (1, "1\r\n"),
        (255, "ff\r\n"),
        (4096, "1000\r\n"),
        (usize::MAX, "ffffffffffffffff\r\n"),
    ] {
        assert_eq!(ChunkHead::new(length).as_bytes(), bytes.as_bytes());
    }
}
