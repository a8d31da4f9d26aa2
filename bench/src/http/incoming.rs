//! Messages that come: heads are parsed strictly, bodies are compared with the pattern as far as a cheap load can.

use std::borrow::Cow;

use anyhow::{Context, Result, anyhow, bail};
use httparse::{Header, Status};

use super::UNCOUNTED;
use super::outgoing::{NUMBER_LENGTH, place};
use crate::pattern::Pattern;

/// The longest head: proxies may add some headers to ours.
const HEAD_MAX: usize = 8 * 1024;

const HEADERS_MAX: usize = 32;

/// What a probe asks for, and the bytes it is answered.
const PROBE_PATH: &str = "/health";
const PROBE_ANSWER: u64 = 2;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Of the exchange.
    pub(super) number: u64,
    /// Bytes of the body that follows.
    pub(super) body: u64,
    /// Bytes of the answer that is asked for; 0 in an answer.
    pub(super) asked_for: u64,
}

/// Reads a head and tells its length; none if it is not whole.
pub(super) type Parse = fn(&[u8]) -> Result<Option<(usize, Head)>>;

/// The message that is coming.
#[derive(Default)]
pub(super) enum Incoming {
    /// Nothing has come yet.
    #[default]
    Awaited,
    /// A part of the head.
    Head(Vec<u8>),
    /// The head, and so many bytes of the body.
    Body(Head, u64),
}

impl Incoming {
    pub(super) const fn is_awaited(&self) -> bool {
        matches!(self, Self::Awaited)
    }

    /// Takes the bytes that have come. Returns the head when the message is whole, and waits for the next one then.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        pattern: &Pattern,
        parse: Parse,
    ) -> Result<Option<Head>> {
        match std::mem::take(self) {
            Self::Awaited => self.take_head(bytes.into(), pattern, parse),
            Self::Head(mut begun) => {
                begun.extend_from_slice(bytes);
                self.take_head(begun.into(), pattern, parse)
            }
            Self::Body(head, received) => self.take_body(head, received, bytes, pattern),
        }
    }

    fn take_head(
        &mut self,
        bytes: Cow<'_, [u8]>,
        pattern: &Pattern,
        parse: Parse,
    ) -> Result<Option<Head>> {
        let Some((length, head)) = parse(&bytes)? else {
            if bytes.len() > HEAD_MAX {
                bail!("a head of more than {HEAD_MAX} bytes");
            }
            *self = Self::Head(bytes.into_owned());
            return Ok(None);
        };
        self.take_body(head, 0, &bytes[length..], pattern)
    }

    fn take_body(
        &mut self,
        head: Head,
        received: u64,
        bytes: &[u8],
        pattern: &Pattern,
    ) -> Result<Option<Head>> {
        let after = received + bytes.len() as u64;
        if after > head.body {
            bail!(
                "{} bytes too many in exchange {}",
                after - head.body,
                head.number
            );
        }
        pattern
            .check(place(head.number).wrapping_add(received), bytes)
            .with_context(|| format!("a wrong body in exchange {}", head.number))?;
        if after == head.body {
            return Ok(Some(head));
        }
        *self = Self::Body(head, after);
        Ok(None)
    }
}

/// What a client is answered: 200, an `ETag` that is the exchange's number, and a length.
pub(super) fn parse_answer(bytes: &[u8]) -> Result<Option<(usize, Head)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let parsed = answer.parse(bytes);
    let parsed = parsed.map_err(|fault| anyhow!("a wrong answer: {fault}"))?;
    let Status::Complete(length) = parsed else {
        return Ok(None);
    };
    if answer.code != Some(200) || answer.version != Some(1) {
        bail!("the answer is {:?} {:?}", answer.code, answer.reason);
    }
    let tag = only(answer.headers, "etag")?.context("an answer without its number")?;
    let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    let head = Head {
        number: number(tag.context("a tag without quotes")?)?,
        body: body_length(answer.headers)?.context("an answer without its length")?,
        asked_for: 0,
    };
    Ok(Some((length, head)))
}

/// What an endpoint is asked: `/ANSWER/NUMBER`, or what probes ask.
pub(super) fn parse_request(bytes: &[u8]) -> Result<Option<(usize, Head)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(bytes);
    let parsed = parsed.map_err(|fault| anyhow!("a wrong request: {fault}"))?;
    let Status::Complete(length) = parsed else {
        return Ok(None);
    };
    only(request.headers, "host")?.context("a request without a host")?;
    let (number, asked_for) = target(request.path.unwrap_or_default())?;
    let head = Head {
        number,
        body: body_length(request.headers)?.unwrap_or(0),
        asked_for,
    };
    Ok(Some((length, head)))
}

