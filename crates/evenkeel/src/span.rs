//! Spans of time and amounts of bytes, as people read them: two figures of meaning, not ten.

/// Milliseconds as `0.4s`, `12.3s`, `4m 05s`, `3h 20m` or `12d 4h`.
pub(crate) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{minutes}m {:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// Bytes as `17 B`, `4.2 KiB`, `1.0 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    // Tenths of the unit, in whole numbers: a `u64` of bytes times ten fits a `u128`.
    let mut tenths = u128::from(count) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a blink to a fortnight.
    #[test]
    fn spans_are_readable() {
        let spans = [
            0,
            999,
            59_999,
            60_000,
            3_599_000,
            3_600_000,
            86_400_000,
            1_300_000_000,
        ];
        let read = [
            "0.0s", "0.9s", "59.9s", "1m 00s", "59m 59s", "1h 00m", "1d 0h", "15d 1h",
        ];
        assert_eq!(spans.map(span), read);
    }

    /// From nothing to the largest number there is.
    #[test]
    fn bytes_are_readable() {
        let counts = [0, 1023, 1024, 1_500_000, u64::MAX];
        assert_eq!(
            counts.map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.4 MiB", "15.9 EiB"]
        );
    }
}
