#![no_main]
//! A chunked body of any bytes, in pieces of any size: it is refused, or it is the same data as in one piece, and as written again.

use evenkeel_wire::http1::{
    BodyDecoder, BodyFraming, CHUNK_END, ChunkHead, Refusal, append_last_chunk,
};
use libfuzzer_sys::fuzz_target;

/// The data and the trailers; nothing where there is more to come.
type Body = Option<(Vec<u8>, Vec<u8>)>;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = read(bytes, bytes.len());
    assert_eq!(read(bytes, piece.into()), whole);
    if let Ok(Some((data, trailers))) = whole {
        let mut again = Vec::new();
        if !data.is_empty() {
            again.extend_from_slice(ChunkHead::new(data.len()).as_bytes());
            again.extend_from_slice(&data);
            again.extend_from_slice(CHUNK_END);
        }
        append_last_chunk(&mut again, &trailers);
        assert_eq!(read(&again, 3), Ok(Some((data, trailers))));
    }
});

fn read(bytes: &[u8], piece: usize) -> Result<Body, Refusal> {
    let mut decoder = BodyDecoder::new(BodyFraming::Chunked);
    let mut data = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let part = decoder.next(rest)?;
            data.extend_from_slice(&rest[part.skip..part.taken()]);
            if part.is_end {
                return Ok(Some((data, decoder.trailers().to_vec())));
            }
            rest = &rest[part.taken()..];
        }
    }
    Ok(None)
}
