//! The demo's clients: they ask through the balancer, and keep who answered.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::stage::Stage;
use crate::example_service;
use crate::output;

/// What clients wait for each step: the balancer's own limits are shorter.
const PATIENCE: Duration = Duration::from_secs(10);
/// One round of smooth weighted round robin with the weights 5, 1 and 1.
const ROUND: [&str; 7] = ["a", "a", "b", "a", "c", "a", "a"];
/// Enough for a whole round, wherever in one it began.
const LEAD_IN_MAX: usize = 2 * ROUND.len() - 1;
/// Terminal colours of the endpoints: green, cyan, yellow.
const COLOURS: [(&str, u8); 3] = [("a", 32), ("b", 36), ("c", 33)];

/// A client of the balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    address: SocketAddr,
}

/// What a client read.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The whole of it.
    pub(super) text: String,
    /// Whose it is; `None` when the request failed.
    pub(super) served_by: Option<String>,
}

impl Client {
    pub(super) fn of(stage: &Stage) -> Self {
        Self {
            address: stage.address(),
        }
    }

    pub(super) fn ask(&self) -> Answer {
        let text = example_service::ask(self.address, "ada", PATIENCE)
            .unwrap_or_else(|error| error.to_string());
        Answer {
            served_by: served_by(&text),
            text,
        }
    }

    pub(super) fn ask_times(&self, times: usize) -> Answers {
        Answers((0..times).map(|_| self.ask()).collect())
    }

    /// Round robin begins each process at a random place of its round. This asks until a round has just ended, so that
    /// what is shown begins with the next one.
    pub(super) fn ask_until_top_of_round(&self) -> Answers {
        let mut answers = Answers::default();
        while answers.0.len() < LEAD_IN_MAX && !answers.end_with_a_round() {
            answers.push(self.ask());
        }
        answers
    }

    /// Several clients at once; after so many answers, something happens to the cluster.
    pub(super) fn crowd(
        &self,
        clients: usize,
        times: usize,
        answers_before: usize,
        event: impl FnOnce(),
    ) -> Answers {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for _ in 0..clients {
                let sender = sender.clone();
                scope.spawn(move || self.ask_and_tell(times, &sender));
            }
            drop(sender);
            let mut answers = Answers(receiver.iter().take(answers_before).collect());
            event();
            answers.0.extend(receiver);
            answers
        })
    }

    fn ask_and_tell(self, times: usize, sender: &Sender<Answer>) {
        for _ in 0..times {
            // The receiver stays until all senders are gone.
            let _ = sender.send(self.ask());
        }
    }
}

fn served_by(text: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(text).ok()?;
    answer.get("name")?;
    answer.get("served_by")?.as_str().map(str::to_owned)
}

/// Answers in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers(Vec<Answer>);

impl Answers {
    pub(super) fn push(&mut self, answer: Answer) {
        self.0.push(answer);
    }

    pub(super) fn failed(&self) -> usize {
        self.0
            .iter()
            .filter(|answer| answer.served_by.is_none())
            .count()
    }

    fn end_with_a_round(&self) -> bool {
        let begin = self.0.len().checked_sub(ROUND.len());
        let last = begin.and_then(|begin| self.0.get(begin..));
        last.is_some_and(|last| {
            let names = last.iter().map(|answer| answer.served_by.as_deref());
            names.eq(ROUND.map(Some))
        })
    }

    /// Who answered, one after the other.
    pub(super) fn sequence(&self) -> String {
        let rounds: Vec<String> = self.0.chunks(ROUND.len()).map(words).collect();
        rounds.join("  ")
    }

    /// From the first answer of one endpoint, and no longer than `shown_max`.
    pub(super) fn sequence_from(&self, endpoint: &str, shown_max: usize) -> String {
        let first = self
            .0
            .iter()
            .position(|answer| answer.served_by.as_deref() == Some(endpoint));
        let tail = self.0.get(first.unwrap_or(0)..).unwrap_or_default();
        words(tail.get(..shown_max).unwrap_or(tail))
    }

    /// How many each one answered, and how many failed.
    pub(super) fn summary(&self) -> String {
        let shares = COLOURS.map(|(endpoint, _)| format!("{endpoint} {}", self.share(endpoint)));
        format!(
            "{} requests: {}, failed {}",
            self.0.len(),
            shares.join(", "),
            self.failed()
        )
    }

    fn share(&self, endpoint: &str) -> usize {
        self.0
            .iter()
            .filter(|answer| answer.served_by.as_deref() == Some(endpoint))
            .count()
    }
}

fn words(answers: &[Answer]) -> String {
    let words = answers.iter().map(|answer| {
        answer
            .served_by
            .as_deref()
            .map_or_else(|| "-".to_owned(), painted)
    });
    words.collect::<Vec<_>>().join(" ")
}

fn painted(endpoint: &str) -> String {
    let colour = COLOURS.iter().find(|(name, _)| *name == endpoint);
    match colour {
        Some((_, code)) if output::stdout_has_colour() => {
            format!("\u{1b}[{code}m{endpoint}\u{1b}[0m")
        }
        _ => endpoint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(names: &str) -> Answers {
        let answer = |name: char| Answer {
            text: String::new(),
            served_by: name.is_alphabetic().then(|| name.to_string()),
        };
        Answers(names.chars().map(answer).collect())
    }

    /// A failed request is shown and counted as such.
    #[test]
    fn failures_are_not_hidden() {
        let answers = answers("aab-c");

        assert_eq!(answers.sequence(), "a a b - c");
        assert_eq!(answers.summary(), "5 requests: a 2, b 1, c 1, failed 1");
        assert_eq!(answers.failed(), 1);
    }

    /// The end of a round is told from its middle.
    #[test]
    fn a_whole_round_is_recognised() {
        assert!(answers("caaaabacaa").end_with_a_round());
        assert!(!answers("aabacaaa").end_with_a_round());
        assert!(!answers("abacaa").end_with_a_round());
    }

    /// Only a record counts as an answer: an error that names who served it does not.
    #[test]
    fn an_error_is_no_answer() {
        assert_eq!(
            served_by(r#"{"name":"Ada Lovelace","served_by":"b"}"#).as_deref(),
            Some("b")
        );
        assert_eq!(
            served_by(r#"{"error":"no such user","served_by":"b"}"#),
            None
        );
        assert_eq!(served_by("service unavailable\n"), None);
    }

    /// A long story is told from its turning point.
    #[test]
    fn a_sequence_can_begin_later() {
        assert_eq!(answers("bcbcabac").sequence_from("a", 3), "a b a");
        assert_eq!(answers("bcb").sequence_from("a", 9), "b c b");
    }
}
