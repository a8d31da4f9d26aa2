//! Long byte streams that can be made again from a seed, so that every byte of them can be checked at its place.

use std::io::{self, Read, Write};

const CHUNK: usize = 64 * 1024;

/// The bytes that a seed stands for.
struct Stream {
    random: fastrand::Rng,
}

impl Stream {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.random.fill(bytes);
    }
}

/// Writes the first `length` bytes of the seed's stream; says how many could be written.
pub(crate) fn write(to: &mut impl Write, seed: u64, length: usize) -> (usize, io::Result<()>) {
    let mut stream = Stream::new(seed);
    let mut chunk = vec![0; CHUNK];
    let mut written = 0;
    while written < length {
        let part = &mut chunk[..CHUNK.min(length - written)];
        stream.fill(part);
        if let Err(error) = to.write_all(part) {
            return (written, Err(error));
        }
        written += part.len();
    }
    (written, Ok(()))
}

/// Reads to the end, checks every byte against the seed's stream, and says how many came and how it ended.
pub(crate) fn check(from: &mut impl Read, seed: u64) -> (usize, io::Result<()>) {
    let mut stream = Stream::new(seed);
    let (mut chunk, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut total = 0;
    loop {
        let filled = match fill(from, &mut chunk) {
            Ok(filled) => filled,
            Err((filled, error)) => {
                compare(&mut stream, &chunk[..filled], &mut expected, total);
                return (total + filled, Err(error));
            }
        };
        compare(&mut stream, &chunk[..filled], &mut expected, total);
        total += filled;
        if filled < CHUNK {
            return (total, Ok(()));
        }
    }
}

fn compare(stream: &mut Stream, chunk: &[u8], expected: &mut [u8], offset: usize) {
    stream.fill(expected);
    let differs = chunk
        .iter()
        .zip(&*expected)
        .position(|(is, should)| is != should);
    assert!(
        differs.is_none(),
        "byte {} is wrong",
        offset + differs.unwrap_or(0)
    );
}

/// Reads until the chunk is full or the stream ends, so that chunks are cut as they were written.
fn fill(from: &mut impl Read, chunk: &mut [u8]) -> Result<usize, (usize, io::Error)> {
    let mut filled = 0;
    while filled < chunk.len() {
        match from.read(&mut chunk[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((filled, error)),
        }
    }
    Ok(filled)
}
