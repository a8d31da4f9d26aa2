//! Prometheus's text format, version 0.0.4: families one after the other, each with its help, its kind and its samples.
//!
//! Pure writing. What is measured is in `families`, where the figures come from in the modules beside it.

use std::fmt::{self, Display, Write};

use evenkeel_proxy::telemetry::histogram::Histogram;

/// A metric as it is documented: its name, its kind, its labels, and what it says.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only ever grows while the process runs.
    Counter,
    /// What is now.
    Gauge,
    /// Durations by size.
    Histogram,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// What is being written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// Begins a family; all its samples follow before the next one begins, as the format wants it.
    pub(super) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let Family {
            name, kind, help, ..
        } = family;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Samples { page: self, family }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing into a String does not fail.
        let _ = self.text.write_fmt(text);
    }
}

/// The samples of one family.
pub(super) struct Samples<'p> {
    page: &'p mut Page,
    family: &'static Family,
}

impl Samples<'_> {
    /// One sample; the values are those of the family's labels, in their order.
    pub(super) fn put(&mut self, values: &[&str], value: impl Display) {
        self.line("", values, None, value);
    }

    /// The one sample of a family without labels.
    pub(super) fn put_one(mut self, value: impl Display) {
        self.put(&[], value);
    }

    /// All buckets of a histogram, their sum and their count.
    pub(super) fn put_histogram(&mut self, values: &[&str], histogram: &Histogram) {
        let mut count = 0;
        for (bound, up_to) in histogram.cumulative() {
            let bound = bound.map_or_else(
                || "+Inf".to_owned(),
                |bound| bound.as_secs_f64().to_string(),
            );
            self.line("_bucket", values, Some(&bound), up_to);
            count = up_to;
        }
        self.line("_sum", values, None, histogram.sum().as_secs_f64());
        self.line("_count", values, None, count);
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(values.len(), self.family.labels.len());
        let named = self
            .family
            .labels
            .iter()
            .copied()
            .zip(values.iter().copied());
        let labels: Vec<String> = named
            .chain(bound.map(|bound| ("le", bound)))
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let name = self.family.name;
        if labels.is_empty() {
            self.page.write(format_args!("{name}{suffix} {value}\n"));
        } else {
            let labels = labels.join(",");
            self.page
                .write(format_args!("{name}{suffix}{{{labels}}} {value}\n"));
        }
    }
}

/// A label's value may hold anything; three characters would end it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    static LABELLED: Family = Family {
        name: "evenkeel_things_total",
        kind: Kind::Counter,
        labels: &["cluster", "endpoint"],
        help: "Things.",
    };
    static PLAIN: Family = Family {
        name: "evenkeel_now",
        kind: Kind::Gauge,
        labels: &[],
        help: "Now.",
    };
    static TIMED: Family = Family {
        name: "evenkeel_wait_seconds",
        kind: Kind::Histogram,
        labels: &["cluster"],
        help: "Waits.",
    };

    /// Help, kind, samples; a family without labels has no braces.
    #[test]
    fn a_page_is_what_prometheus_reads() {
        let mut page = Page::default();
        page.family(&LABELLED).put(&["web", "a"], 7);
        page.family(&PLAIN).put_one(0.5);

        let expected = "# HELP evenkeel_things_total Things.\n# TYPE evenkeel_things_total counter\n\
            evenkeel_things_total{cluster=\"web\",endpoint=\"a\"} 7\n\
            # HELP evenkeel_now Now.\n# TYPE evenkeel_now gauge\nevenkeel_now 0.5\n";
        assert_eq!(page.finish(), expected);
    }

    /// A name that a user chose can neither end its quotes nor its line.
    #[test]
    fn a_value_stays_within_its_quotes() {
        let mut page = Page::default();
        page.family(&LABELLED).put(&["a\"} 1\n", "back\\slash"], 1);

        let text = page.finish();
        assert_eq!(
            text.lines().last(),
            Some(r#"evenkeel_things_total{cluster="a\"} 1\n",endpoint="back\\slash"} 1"#)
        );
    }

    /// Buckets add up, and the last one is the count.
    #[test]
    fn a_histogram_ends_with_all_there_were() {
        const BOUNDS: &[Duration] = &[Duration::from_millis(1), Duration::from_secs(10)];
        let histogram = Histogram::new(BOUNDS);
        histogram.observe(Duration::from_micros(500));
        histogram.observe(Duration::from_secs(60));
        let mut page = Page::default();
        page.family(&TIMED).put_histogram(&["web"], &histogram);

        let text = page.finish();
        let samples: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            samples,
            [
                "evenkeel_wait_seconds_bucket{cluster=\"web\",le=\"0.001\"} 1",
                "evenkeel_wait_seconds_bucket{cluster=\"web\",le=\"10\"} 1",
                "evenkeel_wait_seconds_bucket{cluster=\"web\",le=\"+Inf\"} 2",
                "evenkeel_wait_seconds_sum{cluster=\"web\"} 60.0005",
                "evenkeel_wait_seconds_count{cluster=\"web\"} 2",
            ]
        );
    }
}
