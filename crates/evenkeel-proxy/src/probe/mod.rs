//! Probes: active questions to endpoints, asked by the control plane.
//!
//! `prober` follows the endpoints there are and lets a `patrol` go its rounds for each; a question is one `visit`. What is said there,
//! and what follows from it, is pure: a `dialogue` for each kind of check (`http`, `mysql`, `redis`, `send_expect`), and the
//! `schedule`. `tls` secures a question, `office` is what patrols share, the last results lie in the `ledger`. What results make of an endpoint is the
//! core's business.

pub mod dialogue;
mod http;
mod ledger;
mod mysql;
mod office;
mod patrol;
mod prober;
mod redis;
mod schedule;
mod secret;
mod send_expect;
#[cfg(test)]
mod tests;
mod tls;
mod verdict;
mod visit;

pub use ledger::{Finding, Ledger, ProbeCounts};
pub(crate) use office::{LATE_MAX, OPEN_MAX};
pub use prober::Prober;
pub use verdict::{REASON_CHARACTERS_MAX, Verdict, Words};

/// The verdict of a conversation in which an endpoint says this and then ends its stream: the same however it is cut in two.
#[cfg(test)]
fn judged(begin: impl Fn() -> Box<dyn dialogue::Dialogue>, answer: &[u8]) -> Verdict {
    let cut_at = |place: usize| {
        let mut dialogue = begin();
        let (first, second) = answer.split_at(place);
        let pieces = [first, second].into_iter();
        let verdict = pieces
            .filter(|piece| !piece.is_empty())
            .find_map(|piece| dialogue.hear(piece));
        verdict.unwrap_or_else(|| dialogue.hear_end())
    };
    let whole = cut_at(answer.len());
    /// Of a long answer, not every place: that would take seconds.
    const PLACES: usize = 200;
    for place in (0..answer.len()).step_by(answer.len() / PLACES + 1) {
        let verdict = cut_at(place);
        // The words may show less of an answer that has not come yet.
        let same = std::mem::discriminant(&verdict) == std::mem::discriminant(&whole);
        assert!(same, "cut at {place}: {verdict:?}, whole: {whole:?}");
    }
    whole
}
