//! The name of a subject as a text, by RFC 4514: the most specific part first, what could be mistaken escaped.

use std::fmt::Write;

use super::der::{OBJECT_IDENTIFIER, Reader, SEQUENCE, SET};

const UTF8: u8 = 0x0c;
const NUMERIC: u8 = 0x12;
const PRINTABLE: u8 = 0x13;
const ASCII: u8 = 0x16;

/// The attributes that have a short name.
const SHORT_NAMES: [(&[u8], &str); 11] = [
    (&[0x55, 0x04, 0x03], "CN"),
    (&[0x55, 0x04, 0x05], "serialNumber"),
    (&[0x55, 0x04, 0x06], "C"),
    (&[0x55, 0x04, 0x07], "L"),
    (&[0x55, 0x04, 0x08], "ST"),
    (&[0x55, 0x04, 0x09], "STREET"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01],
        "UID",
    ),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19],
        "DC",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01],
        "emailAddress",
    ),
];

pub(super) fn text(name: &[u8]) -> Option<String> {
    let mut sets = Reader::new(name);
    let mut parts = Vec::new();
    while !sets.is_empty() {
        parts.push(part(sets.value(SET)?)?);
    }
    parts.reverse();
    Some(parts.join(","))
}

/// One attribute, or several that belong together.
fn part(set: &[u8]) -> Option<String> {
    let mut attributes = Reader::new(set);
    let mut written = Vec::new();
    while !attributes.is_empty() {
        written.push(attribute(attributes.value(SEQUENCE)?)?);
    }
    Some(written.join("+"))
}

fn attribute(bytes: &[u8]) -> Option<String> {
    let mut fields = Reader::new(bytes);
    let kind = fields.value(OBJECT_IDENTIFIER)?;
    let (tag, value) = fields.any()?;
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == kind);
    let kind = short.map_or_else(|| dotted(kind), |(_, name)| (*name).to_owned());
    let text = str::from_utf8(value).ok();
    let text = text.filter(|_| matches!(tag, UTF8 | NUMERIC | PRINTABLE | ASCII));
    Some(match text {
        Some(text) => format!("{kind}={}", escaped(text)),
        None => format!("{kind}=#{tag:02x}{}", hexadecimal(value)),
    })
}

/// An identifier that has no short name, in numbers.
fn dotted(bytes: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in bytes {
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    let first = numbers.first().copied().unwrap_or_default();
    let top = (first / 40).min(2);
    let rest = numbers.iter().skip(1).map(|number| format!(".{number}"));
    format!("{top}.{}{}", first - 40 * top, rest.collect::<String>())
}

/// Controls are written as bytes, so that no name can end a line or a header.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (place, character) in text.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => escaped.extend(['\\', character]),
            '#' | ' ' if place == 0 => escaped.extend(['\\', character]),
            ' ' if place == last => escaped.push_str("\\ "),
            control if control.is_control() => {
                let mut bytes = [0; 4];
                for byte in control.encode_utf8(&mut bytes).bytes() {
                    // A `String` takes every write.
                    let _ = write!(escaped, "\\{byte:02X}");
                }
            }
            plain => escaped.push(plain),
        }
    }
    escaped
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
