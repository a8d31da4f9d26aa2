//! Chunks (RFC 9112, 7.1), read strictly. Framing is taken byte by byte into the state, so that no buffer has to be kept for it;
//! data stays where it is.

use super::trailers::Trailers;
use super::{BodyPart, Refusal};

/// 64 bits of hexadecimal digits.
const SIZE_DIGITS_MAX: u8 = 16;

/// The most bytes of extensions in one body. Nobody sends any, but chunks of one byte with long extensions are a way to make others work.
const EXTENSION_BYTES_MAX: u16 = 4096;

/// A body in chunks.
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: State,
    size: u64,
    extension_bytes: u16,
    trailers: Trailers,
}

/// What comes next.
///
/// ```text
/// Size ─┬──────────────► SizeLf ─┬─► Data ─► DataCr ─► DataLf ─► Size
///       └─► Space ─► Extension ──┘└─► Trailers ─► Over
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A digit of the size, of which there were so many, or its end.
    Size {
        digits: u8,
    },
    /// White space that only an extension may follow.
    Space,
    Extension,
    SizeLf,
    /// So many bytes of data, at least one.
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// Lines behind the last chunk, at least an empty one.
    Trailers,
    Over,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// At the beginning of a body.
    pub const fn new() -> Self {
        Self {
            state: State::Size { digits: 0 },
            size: 0,
            extension_bytes: 0,
            trailers: Trailers::new(),
        }
    }

    /// What the next bytes of the stream are. All framing among them that stands before data is taken.
    ///
    /// # Errors
    ///
    /// They are no chunks.
    pub fn next(&mut self, bytes: &[u8]) -> Result<BodyPart, Refusal> {
        for (skip, &byte) in bytes.iter().enumerate() {
            match self.state {
                State::Data { left } => return Ok(self.data(left, skip, bytes.len() - skip)),
                State::Over => {
                    return Ok(BodyPart {
                        skip,
                        data: 0,
                        is_end: true,
                    });
                }
                state => self.state = self.step(state, byte)?,
            }
        }
        Ok(BodyPart {
            skip: bytes.len(),
            data: 0,
            is_end: self.is_over(),
        })
    }

    /// Whether the last line has been read.
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The trailers that are passed on, once it is over.
    pub fn trailers(&self) -> &[u8] {
        self.trailers.lines()
    }

    fn data(&mut self, left: u64, skip: usize, there: usize) -> BodyPart {
        let data = usize::try_from(left).map_or(there, |left| left.min(there));
        self.state = match left - data as u64 {
            0 => State::DataCr,
            left => State::Data { left },
        };
        BodyPart {
            skip,
            data,
            is_end: false,
        }
    }

    fn step(&mut self, state: State, byte: u8) -> Result<State, Refusal> {
        match (state, byte) {
            (State::Size { .. } | State::Space | State::Extension, b'\n') => {
                Err(Refusal::BareLineFeed)
            }
            (State::Size { digits }, _) => self.size_step(digits, byte),
            (State::Space, b' ' | b'\t' | b';') => self.extension(byte),
            (State::Space, _) => Err(Refusal::ChunkSize),
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, _) => self.extension(byte),
            (State::SizeLf, b'\n') => Ok(self.after_size()),
            (State::SizeLf, _) => Err(Refusal::BareCarriageReturn),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size { digits: 0 }),
            (State::DataCr | State::DataLf, _) => Err(Refusal::ChunkEnd),
            (State::Trailers, _) if self.trailers.take(byte)? => Ok(State::Over),
            (State::Trailers | State::Data { .. } | State::Over, _) => Ok(state),
        }
    }

    fn size_step(&mut self, digits: u8, byte: u8) -> Result<State, Refusal> {
        if let Some(digit) = (byte as char).to_digit(16) {
            if digits == SIZE_DIGITS_MAX {
                return Err(Refusal::ChunkSize);
            }
            self.size = self.size << 4 | u64::from(digit);
            return Ok(State::Size { digits: digits + 1 });
        }
        match byte {
            b'\r' if digits > 0 => Ok(State::SizeLf),
            b' ' | b'\t' | b';' if digits > 0 => self.extension(byte),
            _ => Err(Refusal::ChunkSize),
        }
    }

    /// Extensions are dropped; each of their bytes counts.
    fn extension(&mut self, byte: u8) -> Result<State, Refusal> {
        let is_control = byte.is_ascii_control() && byte != b'\t';
        if is_control || self.extension_bytes == EXTENSION_BYTES_MAX {
            return Err(Refusal::ChunkExtension);
        }
        self.extension_bytes += 1;
        let is_before = matches!(self.state, State::Size { .. } | State::Space);
        let is_space = matches!(byte, b' ' | b'\t');
        Ok(if is_before && is_space {
            State::Space
        } else {
            State::Extension
        })
    }

    const fn after_size(&mut self) -> State {
        match std::mem::replace(&mut self.size, 0) {
            0 => State::Trailers,
            left => State::Data { left },
        }
    }
}
