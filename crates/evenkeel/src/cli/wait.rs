//! How the value of `--wait` is spelled, for every command that has it. What is waited for, and for how long without a value, is
//! each command's own.

use std::time::Duration;

use crate::config::parse_duration;

/// Reads `10m`, or seconds without a unit. (A configuration wants a unit behind each number, since it is read long after it was
/// written.)
///
/// # Errors
///
/// It is neither, most likely what the command is about: that goes before an option that may stand without a value.
pub(super) fn parse_wait(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    parse_duration(text).map_err(|_| {
        "say how long as in 10m, 1h30m or 90s, or in seconds as in 90; anything else goes before `--wait`"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds need no unit, and what is no time leads to the way out.
    #[test]
    fn a_time_is_told_from_other_words() {
        for text in ["600", "600s", "10m"] {
            assert_eq!(parse_wait(text), Ok(Duration::from_mins(10)), "{text}");
        }
        for text in ["mysql/db1", "1.5", "-1", ""] {
            let refused = parse_wait(text).expect_err(text);
            assert!(refused.contains("before `--wait`"), "{text}: {refused}");
        }
    }
}
