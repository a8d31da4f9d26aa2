//! The Redis probe: a login if there is a password, PING, and perhaps the role.
//!
//! It reads simple replies and errors whole, and of the reply to ROLE no more than the role. Source: "RESP protocol spec".

use std::collections::VecDeque;

use super::dialogue::Dialogue;
use super::verdict::{Verdict, quoted};
use crate::settings::{RedisCheck, RedisRole};

/// The most bytes of one reply; an error is a line, a role a few words.
const REPLY_BYTES_MAX: usize = 4096;

/// A question, and what answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Login,
    Ping,
    Role(RedisRole),
}

pub(super) struct Redis {
    outbound: Vec<u8>,
    heard: Vec<u8>,
    /// Asked all at once, answered in turn.
    open: VecDeque<Question>,
}

impl Redis {
    pub(super) fn new(check: &RedisCheck, password: Option<&str>) -> Self {
        let mut redis = Self {
            outbound: Vec::new(),
            heard: Vec::new(),
            open: VecDeque::new(),
        };
        if let Some(password) = password {
            let words = ["AUTH"].into_iter().chain(check.user.as_deref());
            redis.ask(
                Question::Login,
                &words.chain([password]).collect::<Vec<_>>(),
            );
        }
        redis.ask(Question::Ping, &["PING"]);
        if let Some(role) = check.role {
            redis.ask(Question::Role(role), &["ROLE"]);
        }
        redis
    }

    fn ask(&mut self, question: Question, words: &[&str]) {
        self.open.push_back(question);
        self.outbound
            .extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.outbound
                .extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }

    /// The verdict that follows from the replies that are there, and how many bytes they were.
    fn judge(&mut self) -> (Option<Verdict>, usize) {
        let mut lines = Lines {
            text: &self.heard,
            taken: 0,
        };
        loop {
            let answered = lines.taken;
            let Some(question) = self.open.front() else {
                return (Some(Verdict::Passed), answered);
            };
            match question.answer(&mut lines) {
                Some(Verdict::Passed) => self.open.pop_front(),
                Some(failed) => return (Some(failed), answered),
                None => return (None, answered),
            };
        }
    }
}

impl Dialogue for Redis {
    fn take_outbound(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbound)
    }

    fn hear(&mut self, bytes: &[u8]) -> Option<Verdict> {
        self.heard.extend_from_slice(bytes);
        let (verdict, answered) = self.judge();
        self.heard.drain(..answered);
        if verdict.is_none() && self.heard.len() > REPLY_BYTES_MAX {
            return Some(Verdict::failed(format_args!(
                "an answer without end: {}",
                quoted(&self.heard)
            )));
        }
        verdict
    }

    fn hear_end(&mut self) -> Verdict {
        Verdict::failed(format_args!(
            "the connection was closed without the {}",
            self.waiting_for()
        ))
    }

    fn waiting_for(&self) -> &'static str {
        match self.open.front() {
            Some(Question::Login) => "answer to AUTH",
            Some(Question::Role(_)) => "answer to ROLE",
            Some(Question::Ping) | None => "answer to PING",
        }
    }
}

impl Question {
    /// `None` while the answer is not complete.
    fn answer(self, lines: &mut Lines<'_>) -> Option<Verdict> {
        let line = lines.next()?;
        match (self, line) {
            (_, [b'-', error @ ..]) => Some(Verdict::failed(String::from_utf8_lossy(error))),
            (Self::Login, b"+OK") | (Self::Ping, b"+PONG") => Some(Verdict::Passed),
            (Self::Role(wanted), [b'*', ..]) => {
                lines.next()?;
                lines.next().map(|role| judge_role(wanted, role))
            }
            (_, line) => Some(Verdict::failed(format_args!(
                "an unexpected answer: {}",
                quoted(line)
            ))),
        }
    }
}

fn judge_role(wanted: RedisRole, role: &[u8]) -> Verdict {
    let wanted = match wanted {
        RedisRole::Master => "master",
        // What Redis itself still says.
        RedisRole::Replica => "slave",
    };
    if role == wanted.as_bytes() {
        Verdict::Passed
    } else {
        Verdict::failed(format_args!("its role is {}", quoted(role)))
    }
}

/// Lines that end with CR LF.
struct Lines<'t> {
    text: &'t [u8],
    taken: usize,
}

impl<'t> Lines<'t> {
    fn next(&mut self) -> Option<&'t [u8]> {
        let rest = &self.text[self.taken..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.taken += end + 2;
        Some(&rest[..end])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::judged;
    use super::*;

    fn check(role: Option<RedisRole>) -> RedisCheck {
        RedisCheck {
            user: Some(Arc::from("check")),
            password: None,
            role,
        }
    }

    fn answered(password: Option<&str>, role: Option<RedisRole>, answer: &[u8]) -> Verdict {
        judged(|| Box::new(Redis::new(&check(role), password)), answer)
    }

    /// What is sent: a password with a line feed in it stays one word.
    #[test]
    fn the_questions_are_asked_in_one_go() {
        let mut redis = Redis::new(&check(Some(RedisRole::Master)), Some("a\r\nb"));
        assert_eq!(
            redis.take_outbound(),
            b"*3\r\n$4\r\nAUTH\r\n$5\r\ncheck\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nROLE\r\n"
        );
    }

    /// Every question has to be answered well.
    #[test]
    fn all_answers_have_to_be_right() {
        let master = b"+OK\r\n+PONG\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
        let replica = b"+OK\r\n+PONG\r\n*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n";
        let (secret, wanted) = (Some("x"), Some(RedisRole::Master));
        assert_eq!(answered(None, None, b"+PONG\r\n"), Verdict::Passed);
        assert_eq!(answered(secret, wanted, master), Verdict::Passed);
        assert_eq!(
            answered(secret, wanted, replica),
            Verdict::failed("its role is \"slave\"")
        );
        assert_eq!(
            answered(secret, Some(RedisRole::Replica), replica),
            Verdict::Passed
        );
    }

    /// An error is the reason, word for word.
    #[test]
    fn errors_are_reasons() {
        for error in [
            "LOADING Redis is loading the dataset in memory",
            "NOAUTH Authentication required.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ] {
            let answer = format!("-{error}\r\n");
            assert_eq!(
                answered(None, None, answer.as_bytes()),
                Verdict::failed(error)
            );
        }
    }

    /// Another protocol, a reply without end, an early end: a failure, not a wait.
    #[test]
    fn what_is_not_redis_fails() {
        let reason = |answer: &[u8]| answered(None, None, answer).reason().unwrap().to_string();
        assert!(reason(b"HTTP/1.1 400 Bad Request\r\n").contains("HTTP"));
        assert!(reason(&[b'x'; REPLY_BYTES_MAX + 1]).contains("without end"));
        assert!(reason(b"+PO").contains("closed without the answer to PING"));
    }
}
