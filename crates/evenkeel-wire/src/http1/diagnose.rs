//! Which rule a head breaks whose tokens are wrong. `httparse` only says what kind of token it was; here the place is looked up again, off
//! the fast path.
//!
//! What is found depends on no byte behind the first wrong one, so that it is the same however a message is split.

use super::Refusal;
use super::target::is_of_target;

/// `httparse` takes LF for the end of a line, which others do not. In all that it takes, each CR is followed by LF already.
pub(super) fn no_bare_line_feed(head: &[u8]) -> Result<(), Refusal> {
    let is_bare = |pair: &[u8]| (pair[1] == b'\n') & (pair[0] != b'\r');
    // Without a way out of the loop, the compiler looks at 16 bytes at once.
    let any = head.windows(2).fold(false, |any, pair| any | is_bare(pair));
    if any {
        Err(Refusal::BareLineFeed)
    } else {
        Ok(())
    }
}

/// Why these bytes are not the head of a request.
pub(super) fn request(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::Token => first_words(bytes),
        httparse::Error::Version => version(bytes.splitn(3, |byte| *byte == b' ').nth(2)),
        httparse::Error::NewLine if has_version(first_line(bytes)) => Refusal::BareCarriageReturn,
        httparse::Error::NewLine | httparse::Error::Status => Refusal::RequestLine,
        error => field(error, bytes),
    }
}

/// Why these bytes are not the head of an answer.
pub(super) fn response(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::Version => match version(Some(bytes)) {
            Refusal::Version => Refusal::Version,
            _ => Refusal::StatusLine,
        },
        httparse::Error::Status => Refusal::StatusLine,
        error => field(error, bytes),
    }
}

/// Why these bytes are not header lines, behind a first line that is right.
pub(super) fn field(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::TooManyFields,
        httparse::Error::HeaderValue => value(bytes),
        httparse::Error::NewLine => Refusal::BareCarriageReturn,
        _ if has_folded_line(bytes) => Refusal::Folded,
        _ => Refusal::FieldName,
    }
}

fn first_words(bytes: &[u8]) -> Refusal {
    let mut words = bytes.splitn(2, |byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    let Some(rest) = words.next() else {
        return Refusal::Method;
    };
    if !is_token(method) {
        return Refusal::Method;
    }
    match rest.iter().find(|byte| !is_of_target(**byte)) {
        // An end of the line comes too early, or a second space does.
        Some(b'\r' | b'\n') => Refusal::RequestLine,
        Some(b' ') if rest.first() == Some(&b' ') => Refusal::RequestLine,
        _ => Refusal::Target,
    }
}

/// What begins like a version is one that is not spoken; all else is a line of other words, such as a target with a space in it.
fn version(word: Option<&[u8]>) -> Refusal {
    match word.and_then(|word| word.strip_prefix(b"HTTP/")) {
        Some([b'0'..=b'9', ..]) => Refusal::Version,
        _ => Refusal::RequestLine,
    }
}

pub(super) fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Whether the third word is a version and nothing more: then it was the end of a line that was wrong.
fn has_version(line: &[u8]) -> bool {
    let third = line.splitn(3, |byte| *byte == b' ').nth(2);
    matches!(third, Some(b"HTTP/1.0" | b"HTTP/1.1"))
}

/// The first control character decides: a CR that no LF follows, or another one.
fn value(bytes: &[u8]) -> Refusal {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let wrong = lines.find_map(|line| {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        text.iter()
            .find(|byte| byte.is_ascii_control() && **byte != b'\t')
    });
    match wrong {
        Some(b'\r') => Refusal::BareCarriageReturn,
        _ => Refusal::FieldValue,
    }
}

/// The first line that is no header is the last that was looked at.
fn has_folded_line(bytes: &[u8]) -> bool {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(1);
    let mut odd = lines.filter(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        !is_token(name)
    });
    odd.next()
        .is_some_and(|line| matches!(line[0], b' ' | b'\t'))
}

/// RFC 9110, 5.6.2.
pub(super) fn is_token(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| is_of_token(*byte))
}

pub(super) const fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
