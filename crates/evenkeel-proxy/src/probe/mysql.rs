//! The MySQL probe: login, ping, perhaps a query, goodbye.
//!
//! A server counts handshakes that are broken off, and blocks an address with too many of them (`max_connect_errors`). So a
//! conversation that has begun is brought to its end, also when the verdict is long known.

use evenkeel_wire::mysql::{Account, Client, Event, ServerError};

use super::dialogue::{Dialogue, WhenLate};
use super::verdict::Verdict;
use crate::settings::MysqlCheck;

pub(super) struct Mysql {
    client: Client,
    query: Option<Box<str>>,
    waiting_for: &'static str,
}

impl Mysql {
    pub(super) fn new(check: &MysqlCheck, password: &str) -> Self {
        Self {
            client: Client::new(Account {
                user: check.user.to_string(),
                password: password.as_bytes().to_vec(),
            }),
            query: check.query.as_deref().map(Box::from),
            waiting_for: "greeting",
        }
    }

    /// What follows from an event; the verdict, if that.
    fn go_on(&mut self, event: Event) -> Option<Verdict> {
        match (event, self.query.take()) {
            (Event::LoggedIn, query) => {
                self.query = query;
                self.waiting_for = "answer to the ping";
                self.client.ping();
                None
            }
            (Event::Pong, Some(query)) => {
                self.waiting_for = "answer to the query";
                self.client.query(&query);
                None
            }
            (Event::Pong, None) => Some(self.leave(Verdict::Passed)),
            (Event::Value(value), _) => Some(self.leave(judge_value(value))),
            (Event::CommandRefused(error), _) => Some(self.leave(refusal(&error))),
            // The server closes the connection itself.
            (Event::LoginRefused(error), _) => Some(refusal(&error)),
            (Event::UnknownAuthentication(asked_for), _) => Some(Verdict::failed(format_args!(
                "the account's authentication is not supported here: {asked_for}"
            ))),
        }
    }

    fn leave(&mut self, verdict: Verdict) -> Verdict {
        self.client.quit();
        verdict
    }
}

impl Dialogue for Mysql {
    fn take_outbound(&mut self) -> Vec<u8> {
        self.client.take_outbound()
    }

    fn hear(&mut self, bytes: &[u8]) -> Option<Verdict> {
        if let Err(malformed) = self.client.receive(bytes) {
            return Some(Verdict::failed(format_args!(
                "this is not MySQL: {malformed}"
            )));
        }
        if self.client.is_greeted() && self.waiting_for == "greeting" {
            self.waiting_for = "answer to the login";
        }
        while let Some(event) = self.client.next_event() {
            if let Some(verdict) = self.go_on(event) {
                return Some(verdict);
            }
        }
        None
    }

    fn hear_end(&mut self) -> Verdict {
        Verdict::failed(format_args!(
            "the connection was closed without the {}",
            self.waiting_for
        ))
    }

    fn waiting_for(&self) -> &'static str {
        self.waiting_for
    }

    fn when_late(&self) -> WhenLate {
        WhenLate::Stay
    }
}

fn refusal(error: &ServerError) -> Verdict {
    Verdict::failed(format_args!(
        "MySQL error {}: {}",
        error.code, error.message
    ))
}

fn judge_value(value: Option<Option<Vec<u8>>>) -> Verdict {
    match value {
        None => Verdict::failed("the query has no row"),
        Some(None) => Verdict::failed("the query says NULL"),
        Some(Some(value)) if is_true(&value) => Verdict::Passed,
        Some(Some(value)) => Verdict::failed(format_args!(
            "the query says {}",
            super::verdict::quoted(&value)
        )),
    }
}

