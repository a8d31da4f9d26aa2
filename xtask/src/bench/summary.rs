//! What the measurements say: medians, ratios within rounds, and whether a promise is kept.

use std::collections::BTreeMap;

use super::peer::{Peer, Rival};
use super::rounds::Results;
use super::sample::Sample;
use super::statistics::{Estimate, estimate, median};
use super::workload::{Better, Figure, Over, Target, Workload};

/// What one load has shown.
pub(crate) struct Summary {
    pub(crate) workload: &'static Workload,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) failures: usize,
}

/// One peer.
pub(crate) struct Row {
    pub(crate) peer: Peer,
    /// Rounds in which it was measured without a failure.
    pub(crate) rounds: usize,
    pub(crate) medians: BTreeMap<Figure, f64>,
    /// Evenkeel's figure over this peer's, in the same round.
    pub(crate) ratios: BTreeMap<Figure, Estimate>,
    pub(crate) spliced_share: Option<f64>,
    /// In the round in which it was the smallest.
    pub(crate) logged_share: Option<f64>,
}

/// What has become of a promise.
pub(crate) struct Verdict {
    pub(crate) target: Target,
    /// Whose figure was divided by: the better of a rival's variants.
    pub(crate) over: Option<Peer>,
    pub(crate) estimate: Estimate,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Met,
    /// The target lies within the interval.
    NotShown,
    Missed,
}

impl Outcome {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotShown => "not shown",
            Self::Missed => "missed",
        }
    }

    fn of(estimate: Estimate, at_most: f64) -> Self {
        if estimate.high <= at_most {
            Self::Met
        } else if estimate.low > at_most {
            Self::Missed
        } else {
            Self::NotShown
        }
    }
}

impl Summary {
    pub(crate) fn of(results: &Results) -> Self {
        let rows = results.samples.keys().map(|&peer| Row::of(results, peer));
        let mut summary = Self {
            workload: results.workload,
            rows: rows.collect(),
            verdicts: Vec::new(),
            failures: results.failures,
        };
        let targets = summary.workload.targets.iter();
        summary.verdicts = targets
            .filter_map(|&target| summary.judge(results, target))
            .collect();
        summary
    }

    /// None if nothing was measured that could tell.
    fn judge(&self, results: &Results, target: Target) -> Option<Verdict> {
        let (over, estimate) = match target.over {
            Over::Rival(rival) => {
                let row = self.best(rival, target.figure)?;
                (Some(row.peer), *row.ratios.get(&target.figure)?)
            }
            Over::Nothing => (None, own(results, target.figure)?),
        };
        Some(Verdict {
            target,
            over,
            estimate,
            outcome: Outcome::of(estimate, target.at_most),
        })
    }

    /// The variant of a rival that does better at this figure.
    pub(crate) fn best(&self, rival: Rival, figure: Figure) -> Option<&Row> {
        let variants = self
            .rows
            .iter()
            .filter(|row| rival.variants().contains(&row.peer));
        let measured = variants.filter_map(|row| Some((row, *row.medians.get(&figure)?)));
        let best = measured.min_by(|(_, one), (_, other)| match figure.better() {
            Better::Lower => one.total_cmp(other),
            Better::Higher => other.total_cmp(one),
        });
        best.map(|(row, _)| row)
    }

    pub(crate) fn row(&self, peer: Peer) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }
}

impl Row {
    fn of(results: &Results, peer: Peer) -> Self {
        let samples = || {
            results
                .samples
                .get(&peer)
                .into_iter()
                .flat_map(BTreeMap::values)
        };
        let medians = Figure::ALL.into_iter().filter_map(|figure| {
            let values: Vec<f64> = samples()
                .filter_map(|sample| sample.figure(figure))
                .collect();
            Some((figure, median(&values)?))
        });
        let ratios = Figure::COMPARED
            .into_iter()
            .filter(|_| peer != Peer::Evenkeel)
            .filter_map(|figure| Some((figure, estimate(&ratios(results, peer, figure))?)));
        let spliced: Vec<f64> = samples().filter_map(Sample::spliced_share).collect();
        Self {
            peer,
            rounds: samples().count(),
            medians: medians.collect(),
            ratios: ratios.collect(),
            spliced_share: median(&spliced),
            logged_share: samples().filter_map(Sample::logged_share).reduce(f64::min),
        }
    }
}

/// Evenkeel's figure over the peer's, for every round that has both.
fn ratios(results: &Results, peer: Peer, figure: Figure) -> Vec<f64> {
    let of = |peer| results.samples.get(&peer);
    let (Some(ours), Some(theirs)) = (of(Peer::Evenkeel), of(peer)) else {
        return Vec::new();
    };
    let ratio = |(round, sample): (&usize, &Sample)| {
        let ours = sample.figure(figure)?;
        let theirs = theirs.get(round)?.figure(figure)?;
        (theirs > 0.0).then(|| ours / theirs)
    };
    ours.iter().filter_map(ratio).collect()
}

/// Evenkeel's figure itself.
fn own(results: &Results, figure: Figure) -> Option<Estimate> {
    let samples = results.samples.get(&Peer::Evenkeel)?.values();
    let values: Vec<f64> = samples.filter_map(|sample| sample.figure(figure)).collect();
    estimate(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval decides: wholly at or below the target is met, wholly above is missed, around it is not shown.
    #[test]
    fn a_target_within_the_interval_is_not_shown() {
        let estimate = Estimate {
            median: 0.9,
            low: 0.8,
            high: 1.0,
        };
        assert_eq!(Outcome::of(estimate, 1.0), Outcome::Met);
        assert_eq!(Outcome::of(estimate, 0.95), Outcome::NotShown);
        assert_eq!(Outcome::of(estimate, 0.85), Outcome::NotShown);
        assert_eq!(Outcome::of(estimate, 0.79), Outcome::Missed);
    }
}
