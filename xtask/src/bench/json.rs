//! The results for a program: load → peer → medians, and evenkeel's ratios over that peer with their intervals.

use serde_json::{Map, Value, json};

use super::peer::Peer;
use super::summary::{Row, Summary, Verdict};
use super::workload::{Over, Work};

/// One object, for all loads.
pub(crate) fn object(summaries: &[Summary]) -> Value {
    let loads = summaries
        .iter()
        .map(|summary| (summary.workload.name.to_owned(), load(summary)));
    Value::Object(loads.collect())
}

fn load(summary: &Summary) -> Value {
    let work = summary.workload.work;
    let peers = summary.rows.iter().map(|row| {
        let mut peer = peer(row, work);
        if row.peer == Peer::Evenkeel {
            let targets = summary.verdicts.iter().map(target);
            peer.insert("targets".to_owned(), targets.collect());
        }
        (row.peer.name().to_owned(), Value::Object(peer))
    });
    Value::Object(peers.collect())
}

fn peer(row: &Row, work: Work) -> Map<String, Value> {
    let mut peer = Map::new();
    peer.insert("rounds".to_owned(), json!(row.rounds));
    for (figure, median) in &row.medians {
        peer.insert(figure.key(work).to_owned(), json!(median));
    }
    for (figure, ratio) in &row.ratios {
        let key = figure.ratio_key();
        peer.insert(key.to_owned(), json!(ratio.median));
        peer.insert(format!("{key}_interval"), json!([ratio.low, ratio.high]));
    }
    if let Some(share) = row.spliced_share {
        peer.insert("spliced_share".to_owned(), json!(share));
    }
    if let Some(share) = row.logged_share {
        peer.insert("logged_share".to_owned(), json!(share));
    }
    peer
}

fn target(verdict: &Verdict) -> Value {
    let figure = verdict.target.figure;
    let (name, over) = match verdict.target.over {
        Over::Rival(_) => (figure.ratio_key(), verdict.over.map(Peer::name)),
        Over::Nothing => (figure.key(Work::Idle), None),
    };
    json!({
        "figure": name,
        "over": over,
        "at_most": verdict.target.at_most,
        "median": verdict.estimate.median,
        "interval": [verdict.estimate.low, verdict.estimate.high],
        "outcome": verdict.outcome.words(),
    })
}