/// The exchange's number, and the bytes that are asked for.
fn target(path: &str) -> Result<(u64, u64)> {
    if path == PROBE_PATH {
        return Ok((UNCOUNTED, PROBE_ANSWER));
    }
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let (asked_for, digits) = parts.with_context(|| format!("nobody asks for {path}"))?;
    Ok((number(digits)?, asked_for.parse()?))
}

fn number(digits: &str) -> Result<u64> {
    if digits.len() != NUMBER_LENGTH {
        bail!("{digits} is no exchange's number");
    }
    u64::from_str_radix(digits, 16).with_context(|| format!("{digits} is no exchange's number"))
}

/// All bodies here have a length.
fn body_length(headers: &[Header<'_>]) -> Result<Option<u64>> {
    if only(headers, "transfer-encoding")?.is_some() {
        bail!("a body in chunks, which nobody has sent");
    }
    let length = only(headers, "content-length")?;
    length.map(|length| Ok(length.parse()?)).transpose()
}

/// The value of a header that may be there once.
fn only<'a>(headers: &[Header<'a>], name: &str) -> Result<Option<&'a str>> {
    let mut values = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name));
    let value = values.next();
    if values.next().is_some() {
        bail!("{name} is there twice");
    }
    let value = value.map(|header| std::str::from_utf8(header.value));
    value
        .transpose()
        .with_context(|| format!("{name} is no text"))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::http::outgoing::{Outgoing, Template};
    use crate::plan::Request;

    const POST: Request = Request::Post(100);

    static PATTERN: LazyLock<Pattern> = LazyLock::new(Pattern::new);

    fn sent(mut template: Template, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        template
            .send(&mut Outgoing::new(number), &PATTERN, &mut bytes)
            .expect("a vector takes everything");
        bytes
    }

    /// What comes of these pieces, the last of which ends the message.
    fn taken(pieces: &[&[u8]], parse: Parse) -> Result<Option<Head>> {
        let mut incoming = Incoming::default();
        let mut last = None;
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            assert_eq!(last, None, "it was whole before its end");
            last = incoming.take(piece, &PATTERN, parse)?;
        }
        Ok(last)
    }

    fn fault(message: &[u8]) -> String {
        let taken = taken(&[message], parse_answer);
        format!("{:#}", taken.expect_err("it is wrong"))
    }

    /// A request and its answer, split at every byte, are what was sent, and whole with their last byte.
    #[test]
    fn a_message_may_come_in_any_pieces() {
        let request = (
            sent(Template::request(POST, 300), 7),
            parse_request as Parse,
        );
        let answer = (sent(Template::answer(300), 7), parse_answer as Parse);
        let heads = [(100, 300), (300, 0)];
        for ((message, parse), (body, asked_for)) in [request, answer].into_iter().zip(heads) {
            let expected = Head {
                number: 7,
                body,
                asked_for,
            };
            for split in 0..message.len() {
                let (first, second) = message.split_at(split);
                let head = taken(&[first, second], parse).expect("it is right");
                assert_eq!(head, Some(expected), "split at {split}");
            }
        }
    }

    /// A body with one wrong byte, wherever it is, belongs to no exchange.
    #[test]
    fn a_wrong_byte_in_a_short_body_is_noticed() {
        let right = sent(Template::answer(128), 7);
        for back in 1..=128 {
            let mut wrong = right.clone();
            let place = wrong.len() - back;
            wrong[place] ^= 1;
            assert!(
                fault(&wrong).contains("a wrong body"),
                "{back} from the end"
            );
        }
    }

    /// The body of another exchange is wrong, and so is one that is too long.
    #[test]
    fn a_body_of_another_exchange_is_noticed() {
        let (seven, eight) = (
            sent(Template::answer(128), 7),
            sent(Template::answer(128), 8),
        );
        let body = seven.len() - 128;
        assert!(fault(&[&seven[..body], &eight[body..]].concat()).contains("a wrong body"));
        assert!(fault(&[&seven[..], b"!"].concat()).contains("1 bytes too many"));
    }

    /// An answer without a length, with two, with another status or in chunks is not what an endpoint has sent.
    #[test]
    fn a_wrong_head_is_noticed() {
        let answer = |line: &str, headers: &str| {
            let tag = "etag: \"0000000000000007\"";
            fault(format!("HTTP/1.1 {line}\r\n{tag}\r\n{headers}\r\n").as_bytes())
        };
        assert!(answer("200 OK", "").contains("without its length"));
        let twice = "content-length: 1\r\nContent-Length: 1\r\n";
        assert!(answer("200 OK", twice).contains("is there twice"));
        assert!(answer("503 No", "content-length: 0\r\n").contains("503"));
        assert!(answer("200 OK", "transfer-encoding: chunked\r\n").contains("chunks"));
    }
}
