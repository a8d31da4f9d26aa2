//! Bodies as they pass: which of the bytes that came are the body's, and where it ends. Nothing is copied but trailers.

use super::{BodyFraming, ChunkedDecoder, Refusal};

/// What the next bytes of a stream are: first framing, then data, then what is not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPart {
    /// So many bytes are framing: they have been read, and go no further.
    pub skip: usize,
    /// So many bytes behind them are the body's.
    pub data: usize,
    /// The body is over behind these.
    pub is_end: bool,
}

impl BodyPart {
    /// How many bytes have been dealt with. If there are more and this is not the end, they are for the next call; where it is 0, there have to
    /// be more first.
    pub const fn taken(self) -> usize {
        self.skip + self.data
    }
}

/// A body, however it is framed.
#[derive(Debug)]
pub enum BodyDecoder {
    /// There is none, or none any more.
    None,
    /// So many bytes.
    Length(LengthDecoder),
    /// In chunks.
    Chunked(ChunkedDecoder),
    /// To the end of the stream.
    UntilClose,
}

impl BodyDecoder {
    /// At the beginning of a body.
    pub fn new(framing: BodyFraming) -> Self {
        match framing {
            BodyFraming::None => Self::None,
            BodyFraming::Length(length) => Self::Length(LengthDecoder::new(length)),
            BodyFraming::Chunked => Self::Chunked(ChunkedDecoder::new()),
            BodyFraming::UntilClose => Self::UntilClose,
        }
    }

    /// What the next bytes of the stream are.
    ///
    /// # Errors
    ///
    /// They are not what the framing says; where the body ends is not known any more.
    pub fn next(&mut self, bytes: &[u8]) -> Result<BodyPart, Refusal> {
        match self {
            Self::None => Ok(BodyPart {
                skip: 0,
                data: 0,
                is_end: true,
            }),
            Self::Length(decoder) => Ok(decoder.next(bytes)),
            Self::Chunked(decoder) => decoder.next(bytes),
            Self::UntilClose => Ok(BodyPart {
                skip: 0,
                data: bytes.len(),
                is_end: false,
            }),
        }
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// The body has not.
    pub const fn end_of_stream(&self) -> Result<(), Refusal> {
        if self.is_over() || matches!(self, Self::UntilClose) {
            Ok(())
        } else {
            Err(Refusal::BodyCut)
        }
    }

    /// Whether the end has been reached; never of a body that ends with the stream.
    pub const fn is_over(&self) -> bool {
        match self {
            Self::None => true,
            Self::Length(decoder) => decoder.left() == 0,
            Self::Chunked(decoder) => decoder.is_over(),
            Self::UntilClose => false,
        }
    }

    /// The trailers, once the end has been reached: lines as they are passed on, each with its CR and LF.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Self::Chunked(decoder) => decoder.trailers(),
            Self::None | Self::Length(_) | Self::UntilClose => &[],
        }
    }
}

/// A body of a known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthDecoder {
    left: u64,
}

impl LengthDecoder {
    /// A body of so many bytes.
    pub const fn new(length: u64) -> Self {
        Self { left: length }
    }

    /// What the next bytes of the stream are.
    pub fn next(&mut self, bytes: &[u8]) -> BodyPart {
        let data = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.left -= data as u64;
        BodyPart {
            skip: 0,
            data,
            is_end: self.left == 0,
        }
    }

    /// How many bytes are still to come.
    pub const fn left(self) -> u64 {
        self.left
    }
}
