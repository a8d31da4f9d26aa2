//! Moments, as seconds since 1970.

use super::der::Reader;

/// A year in two digits, up to 2049.
const SHORT: u8 = 0x17;
/// A year in four digits.
const LONG: u8 = 0x18;

/// From when to when.
pub(super) fn validity(bytes: &[u8]) -> Option<(i64, i64)> {
    let mut moments = Reader::new(bytes);
    Some((moment(moments.any()?)?, moment(moments.any()?)?))
}

fn moment((tag, text): (u8, &[u8])) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    match (tag, digits.len()) {
        (SHORT, 12) => {
            let (year, rest) = digits.split_at(2);
            let year = number(year)?;
            seconds(if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (LONG, 14) => {
            let (year, rest) = digits.split_at(4);
            seconds(number(year)?, rest)
        }
        _ => None,
    }
}

/// `rest` is month, day, hour, minute, second, of two digits each.
fn seconds(year: i64, rest: &[u8]) -> Option<i64> {
    let mut pairs = rest.chunks(2).map(number);
    let mut within = |range: std::ops::RangeInclusive<i64>| {
        pairs.next().flatten().filter(|value| range.contains(value))
    };
    let (month, day) = (within(1..=12)?, within(1..=31)?);
    let (hour, minute, second) = (within(0..=23)?, within(0..=59)?, within(0..=59)?);
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn number(digits: &[u8]) -> Option<i64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Days since 1970-01-01 in the Gregorian calendar; Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". Years begin
/// with March there, so that the leap day is their last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
