//! Chunks as they are sent: a size before the data, an end behind it, and never an extension.

/// What stands behind the data of each chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// 16 digits, CR and LF.
const CHUNK_HEAD_BYTES_MAX: usize = 18;

/// What stands before the data of a chunk: its size in hexadecimal digits, on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    bytes: [u8; CHUNK_HEAD_BYTES_MAX],
    start: usize,
}

impl ChunkHead {
    /// Of a chunk of so many bytes; not of 0, which would be the last one ([`append_last_chunk`]).
    pub fn new(length: usize) -> Self {
        debug_assert!(length > 0, "a chunk of nothing ends the body");
        let mut bytes = *b"0000000000000000\r\n";
        let mut start = CHUNK_HEAD_BYTES_MAX - CHUNK_END.len();
        let mut rest = length;
        while rest > 0 {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[rest % 16];
            rest /= 16;
        }
        Self { bytes, start }
    }

    /// The bytes to send.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Appends the end of a body, with trailers as a decoder gives them.
pub fn append_last_chunk(out: &mut Vec<u8>, trailers: &[u8]) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}
