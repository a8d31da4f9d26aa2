//! "Did you mean": the nearest of some known words.

/// The known word nearest to `written`, if one is near enough to be what was meant.
pub(crate) fn nearest<'w>(
    written: &str,
    known: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|word| (likeness(&written, &word.to_lowercase()), word))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, word)| word)
}

/// Far enough up that `pool` is not taken for `to`, far enough down that `leastconn` is taken for `least-connections`.
const LIKENESS_MIN: f64 = 0.82;

/// Compared beyond this length, a word is no typing error any more, and the comparison would cost its square.
const COMPARED_CHARS_MAX: usize = 64;

/// From 0 for nothing in common to 1 for the same word; a common beginning counts for more.
fn likeness(written: &str, known: &str) -> f64 {
    if written.chars().count() > COMPARED_CHARS_MAX {
        return 0.0;
    }
    if known.len() >= SLIP_CHARS_MIN && strsim::damerau_levenshtein(written, known) <= 1 {
        return ONE_SLIP;
    }
    strsim::jaro_winkler(written, known)
}

/// In a word as short as this, one wrong key is a third of it, and still most likely just that.
const SLIP_CHARS_MIN: usize = 3;

/// One letter too many, too few, wrong, or two exchanged: nearer than any other likeness.
const ONE_SLIP: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    // Slips of the finger and other programs' spellings find their word; unrelated words find none.
    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = [
            "round-robin",
            "least-connections",
            "two-choices",
            "weight",
            "endpoints",
            "shop",
            "to",
        ];
        for (written, expected) in [
            ("wieght", Some("weight")),
            ("Weight", Some("weight")),
            ("roundrobin", Some("round-robin")),
            ("leastconn", Some("least-connections")),
            ("endpoint", Some("endpoints")),
            ("sohp", Some("shop")),
            ("pool", None),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
