//! How status codes, and bytes that are no text, are written and printed.

use evenkeel_proxy::settings::StatusRange;

/// The most codes and ranges in one list.
const RANGES_MAX: usize = 32;

/// `"200-299, 304"`.
pub(in crate::config) fn parse_status_codes(text: &str) -> Result<Vec<StatusRange>, String> {
    let ranges: Option<Vec<StatusRange>> = text
        .split(',')
        .map(|range| parse_range(range.trim()))
        .collect();
    let ranges = ranges.ok_or("write codes from 100 to 599, as in \"200-299, 304\"")?;
    match ranges.len() {
        0..=RANGES_MAX => Ok(ranges),
        _ => Err(format!(
            "at most {RANGES_MAX} codes and ranges are possible"
        )),
    }
}

fn parse_range(text: &str) -> Option<StatusRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (parse_code(first)?, parse_code(last)?);
    (first <= last).then_some(StatusRange { first, last })
}

fn parse_code(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let code = text.parse().ok().filter(|_| digits)?;
    (100..600).contains(&code).then_some(code)
}

/// The way [`parse_status_codes`] reads.
pub(in crate::config) fn print_status_codes(ranges: &[StatusRange]) -> String {
    let ranges: Vec<String> = ranges
        .iter()
        .map(|range| match *range {
            StatusRange { first, last } if first == last => first.to_string(),
            StatusRange { first, last } => format!("{first}-{last}"),
        })
        .collect();
    ranges.join(", ")
}

/// A text in which `\r`, `\n`, `\t`, `\0`, `\\` and `\xff` stand for bytes; everything else stands for itself.
pub(in crate::config) fn parse_bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, after) = parse_escape(&rest[at + 1..]).ok_or(
            "a backslash begins \\r, \\n, \\t, \\0, \\\\ or \\xff; one of its own is \\\\",
        )?;
        bytes.push(byte);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn parse_escape(text: &str) -> Option<(u8, &str)> {
    let mut characters = text.chars();
    let byte = match characters.next()? {
        'r' => b'\r',
        'n' => b'\n',
        't' => b'\t',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let digits = text.get(1..3)?;
            let byte = u8::from_str_radix(digits, 16).ok()?;
            return Some((byte, text.get(3..)?));
        }
        _ => return None,
    };
    Some((byte, characters.as_str()))
}

/// The way [`parse_bytes`] reads.
pub(in crate::config) fn print_bytes(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b'\r' => "\\r".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\\' => "\\\\".to_owned(),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Codes, ranges, spaces around them; and nothing that is no status.
    #[test]
    fn codes_and_ranges() {
        let ranges = parse_status_codes("200-299, 304").unwrap();
        assert_eq!(ranges.len(), 2);
        assert_eq!(print_status_codes(&ranges), "200-299, 304");
        for wrong in [
            "", "2xx", "200-", "-299", "299-200", "99", "600", "200,,201", "+20",
        ] {
            assert!(parse_status_codes(wrong).is_err(), "{wrong}");
        }
        assert!(parse_status_codes(&["200"; 33].join(",")).is_err());
    }

    /// Escapes, and what looks like one.
    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(parse_bytes(r"PING\r\n").unwrap(), b"PING\r\n");
        assert_eq!(parse_bytes(r"\x00\xfF\\é").unwrap(), b"\x00\xff\\\xc3\xa9");
        for wrong in [r"\", r"\q", r"\x", r"\x1", r"\xgg", r"\xé"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Whatever the bytes, they can be written down and read again.
        #[test]
        fn printed_bytes_are_read_again(bytes: Vec<u8>) {
            prop_assert_eq!(parse_bytes(&print_bytes(&bytes)).unwrap(), bytes);
        }

        /// Any text is read, or refused with an advice.
        #[test]
        fn any_text_is_survived(text: String) {
            let _ = parse_bytes(&text);
            let _ = parse_status_codes(&text);
        }
    }
}