/// As SQL sees numbers, and as servers write their switches.
fn is_true(value: &[u8]) -> bool {
    const FALSE: [&[u8]; 4] = [b"", b"OFF", b"NO", b"FALSE"];
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    number != Some(0.0) && !FALSE.iter().any(|word| word.eq_ignore_ascii_case(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const GREETING: &[u8] = b"d\x00\x00\x00\n5.5.5-10.11.19-MariaDB-0+deb12u1\x00\x06\x00\x00\x00Fc?PV@zf\x00\xfe\xf7\x08\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00r*t11DAWt`fa\x00mysql_native_password\x00";
    const LOGIN_OK: &[u8] = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00";
    const PONG: &[u8] = b"\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00";
    /// What a node of Galera that is not in the cluster says to everything.
    const NOT_READY: &[u8] =
        b"\x3c\x00\x00\x01\xff\x17\x04#08S01WSREP has not yet prepared node for application use";
    const QUIT: &[u8] = b"\x01\x00\x00\x00\x01";

    fn check(query: Option<&str>) -> MysqlCheck {
        MysqlCheck {
            user: Arc::from("check"),
            password: None,
            query: query.map(Arc::from),
        }
    }

    /// The verdict on a server that gives these answers in turn and then ends its stream: the same wherever each is cut in two.
    fn answered(query: Option<&str>, answers: &[&[u8]]) -> Verdict {
        let verdict = verdict_cut_at(usize::MAX, query, answers);
        let longest = answers.iter().map(|answer| answer.len()).max().unwrap_or(0);
        for place in 1..longest {
            assert_eq!(
                verdict_cut_at(place, query, answers),
                verdict,
                "cut at {place}"
            );
        }
        verdict
    }

    fn verdict_cut_at(place: usize, query: Option<&str>, answers: &[&[u8]]) -> Verdict {
        let mut mysql = Mysql::new(&check(query), "");
        for answer in answers {
            let (first, second) = answer.split_at(place.min(answer.len()));
            let heard = mysql.hear(first).or_else(|| mysql.hear(second));
            if let Some(verdict) = heard {
                return verdict;
            }
        }
        mysql.hear_end()
    }

    /// A ping that is answered is enough where nothing else is asked, and the goodbye is sent.
    #[test]
    fn a_pong_passes_and_the_probe_says_goodbye() {
        assert_eq!(answered(None, &[GREETING, LOGIN_OK, PONG]), Verdict::Passed);

        let mut mysql = Mysql::new(&check(None), "");
        for answer in [GREETING, LOGIN_OK, PONG] {
            mysql.take_outbound();
            mysql.hear(answer);
        }
        assert_eq!(mysql.take_outbound(), QUIT);
    }

    /// Connected, but not ready: a node of Galera takes the login and refuses the ping, or the query.
    #[test]
    fn a_node_that_is_not_ready_fails_with_its_own_words() {
        let expected = Verdict::failed(
            "MySQL error 1047: WSREP has not yet prepared node for application use",
        );
        assert_eq!(answered(None, &[GREETING, LOGIN_OK, NOT_READY]), expected);
        assert_eq!(
            answered(Some("SELECT 1"), &[GREETING, LOGIN_OK, PONG, NOT_READY]),
            expected
        );
    }

    /// Every way to be cut off says what was missing.
    #[test]
    fn an_early_end_says_what_was_missing() {
        let reason = |answers: &[&[u8]]| answered(None, answers).reason().unwrap().to_string();
        assert!(reason(&[]).ends_with("without the greeting"));
        assert!(reason(&[GREETING]).ends_with("without the answer to the login"));
        assert!(reason(&[GREETING, LOGIN_OK]).ends_with("without the answer to the ping"));
        assert!(reason(&[b"HTTP/1.1 400 Bad Request\r\n"]).starts_with("this is not MySQL"));
    }

    /// What a query says, as truth.
    #[test]
    fn truth_is_what_sql_and_its_switches_call_so() {
        for yes in ["1", "-1", "0.5", "ON", "YES", "Synced", "true"] {
            assert!(is_true(yes.as_bytes()), "{yes}");
        }
        for no in ["", "0", "0.00", "-0", "OFF", "off", "No", "FALSE"] {
            assert!(!is_true(no.as_bytes()), "{no}");
        }
        assert!(is_true(b"\xff\xfe"));
        assert_ne!(judge_value(None), Verdict::Passed);
        assert_ne!(judge_value(Some(None)), Verdict::Passed);
    }
}
