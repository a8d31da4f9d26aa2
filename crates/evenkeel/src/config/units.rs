//! How durations, sizes, percentages, addresses and names are written, and how they are printed again.
//!
//! Every `parse_…` function returns, when it refuses, what the user should write instead; bounds that depend on the key
//! are the reader's business.

mod probe;

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Address;
use evenkeel_proxy::{NotANetwork, PATH_BYTES_MAX, Sender};

use super::suggest::nearest;

pub(super) use probe::{parse_bytes, parse_status_codes, print_bytes, print_status_codes};

/// The most characters in the name of a listener, cluster or endpoint.
pub(super) const NAME_LENGTH_MAX: usize = 63;

/// The largest unit first, so that printing takes as much as it can of each.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The largest unit first.
const SIZE_UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// `"250ms"`, `"2s"`, `"1h30m"`: whole numbers, each with its unit, largest unit first.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let (number, unit, after) = split_quantity(rest);
        let millis = scale_of(unit, &DURATION_UNITS).ok_or_else(|| duration_help(text, unit))?;
        let number: u64 = number.parse().map_err(|_| duration_help(text, unit))?;
        if millis >= smallest {
            return Err("write each unit once, the largest first, as in \"1h30m\"".to_owned());
        }
        smallest = millis;
        total = number
            .checked_mul(millis)
            .and_then(|part| total.checked_add(part))
            .ok_or("that is too long")?;
        rest = after;
    }
    if text.is_empty() {
        return Err(duration_help(text, ""));
    }
    Ok(Duration::from_millis(total))
}

fn duration_help(text: &str, unit: &str) -> String {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match unit {
        _ if all_digits => format!(
            "a number needs a unit: \"{text}ms\", \"{text}s\", \"{text}m\", \"{text}h\" or \"{text}d\""
        ),
        _ if text.contains('.') => {
            let (whole, written) = whole_duration(text)
                .map_or_else(|| ("1500ms".to_owned(), "1.5s"), |whole| (whole, text));
            format!("write whole numbers: \"{whole}\" instead of \"{written}\"")
        }
        _ => "write whole numbers with the units ms, s, m, h, d, as in \"250ms\" or \"1h30m\""
            .to_owned(),
    }
}

/// `"1.5s"` as `"1500ms"`: in the largest unit that leaves a whole number.
fn whole_duration(text: &str) -> Option<String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let (whole, fraction) = number.split_once('.')?;
    let scale = scale_of(unit, &DURATION_UNITS)?;
    let tens = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = whole.parse::<u64>().ok()?.checked_mul(tens)?;
    let parts = parts
        .checked_add(fraction.parse().ok()?)?
        .checked_mul(scale)?;
    let millis = parts.is_multiple_of(tens).then_some(parts / tens)?;
    let (unit, scale) = DURATION_UNITS
        .iter()
        .find(|(_, scale)| millis.is_multiple_of(*scale))?;
    Some(format!("{}{unit}", millis / scale))
}

