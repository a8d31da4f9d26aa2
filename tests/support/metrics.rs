//! A strict reader of Prometheus's text format: what it takes, every other reader takes.
//!
//! Each family has its help, its kind and then all its samples; names and labels are what the format allows; no series comes
//! twice; a histogram's buckets add up.

use std::collections::{BTreeMap, BTreeSet};

/// A whole page.
pub(crate) struct Page {
    families: BTreeMap<String, Family>,
    samples: BTreeMap<Series, f64>,
}

struct Family {
    kind: String,
}

/// A name and its labels, in the order of their names.
type Series = (String, BTreeMap<String, String>);

impl Page {
    /// Panics at the first thing that is not as the format wants it.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line is not ended");
        let mut page = Self {
            families: BTreeMap::new(),
            samples: BTreeMap::new(),
        };
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let (name, help) = keyword(line, "# HELP ");
            assert!(!help.is_empty(), "no help: {line}");
            let (same, kind) = keyword(lines.next().unwrap_or_default(), "# TYPE ");
            assert_eq!(name, same, "help and kind belong together");
            page.begin(name, kind);
            while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
                page.add(name, kind, sample);
            }
        }
        page.check_histograms();
        page
    }

    /// The names of all families.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.families.keys().map(String::as_str).collect()
    }

    /// The value of one series.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels)
            .unwrap_or_else(|| panic!("no {name} with {labels:?}"))
    }

    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let series = (name.to_owned(), labels.iter().map(owned).collect());
        self.samples.get(&series).copied()
    }

    fn begin(&mut self, name: &str, kind: &str) {
        assert!(is_name(name), "{name} is no name");
        assert!(
            ["counter", "gauge", "histogram"].contains(&kind),
            "{kind} is no kind"
        );
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        let kind = kind.to_owned();
        let before = self.families.insert(name.to_owned(), Family { kind });
        assert!(before.is_none(), "{name} comes twice");
    }

    fn add(&mut self, family: &str, kind: &str, line: &str) {
        let (series, value) = read_sample(line);
        let suffix = series.0.strip_prefix(family);
        let suffixes: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(
            suffix.is_some_and(|suffix| suffixes.contains(&suffix)),
            "{line} is not of {family}"
        );
        assert!(kind == "gauge" || value >= 0.0, "{line} is below 0");
        assert!(
            self.samples.insert(series, value).is_none(),
            "{line} comes twice"
        );
    }

    fn check_histograms(&self) {
        let histograms = self.families.iter();
        for (name, _) in histograms.filter(|(_, family)| family.kind == "histogram") {
            let counts = self.samples.iter();
            let count_name = format!("{name}_count");
            for ((_, labels), count) in counts.filter(|((sample, _), _)| *sample == count_name) {
                self.check_buckets(name, labels, *count);
            }
        }
    }

    fn check_buckets(&self, name: &str, labels: &BTreeMap<String, String>, count: f64) {
        let bucket = format!("{name}_bucket");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for ((sample, its), value) in &self.samples {
            let mut its = its.clone();
            if *sample == bucket
                && let Some(bound) = its.remove("le")
                && its == *labels
            {
                buckets.push((number(&bound), *value));
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(
            buckets.is_sorted_by_key(|(_, value)| *value),
            "{name}: {buckets:?}"
        );
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{name}");
        let sum = (format!("{name}_sum"), labels.clone());
        assert!(self.samples.contains_key(&sum), "{name} has no sum");
    }
}

fn keyword<'l>(line: &'l str, keyword: &str) -> (&'l str, &'l str) {
    let rest = line.strip_prefix(keyword);
    let rest = rest.unwrap_or_else(|| panic!("{line:?} does not begin with {keyword:?}"));
    rest.split_once(' ')
        .unwrap_or_else(|| panic!("{line:?} ends too early"))
}

fn read_sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).expect("a name and a value");
    let (name, rest) = line.split_at(end);
    assert!(is_name(name), "{name} is no name: {line}");
    let (labels, value) = match rest.strip_prefix('{') {
        Some(labels) => read_labels(labels, line),
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ').expect("one space before the value");
    ((name.to_owned(), labels), number(value))
}

/// Reads up to the closing brace; gives the labels and what follows it.
fn read_labels<'l>(mut rest: &'l str, line: &str) -> (BTreeMap<String, String>, &'l str) {
    let mut labels = BTreeMap::new();
    loop {
        let (name, quoted) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name) && !name.contains(':'), "{name}: {line}");
        let (value, after) = read_quoted(quoted);
        assert!(labels.insert(name.to_owned(), value).is_none(), "{line}");
        match after.split_at(1) {
            (",", more) => rest = more,
            ("}", value) => return (labels, value),
            _ => panic!("neither a comma nor a brace after {name}: {line}"),
        }
    }
}

/// The text up to its closing quote, with its escapes undone, and what follows.
fn read_quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return (value, &text[place + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                other => panic!("{other:?} is no escape"),
            },
            plain => value.push(plain),
        }
    }
    panic!("{text} does not end its quotes")
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        plain => {
            assert!(
                plain.bytes().all(|byte| b"0123456789.-+e".contains(&byte)),
                "{plain}"
            );
            plain.parse().expect("a number")
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || b"_:".contains(&byte);
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_first) && bytes.all(|byte| is_first(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::Page;

    /// The reader finds what is wrong: otherwise it would prove nothing.
    #[test]
    fn what_the_format_forbids_is_found() {
        let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 1\n";
        assert_eq!(Page::read(good).value("a_total", &[("x", "1")]), 1.0);
        for bad in [
            good.replace(" 1\n", " 1"),
            good.replace("a_total{", "b_total{"),
            good.replace("# HELP a_total A.\n", ""),
            good.replace("\"1\"", "\"1"),
            good.replace(" counter", " gauge"),
            format!("{good}a_total{{x=\"1\"}} 2\n"),
            format!("{good}{good}"),
        ] {
            let read = std::panic::catch_unwind(|| Page::read(&bad));
            assert!(read.is_err(), "taken: {bad}");
        }
    }
}
