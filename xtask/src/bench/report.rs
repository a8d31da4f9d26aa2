//! The results for a reader: a table for each load, and what became of its targets.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::options::{Format, Options};
use super::rounds::Results;
use super::statistics::Estimate;
use super::summary::{Row, Summary, Verdict};
use super::workload::{Figure, Over, Work, Workload};
use super::{json, plot};

/// A log that has a line for less than this share of what was served is worth a note.
const LOGGED_ENOUGH: f64 = 0.99;

/// Prints, and draws if that was asked for. An error if a measurement failed.
pub(crate) fn publish(options: &Options, results: &[Results]) -> Result<()> {
    let summaries: Vec<Summary> = results.iter().map(Summary::of).collect();
    match options.format {
        Format::Text => summaries
            .iter()
            .for_each(|summary| println!("{}", text(summary))),
        Format::Json => println!("{:#}", json::object(&summaries)),
    }
    if let Some(file) = &options.plot {
        std::fs::write(file, plot::draw(&summaries))?;
    }
    match summaries.iter().map(|summary| summary.failures).sum() {
        0 => Ok(()),
        failures @ 1_usize.. => bail!("{failures} measurements failed; their rounds do not count"),
    }
}

fn text(summary: &Summary) -> String {
    let workload = summary.workload;
    let mut text = format!("\n{}: {}\n", workload.name, workload.title);
    let mut lines = vec![header(workload)];
    lines.extend(summary.rows.iter().map(|row| line(row, workload)));
    text.push_str(&aligned(&lines));
    for note in summary.rows.iter().flat_map(notes) {
        let _ = writeln!(text, "  {note}");
    }
    for verdict in &summary.verdicts {
        let _ = writeln!(text, "  {}", sentence(verdict));
    }
    text
}

/// Figures that say something about such work.
fn figures(work: Work) -> &'static [Figure] {
    match work {
        Work::Exchanges => &[
            Figure::Throughput,
            Figure::P50,
            Figure::P99,
            Figure::Cpu,
            Figure::Busy,
            Figure::Resident,
        ],
        Work::Bytes => &[
            Figure::Throughput,
            Figure::Cpu,
            Figure::Busy,
            Figure::Resident,
        ],
        Work::Idle => &[Figure::IdleMemory, Figure::Resident],
    }
}

fn compared(work: Work) -> impl Iterator<Item = Figure> {
    let shown = figures(work);
    Figure::COMPARED
        .into_iter()
        .filter(move |figure| shown.contains(figure))
}

fn header(workload: &Workload) -> Vec<String> {
    let work = workload.work;
    let figures = figures(work)
        .iter()
        .map(|figure| figure.heading(work).to_owned());
    let ratios = compared(work).map(|figure| format!("{} ratio", figure.words()));
    std::iter::once(String::new())
        .chain(figures)
        .chain(ratios)
        .collect()
}

fn line(row: &Row, workload: &Workload) -> Vec<String> {
    let figures = figures(workload.work).iter().map(|figure| {
        let median = row.medians.get(figure);
        median.map_or_else(String::new, |&value| number(value))
    });
    let ratios = compared(workload.work).map(|figure| {
        let ratio = row.ratios.get(&figure);
        ratio.map_or_else(String::new, |&ratio| interval(ratio))
    });
    std::iter::once(row.peer.name().to_owned())
        .chain(figures)
        .chain(ratios)
        .collect()
}

/// Three or four digits that count.
fn number(value: f64) -> String {
    match value {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn interval(estimate: Estimate) -> String {
    let Estimate { median, low, high } = estimate;
    format!("{} ({}–{})", number(median), number(low), number(high))
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

fn notes(row: &Row) -> Vec<String> {
    let name = row.peer.name();
    let spliced = row
        .spliced_share
        .map(|share| format!("{name} spliced {:.0} % of its bytes", 100.0 * share));
    let missing = row.logged_share.filter(|&share| share < LOGGED_ENOUGH);
    let missing = missing.map(|share| {
        format!(
            "{name} logged only {:.0} % of what it served",
            100.0 * share
        )
    });
    spliced.into_iter().chain(missing).collect()
}

fn sentence(verdict: &Verdict) -> String {
    let target = verdict.target;
    let over = verdict
        .over
        .map_or_else(String::new, |peer| format!(" over {}'s", peer.name()));
    let bound = match target.over {
        Over::Rival(_) => format!("{:.2}", target.at_most),
        Over::Nothing => format!("{:.0}", target.at_most),
    };
    format!(
        "{}{over}: {}, at most {bound}: {}",
        target.figure.words(),
        interval(verdict.estimate),
        verdict.outcome.words(),
    )
}