/// The way [`parse_duration`] reads: what is below a millisecond is not printed.
pub(super) fn print_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, millis) in DURATION_UNITS {
        if rest >= millis {
            text.push_str(&format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// `"64KiB"`: a whole number and one of the units B, KiB, MiB, GiB.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    const HELP: &str =
        "write a whole number and one of the units B, KiB, MiB, GiB, as in \"64KiB\"";
    let (number, unit, after) = split_quantity(text);
    let scale = scale_of(unit, &SIZE_UNITS)
        .filter(|_| after.is_empty())
        .ok_or(HELP)?;
    let number: u64 = number.parse().map_err(|_| HELP)?;
    number
        .checked_mul(scale)
        .ok_or_else(|| "that is too large".to_owned())
}

/// In the largest unit that leaves a whole number.
pub(super) fn print_size(bytes: u64) -> String {
    let fits = |(_, scale): &&(&str, u64)| bytes >= *scale && bytes.is_multiple_of(*scale);
    match SIZE_UNITS.iter().find(fits) {
        Some((unit, scale)) => format!("{}{unit}", bytes / scale),
        None => format!("{bytes}B"),
    }
}

/// `"10.0.0.0/8"`, an address by itself, or `"unix"`.
pub(super) fn parse_sender(text: &str) -> Result<Sender, String> {
    if text == "unix" {
        return Ok(Sender::Unix);
    }
    let parsed = text.parse().map(Sender::Network);
    parsed.map_err(|error| match error {
        NotANetwork::Address if nearest(text, ["unix"]).is_some() => {
            "did you mean \"unix\"?".to_owned()
        }
        NotANetwork::Address => {
            "write an IP address and how many of its first bits count, as in \"10.0.0.0/8\""
                .to_owned()
        }
        NotANetwork::Prefix(most) => format!("behind the \"/\" stands a number from 0 to {most}"),
        NotANetwork::Within(network) => {
            format!("write \"{network}\", or the address alone for just that one")
        }
        NotANetwork::Mapped => "write the IPv4 network itself".to_owned(),
    })
}

/// `"0660"`: three octal digits behind a zero, which may be left out.
pub(super) fn parse_permissions(text: &str) -> Result<u32, String> {
    let digits = match text.len() {
        4 => text.strip_prefix('0'),
        3 => Some(text),
        _ => None,
    };
    digits
        .filter(|digits| digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')))
        .and_then(|digits| u32::from_str_radix(digits, 8).ok())
        .ok_or_else(|| "write four octal digits as chmod takes them, as in \"0660\"".to_owned())
}

/// The way [`parse_permissions`] reads.
pub(super) fn print_permissions(permissions: u32) -> String {
    format!("{permissions:04o}")
}

/// `"50%"`: a whole number and a percent sign.
pub(super) fn parse_percent(text: &str) -> Result<u64, String> {
    let number = text
        .strip_suffix('%')
        .filter(|number| !number.starts_with('+'));
    number
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| "write a whole number and a percent sign, as in \"50%\"".to_owned())
}

/// The way [`parse_percent`] reads.
pub(super) fn print_percent(percent: u32) -> String {
    format!("{percent}%")
}

/// Digits, then everything up to the next digit, then the rest.
fn split_quantity(text: &str) -> (&str, &str, &str) {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(unit_at);
    let next_at = rest
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, after) = rest.split_at(next_at);
    (number, unit, after)
}

fn scale_of(unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
}

/// `"10.0.0.11:3306"`, `"[2001:db8::1]:3306"`, `"unix:/run/app.sock"`.
pub(super) fn parse_address(text: &str) -> Result<Address, String> {
    match text.strip_prefix("unix:") {
        Some(path) => parse_socket_path(path).map(Address::Unix),
        None => parse_ip_address(text).map(Address::Ip),
    }
}

fn parse_socket_path(path: &str) -> Result<Arc<Path>, String> {
    match path.len() {
        _ if path.starts_with('@') => Err(
            "abstract sockets have no permissions and are not supported; write a path".to_owned(),
        ),
        _ if !path.starts_with('/') => {
            Err("write the whole path, as in \"unix:/run/app.sock\"".to_owned())
        }
        _ if path.contains('\0') => Err("a path holds no NUL".to_owned()),
        _ if path.ends_with('/') => Err("that is a directory".to_owned()),
        length if length > PATH_BYTES_MAX => Err(format!(
            "this path has {length} bytes, and the path of a Unix socket has at most {PATH_BYTES_MAX}"
        )),
        _ => Ok(Arc::from(Path::new(path))),
    }
}

fn parse_ip_address(text: &str) -> Result<SocketAddr, String> {
    let parsed = text.parse().map_err(|_| address_help(text))?;
    check_is_one_machine(parsed)?;
    Ok(parsed)
}

/// What no connection can be made to, and what would be IPv4 in the clothes of IPv6, which neither listens nor compares like it.
fn check_is_one_machine(address: SocketAddr) -> Result<(), String> {
    let port = address.port();
    match address.ip() {
        ip if ip.is_multicast() => Err("a multicast address takes no connections".to_owned()),
        IpAddr::V4(Ipv4Addr::BROADCAST) => Err("that is the broadcast address".to_owned()),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(Ok(()), |ip| {
            Err(format!("write the IPv4 address itself: \"{ip}:{port}\""))
        }),
        IpAddr::V4(_) => Ok(()),
    }
}

/// Says which of the common mistakes it was.
pub(super) fn address_help(text: &str) -> String {
    if text.starts_with('/') {
        return format!("for a Unix socket write \"unix:{text}\"");
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return format!("add a port, as in \"{}\"", SocketAddr::new(ip, 3306));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return "write an IP address and a port, as in \"10.0.0.11:3306\" or \"[::1]:3306\""
            .to_owned();
    };
    match port.parse::<u16>() {
        Err(_) => format!("the port must be a number from 0 to {}", u16::MAX),
        Ok(port) if host.is_empty() || host == "*" => missing_ip_help(port),
        Ok(port) if host.parse::<Ipv6Addr>().is_ok() => {
            format!("put an IPv6 address in brackets: \"[{host}]:{port}\"")
        }
        Ok(port) if host == "localhost" => {
            format!("write \"127.0.0.1:{port}\" or \"[::1]:{port}\"")
        }
        Ok(_) if looks_like_a_host_name(host) => {
            format!(
                "names are resolved for endpoints alone: write the IP address of \"{host}\" (`getent ahosts {host}` prints it)"
            )
        }
        Ok(_) => format!("\"{host}\" is no IP address"),
    }
}

/// For a port by itself.
pub(super) fn missing_ip_help(port: impl Display) -> String {
    format!(
        "put an IP address in front: \"127.0.0.1:{port}\", or \"0.0.0.0:{port}\" to listen on every IPv4 address"
    )
}

fn looks_like_a_host_name(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Lower-case letters, digits, `-` and `_`, beginning with a letter or a digit.
pub(super) fn check_name(text: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if text.is_empty() || text.starts_with(['-', '_']) {
        return Err("a name begins with a lower-case letter or a digit".to_owned());
    }
    if text.chars().count() > NAME_LENGTH_MAX {
        return Err(format!("a name has at most {NAME_LENGTH_MAX} characters"));
    }
    match text.chars().find(|c| !allowed(*c)) {
        None => Ok(()),
        Some(stray) => Err(format!(
            "a name has lower-case letters, digits, `-` and `_`, and no `{}`",
            stray.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A duration is read in any mix of units and printed in the largest ones.
    #[test]
    fn durations_are_read_and_printed() {
        for (text, millis, printed) in [
            ("250ms", 250, "250ms"),
            ("2s", 2_000, "2s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("1d1ms", 86_400_001, "1d1ms"),
            ("0s", 0, "0s"),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(text), Ok(duration), "{text}");
            assert_eq!(print_duration(duration), printed);
        }
    }

    // Each common mistake with a duration is told apart.
    #[test]
    fn a_refused_duration_says_what_to_write() {
        for (text, part) in [
            ("5", "\"5s\""),
            ("1.5s", "\"1500ms\" instead of \"1.5s\""),
            ("0.5h", "\"30m\" instead of \"0.5h\""),
            ("0.0001s", "\"1500ms\" instead of \"1.5s\""),
            ("5sec", "the units ms, s, m, h, d"),
            ("", "the units"),
            ("-5s", "the units"),
            ("5s1m", "the largest first"),
            ("5s5s", "each unit once"),
            ("18446744073709551615d", "too long"),
            ("99999999999999999999s", "the units"),
            ("5 s", "the units"),
            ("٣s", "the units"),
        ] {
            let refused = parse_duration(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    // A size is printed in the largest unit that divides it.
    #[test]
    fn sizes_are_read_and_printed() {
        for (text, bytes, printed) in [
            ("64KiB", 65_536, "64KiB"),
            ("1024KiB", 1 << 20, "1MiB"),
            ("100B", 100, "100B"),
            ("0B", 0, "0B"),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(print_size(bytes), printed);
        }
        for text in ["64", "64KB", "KiB", "1KiB1B", "", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    // A percentage is a whole number with its sign.
    #[test]
    fn percentages_are_read_and_printed() {
        assert_eq!(parse_percent("125%"), Ok(125));
        assert_eq!(print_percent(125), "125%");
        for text in ["125", "1.5%", "%", "-1%"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    // Each common mistake with an address is told apart.
    #[test]
    fn a_refused_address_says_what_to_write() {
        for (text, part) in [
            ("10.0.0.11", "add a port"),
            ("::1", "add a port, as in \"[::1]:3306\""),
            (":5555", "\"0.0.0.0:5555\""),
            ("*:5555", "\"0.0.0.0:5555\""),
            ("db1.example:3306", "for endpoints alone"),
            ("localhost:3306", "\"127.0.0.1:3306\""),
            ("2001:db8::1::3306", "no IP address"),
            ("fe80::1:2:3:4:5:6:80", "in brackets"),
            ("10.0.0.300:80", "no IP address"),
            ("10.0.0.1:99999", "from 0 to 65535"),
            ("3306", "an IP address and a port"),
            ("/run/app.sock", "write \"unix:/run/app.sock\""),
            ("unix:app.sock", "the whole path"),
            ("unix:@app", "abstract"),
            ("unix:/run/", "a directory"),
            ("unix:", "the whole path"),
            (
                &format!("unix:/{}", "a".repeat(PATH_BYTES_MAX)),
                "has 108 bytes",
            ),
            ("[::ffff:127.0.0.1]:0", "\"127.0.0.1:0\""),
            ("224.0.0.1:99", "multicast"),
            ("[ff02::1]:99", "multicast"),
            ("255.255.255.255:9", "broadcast"),
        ] {
            let refused = parse_address(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    // The longest path is one, and an address is printed as it is written.
    #[test]
    fn a_path_is_an_address() {
        let longest = format!("unix:/{}", "a".repeat(PATH_BYTES_MAX - 1));
        for text in ["unix:/run/app.sock", &longest, "10.0.0.11:3306"] {
            assert_eq!(parse_address(text).unwrap().to_string(), text);
        }
    }

    // Each mistake with a network is told apart.
    #[test]
    fn a_refused_network_says_what_to_write() {
        for text in ["10.0.0.0/8", "2001:db8::/32", "unix"] {
            assert_eq!(parse_sender(text).unwrap().to_string(), text);
        }
        for (text, part) in [
            ("10.0.0.1/8", "write \"10.0.0.0/8\""),
            ("10.0.0.0/33", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("::ffff:10.0.0.0/104", "IPv4 network itself"),
            ("unx", "did you mean \"unix\""),
            ("everybody", "how many of its first bits"),
        ] {
            let refused = parse_sender(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    // Permissions are octal, as chmod takes them.
    #[test]
    fn permissions_are_octal_digits() {
        assert_eq!(parse_permissions("0660"), Ok(0o660));
        assert_eq!(parse_permissions("777"), Ok(0o777));
        assert_eq!(print_permissions(0o600), "0600");
        for text in [
            "",
            "66",
            "0o660",
            "0668",
            "4755",
            "00660",
            "+660",
            "rw-rw----",
        ] {
            assert!(parse_permissions(text).is_err(), "{text}");
        }
    }

    // Names are what fits a command line, a metric label and a file name without quoting.
    #[test]
    fn names_are_plain_words() {
        for name in ["mysql", "db-1", "9_lives", &"a".repeat(NAME_LENGTH_MAX)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "-x",
            "_x",
            "MySQL",
            "a/b",
            "a b",
            "ä",
            &"a".repeat(NAME_LENGTH_MAX + 1),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
