//! Bar charts as SVG: groups of horizontal bars, with intervals and targets, readable on light and on dark pages.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const GROUP_WIDTH: f64 = 110.0;
const NAME_WIDTH: f64 = 110.0;
const LABEL_WIDTH: f64 = 60.0;
const BARS_LEFT: f64 = GROUP_WIDTH + NAME_WIDTH;
const BARS_WIDTH: f64 = WIDTH - BARS_LEFT - LABEL_WIDTH;
const BAR_HEIGHT: f64 = 14.0;
const BAR_STEP: f64 = 19.0;
const GROUP_GAP: f64 = 10.0;
const TITLE_HEIGHT: f64 = 34.0;

/// From the top of a bar to the foot of the letters beside it.
const TEXT_DROP: f64 = 11.5;

const STYLE: &str = "<style>
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 13px; }
.end { text-anchor: end; }
.ours { fill: #1a7f64; } .theirs { fill: #9aa4af; }
.line { stroke: #57606a; stroke-dasharray: 3 3; } .whisker { stroke: #24292f; stroke-width: 1.5; }
.target { stroke: #cf222e; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .ours { fill: #3fb990; } .theirs { fill: #6e7681; }
  .line { stroke: #8b949e; } .whisker { stroke: #e6edf3; } .target { stroke: #ff7b72; }
}
</style>
";

/// A chart; all its bars have one scale.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// A value marked over all groups.
    pub(crate) line: Option<f64>,
    pub(crate) groups: Vec<Group>,
}

/// Bars that belong together.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
    /// The value that its first bar should not exceed.
    pub(crate) target: Option<f64>,
}

pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// What is written at the right edge, clear of targets and intervals.
    pub(crate) label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Ours,
    Theirs,
}

impl Colour {
    const fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
        }
    }
}

/// The charts, one below the other.
pub(crate) fn document(charts: &[Chart]) -> String {
    let mut drawing = Drawing::default();
    for chart in charts {
        drawing.chart(chart);
    }
    let height = drawing.y + GROUP_GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n{STYLE}{}</svg>\n",
        drawing.elements,
    )
}

/// What has been drawn, and how far down.
#[derive(Default)]
struct Drawing {
    elements: String,
    y: f64,
}

impl Drawing {
    fn chart(&mut self, chart: &Chart) {
        self.y += TITLE_HEIGHT;
        self.text("title", 0.0, self.y - GROUP_GAP, &chart.title);
        let scale = BARS_WIDTH / largest(chart);
        let top = self.y;
        for group in &chart.groups {
            self.group(group, scale);
        }
        if let Some(value) = chart.line {
            self.vertical("line", value * scale, top, self.y - GROUP_GAP);
        }
    }

    fn group(&mut self, group: &Group, scale: f64) {
        self.text("", 0.0, self.y + TEXT_DROP, &group.name);
        let top = self.y;
        for bar in &group.bars {
            self.bar(bar, scale);
        }
        if let Some(target) = group.target {
            self.vertical("target", target * scale, top - 2.0, top + BAR_HEIGHT + 2.0);
        }
        self.y += GROUP_GAP;
    }

    fn bar(&mut self, bar: &Bar, scale: f64) {
        let y = self.y;
        let length = bar.value * scale;
        let _ = writeln!(
            self.elements,
            "<rect class=\"{}\" x=\"{BARS_LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>",
            bar.colour.class(),
        );
        self.text("end", BARS_LEFT - 8.0, y + TEXT_DROP, &bar.name);
        self.text("end", WIDTH, y + TEXT_DROP, &bar.label);
        if let Some((low, high)) = bar.interval {
            self.whisker(low * scale, high * scale, y + BAR_HEIGHT / 2.0);
        }
        self.y += BAR_STEP;
    }

    fn whisker(&mut self, low: f64, high: f64, y: f64) {
        let (left, right) = (BARS_LEFT + low, BARS_LEFT + high);
        let _ = writeln!(
            self.elements,
            "<path class=\"whisker\" d=\"M{left:.1} {y}H{right:.1}M{left:.1} {0}v6M{right:.1} {0}v6\"/>",
            y - 3.0,
        );
    }

    fn vertical(&mut self, class: &str, along: f64, top: f64, bottom: f64) {
        let x = BARS_LEFT + along;
        let _ = writeln!(
            self.elements,
            "<path class=\"{class}\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>"
        );
    }

    /// Names and numbers of our own: nothing in them needs escaping.
    fn text(&mut self, class: &str, x: f64, y: f64, words: &str) {
        let _ = writeln!(
            self.elements,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
        );
    }
}

/// The largest value that the scale has to hold; never 0.
fn largest(chart: &Chart) -> f64 {
    let bars = chart.groups.iter().flat_map(|group| &group.bars);
    let ends = bars.map(|bar| {
        bar.interval
            .map_or(bar.value, |(_, high)| high.max(bar.value))
    });
    let largest = ends.chain(chart.line).fold(0.0, f64::max);
    if largest > 0.0 { largest } else { 1.0 }
}
