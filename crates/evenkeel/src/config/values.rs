//! What the value of one key may be: a TOML value and the key's form in, the value or an advice out.

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_proxy::HostPattern;
use evenkeel_proxy::discovery::DnsName;
use evenkeel_proxy::settings::StatusRange;
use toml::de::DeValue;

use super::diagnostics::shown;
use super::endpoint_address::{
    EndpointAddress, check_endpoint, parse_endpoint_address, parse_name_server, parse_service,
};
use super::keys::{Form, Off};
use super::suggest::nearest;
use super::units::{
    missing_ip_help, parse_address, parse_bytes, parse_duration, parse_percent, parse_permissions,
    parse_size, parse_status_codes,
};
use super::words::{Words, names};

/// What the user should write instead.
pub(super) type Advice = String;

/// The value of a key that takes some words and otherwise a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordOrPath {
    Word(&'static str),
    Path(String),
}

/// What is there instead of what is wanted.
pub(super) fn found(value: &DeValue<'_>) -> Advice {
    match value {
        DeValue::String(_) => "this is a string".to_owned(),
        DeValue::Integer(_) => "this is a whole number".to_owned(),
        DeValue::Float(_) => "this is a number with a fraction".to_owned(),
        DeValue::Boolean(_) => "this is true or false".to_owned(),
        DeValue::Datetime(_) => "this is a date or time".to_owned(),
        DeValue::Array(_) => "this is a list".to_owned(),
        DeValue::Table(_) => "this is a table".to_owned(),
    }
}

pub(super) fn string<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Advice> {
    value.as_str().ok_or_else(|| found(value))
}

/// A string; a number in its place is told how to become one.
fn quantity<'v>(value: &'v DeValue<'_>, units: &[&str]) -> Result<&'v str, Advice> {
    match value {
        DeValue::Integer(number) => {
            let examples: Vec<_> = units
                .iter()
                .map(|unit| format!("\"{number}{unit}\""))
                .collect();
            let examples = examples.join(" or ");
            Err(format!("write a string with a unit, such as {examples}"))
        }
        other => string(other),
    }
}

/// Splits `"off"` from everything else.
fn off_or<T>(
    off: Off,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, Advice>,
) -> Result<Option<T>, Advice> {
    match (text, off) {
        ("off", Off::Allowed) => Ok(None),
        ("off", Off::Refused) => Err("it cannot be turned off".to_owned()),
        _ => parse(text).map(Some),
    }
}

pub(super) fn whole(form: &Form, value: &DeValue<'_>) -> Result<u64, Advice> {
    let integer = value.as_integer().ok_or_else(|| found(value))?;
    let Form::Whole { min, max } = form else {
        return Err(form_mismatch());
    };
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) if number < i128::from(*min) => Err("that is too small".to_owned()),
        Ok(number) if number > i128::from(*max) => Err("that is too large".to_owned()),
        Ok(number) => u64::try_from(number).map_err(|_| "that is too large".to_owned()),
        Err(_) => Err("that is too large".to_owned()),
    }
}

