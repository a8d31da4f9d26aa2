//! Values in DER, taken from the front of bytes; `None` where they are not what is asked for.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The version, which only old certificates leave out.
pub(super) const VERSION: u8 = 0xa0;

/// Tags beyond are written in several bytes, and no certificate needs them.
const TAG_NUMBER_MAX: u8 = 0x1e;
/// A length of so many bytes covers whatever fits into memory here.
const LENGTH_BYTES_MAX: usize = 4;

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value, with its tag.
    pub(super) fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        if tag & 0x1f > TAG_NUMBER_MAX {
            return None;
        }
        let (length, rest) = length(rest)?;
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// The next value, which must have that tag.
    pub(super) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.any()
            .filter(|(found, _)| *found == tag)
            .map(|(_, value)| value)
    }

    /// The next value if it has that tag; otherwise it is left.
    pub(super) fn value_if(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.0.first() == Some(&tag) {
            self.value(tag)
        } else {
            None
        }
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    let count = usize::from(first & 0x7f);
    if count == 0 || count > LENGTH_BYTES_MAX {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(count)?;
    let fold = |length: usize, byte: &u8| (length << 8) | usize::from(*byte);
    Some((digits.iter().fold(0, fold), rest))
}
