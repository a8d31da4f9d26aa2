//! Records: what a handshake's messages are cut into, wherever it suits the sender.

use std::borrow::Cow;

use super::{HELLO_BYTES_MAX, Refused};

/// The record's type, its version, its length.
const RECORD_HEAD_BYTES: usize = 5;
const HANDSHAKE: u8 = 22;
/// The first byte of every version from SSL 3.0 to TLS 1.3. The second one says nothing that can be relied on.
const VERSION_MAJOR: u8 = 3;
const RECORD_BYTES_MAX: usize = 1 << 14;

/// The message's type and its length.
const MESSAGE_HEAD_BYTES: usize = 4;
const CLIENT_HELLO: u8 = 1;

/// What has come of a record, and what is behind it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The body of the message, once all of it is there. A copy only where it comes in several records.
pub(super) fn client_hello(bytes: &[u8]) -> Result<Option<Cow<'_, [u8]>>, Refused> {
    let mut message = Cow::Borrowed(&bytes[..0]);
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((payload, behind)) = split_record(rest)? else {
            return Ok(None);
        };
        append(&mut message, payload);
        if let Some(length) = whole_length(&message)? {
            return Ok(Some(within(message, length)));
        }
        rest = behind;
    }
    Ok(None)
}

/// Splits off the first record; `None` if its head is not whole.
fn split_record(bytes: &[u8]) -> Result<Option<Split<'_>>, Refused> {
    let is_other = |place: usize, wanted: u8| bytes.get(place).is_some_and(|byte| *byte != wanted);
    if is_other(0, HANDSHAKE) || is_other(1, VERSION_MAJOR) {
        return Err(Refused::NotTls);
    }
    let Some((head, rest)) = bytes.split_first_chunk::<RECORD_HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if length == 0 || length > RECORD_BYTES_MAX {
        return Err(Refused::Record);
    }
    Ok(Some(rest.split_at(length.min(rest.len()))))
}

fn append<'a>(message: &mut Cow<'a, [u8]>, payload: &'a [u8]) {
    if message.is_empty() {
        *message = Cow::Borrowed(payload);
    } else {
        message.to_mut().extend_from_slice(payload);
    }
}

/// The length of the message with its head, if all of it is there.
fn whole_length(message: &[u8]) -> Result<Option<usize>, Refused> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(Refused::NotClientHello);
    }
    let Some([_, high, middle, low]) = message.first_chunk::<MESSAGE_HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize + MESSAGE_HEAD_BYTES;
    if length > HELLO_BYTES_MAX {
        return Err(Refused::TooLong);
    }
    Ok((message.len() >= length).then_some(length))
}

/// The message without its head, and without what follows it.
fn within(message: Cow<'_, [u8]>, length: usize) -> Cow<'_, [u8]> {
    match message {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[MESSAGE_HEAD_BYTES..length]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(length);
            bytes.drain(..MESSAGE_HEAD_BYTES);
            Cow::Owned(bytes)
        }
    }
}