pub(super) fn duration(form: &Form, value: &DeValue<'_>) -> Result<Option<Duration>, Advice> {
    let Form::Duration { min, max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(
        *off,
        quantity(value, &["ms", "s"])?,
        |text| match parse_duration(text)? {
            parsed if parsed < *min => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too long".to_owned()),
            parsed => Ok(parsed),
        },
    )
}

pub(super) fn size(form: &Form, value: &DeValue<'_>) -> Result<Option<u64>, Advice> {
    let Form::Size { max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(*off, quantity(value, &["KiB"])?, |text| {
        match parse_size(text)? {
            0 => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too large".to_owned()),
            parsed => Ok(parsed),
        }
    })
}

pub(super) fn percent(form: &Form, value: &DeValue<'_>) -> Result<Option<u64>, Advice> {
    let Form::Percent { min, max, off } = form else {
        return Err(form_mismatch());
    };
    off_or(
        *off,
        quantity(value, &["%"])?,
        |text| match parse_percent(text)? {
            parsed if parsed < *min => Err(too_small(*off)),
            parsed if parsed > *max => Err("that is too large".to_owned()),
            parsed => Ok(parsed),
        },
    )
}

fn too_small(off: Off) -> Advice {
    match off {
        Off::Allowed => "that is too small; \"off\" turns it off".to_owned(),
        Off::Refused => "that is too small".to_owned(),
    }
}

pub(super) fn text(form: &Form, value: &DeValue<'_>) -> Result<String, Advice> {
    let text = string(value)?;
    let Form::Text { bytes_max } = form else {
        return Err(form_mismatch());
    };
    match text.len() {
        0 => Err("to send nothing, leave the key out".to_owned()),
        length if length > *bytes_max => Err(format!("this has {length} bytes")),
        _ => Ok(text.to_owned()),
    }
}

pub(super) fn status_codes(_: &Form, value: &DeValue<'_>) -> Result<Vec<StatusRange>, Advice> {
    match value {
        DeValue::Integer(code) => Err(format!("write a string, such as \"{code}\"")),
        other => parse_status_codes(string(other)?),
    }
}

pub(super) fn bytes(form: &Form, value: &DeValue<'_>) -> Result<Vec<u8>, Advice> {
    let written = string(value)?;
    let Form::Bytes { bytes_max } = form else {
        return Err(form_mismatch());
    };
    match parse_bytes(written)? {
        empty if empty.is_empty() => Err("to mean nothing, leave the key out".to_owned()),
        long if long.len() > *bytes_max => Err(format!("this has {} bytes", long.len())),
        parsed => Ok(parsed),
    }
}

pub(super) fn file(form: &Form, value: &DeValue<'_>) -> Result<String, Advice> {
    let written = string(value)?;
    let Form::File { bytes_max } = form else {
        return Err(form_mismatch());
    };
    match written.len() {
        0 => Err("for no file, leave the key out".to_owned()),
        length if length > *bytes_max => Err(format!("this has {length} bytes")),
        _ if written.contains('\0') => Err("a path holds no NUL".to_owned()),
        _ => Ok(written.to_owned()),
    }
}

pub(super) fn word<T: Words>(value: &DeValue<'_>) -> Result<T, Advice> {
    let written = string(value)?;
    T::of(written).ok_or_else(|| advise_word(written, names::<T>()))
}

/// Words of other programs, and what they are called here, where the two do not look alike.
const ELSEWHERE: [(&str, &str); 9] = [
    ("ip_hash", "source-hash"),
    ("iphash", "source-hash"),
    ("rr", "round-robin"),
    ("wrr", "round-robin"),
    ("lc", "least-connections"),
    ("p2c", "two-choices"),
    ("uri", "hash"),
    ("on", "auto"),
    ("yes", "auto"),
];

fn advise_word(written: &str, known: Vec<&'static str>) -> Advice {
    let mut elsewhere = ELSEWHERE.iter();
    let here = elsewhere.find(|(theirs, ours)| *theirs == written && known.contains(ours));
    match here
        .map(|(_, ours)| *ours)
        .or_else(|| nearest(written, known))
    {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("\"{}\" is none of them", shown(written)),
    }
}

pub(super) fn word_or_path(form: &Form, value: &DeValue<'_>) -> Result<WordOrPath, Advice> {
    let Form::WordOrPath { words, bytes_max } = form else {
        return Err(form_mismatch());
    };
    let written = string(value)?;
    if let Some(word) = words.iter().find(|word| **word == written) {
        return Ok(WordOrPath::Word(word));
    }
    match nearest(written, words.iter().copied()) {
        _ if written.contains('\0') => Err("a path holds no NUL".to_owned()),
        _ if written.len() > *bytes_max => Err(format!(
            "this has {} bytes, and a path here has at most {bytes_max}",
            written.len()
        )),
        _ if written.contains('/') => Ok(WordOrPath::Path(written.to_owned())),
        Some(word) => Err(format!("did you mean \"{word}\"?")),
        None => Err(format!(
            "for a file beside this one, write \"./{}\"",
            shown(written)
        )),
    }
}

pub(super) fn address(form: &Form, value: &DeValue<'_>) -> Result<Address, Advice> {
    if let (DeValue::Integer(port), Form::BindAddress) = (value, form) {
        return Err(missing_ip_help(port));
    }
    match (form, parse_address(string(value)?)?) {
        (Form::EndpointAddress, Address::Ip(ip)) => check_endpoint(ip).map(Address::Ip),
        (_, parsed) => Ok(parsed),
    }
}

pub(super) fn endpoint_address(_: &Form, value: &DeValue<'_>) -> Result<EndpointAddress, Advice> {
    parse_endpoint_address(string(value)?)
}

pub(super) fn service(_: &Form, value: &DeValue<'_>) -> Result<DnsName, Advice> {
    parse_service(string(value)?)
}

pub(super) fn host_name(_: &Form, value: &DeValue<'_>) -> Result<DnsName, Advice> {
    let written = string(value)?;
    // The dot at its end is no part of a name in a certificate.
    let parsed = DnsName::parse(written.strip_suffix('.').unwrap_or(written));
    parsed.map_err(|error| error.to_string())
}

pub(super) fn host_pattern(_: &Form, value: &DeValue<'_>) -> Result<HostPattern, Advice> {
    let parsed = string(value)?.parse::<HostPattern>();
    parsed.map_err(|error| error.to_string())
}

pub(super) fn name_server(value: &DeValue<'_>) -> Result<SocketAddr, Advice> {
    parse_name_server(string(value)?)
}

pub(super) fn permissions(_: &Form, value: &DeValue<'_>) -> Result<u32, Advice> {
    match value {
        DeValue::Integer(number) => Err(format!("write a string: \"0{number}\"")),
        other => parse_permissions(string(other)?),
    }
}

/// Cannot happen while every key of the table is read by the method of its form, which a test holds: `all-keys.toml` has them all.
fn form_mismatch() -> Advice {
    debug_assert!(false, "a key is read by a method that is not its form's");
    "the program reads this key in the wrong way; please report it".to_owned()
}
