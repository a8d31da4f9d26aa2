//! Which of the results are drawn: proxy CPU over HAProxy's, and the memory of an idle connection.

use super::peer::{Peer, Rival};
use super::summary::Summary;
use super::svg::{Bar, Chart, Colour, Group, document};
use super::workload::{Figure, Over};

/// The whole plot, an SVG document. A chart without bars is left out.
pub(crate) fn draw(summaries: &[Summary]) -> String {
    let charts = [cpu(summaries), memory(summaries)];
    let charts: Vec<Chart> = charts
        .into_iter()
        .filter(|chart| !chart.groups.is_empty())
        .collect();
    document(&charts)
}

fn cpu(summaries: &[Summary]) -> Chart {
    Chart {
        title: "Proxy CPU per unit of work; HAProxy = 1, shorter is better, red: target".to_owned(),
        line: Some(1.0),
        groups: summaries.iter().filter_map(cpu_group).collect(),
    }
}

fn cpu_group(summary: &Summary) -> Option<Group> {
    let haproxy = summary.best(Rival::Haproxy, Figure::Cpu)?;
    let ratio = haproxy.ratios.get(&Figure::Cpu)?;
    let ours = Bar {
        name: Peer::Evenkeel.name().to_owned(),
        colour: Colour::Ours,
        value: ratio.median,
        interval: Some((ratio.low, ratio.high)),
        label: format!("{:.2}", ratio.median),
    };
    let cpu = |peer| summary.row(peer)?.medians.get(&Figure::Cpu).copied();
    let nginx = cpu(Peer::Nginx)
        .zip(cpu(haproxy.peer))
        .map(|(nginx, haproxy)| Bar {
            name: Peer::Nginx.name().to_owned(),
            colour: Colour::Theirs,
            value: nginx / haproxy,
            interval: None,
            label: format!("{:.2}", nginx / haproxy),
        });
    Some(Group {
        name: summary.workload.name.to_owned(),
        bars: std::iter::once(ours).chain(nginx).collect(),
        target: target(summary),
    })
}

fn target(summary: &Summary) -> Option<f64> {
    let mut targets = summary.workload.targets.iter();
    let of_haproxy = targets
        .find(|target| target.figure == Figure::Cpu && target.over == Over::Rival(Rival::Haproxy));
    of_haproxy.map(|target| target.at_most)
}

fn memory(summaries: &[Summary]) -> Chart {
    Chart {
        title: "Resident memory of an idle connection, in KiB".to_owned(),
        line: None,
        groups: summaries.iter().filter_map(memory_group).collect(),
    }
}

fn memory_group(summary: &Summary) -> Option<Group> {
    let bars = summary.rows.iter().filter_map(|row| {
        let kib = row.medians.get(&Figure::IdleMemory)? / 1024.0;
        Some(Bar {
            name: row.peer.name().to_owned(),
            colour: match row.peer {
                Peer::Evenkeel => Colour::Ours,
                _ => Colour::Theirs,
            },
            value: kib,
            interval: None,
            label: format!("{kib:.1}"),
        })
    });
    let bars: Vec<Bar> = bars.collect();
    (!bars.is_empty()).then(|| Group {
        name: summary.workload.name.to_owned(),
        bars,
        target: None,
    })
}
