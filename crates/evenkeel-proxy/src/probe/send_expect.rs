//! The probe for every other protocol: bytes that are sent, and bytes that the answer has.

use super::dialogue::Dialogue;
use super::verdict::{Verdict, quoted};
use crate::settings::{ExpectAt, SendExpectCheck};

/// The most bytes of an answer that are looked at.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 10;

pub(super) struct SendExpect {
    outbound: Vec<u8>,
    heard: Vec<u8>,
    check: SendExpectCheck,
}

impl SendExpect {
    pub(super) fn new(check: &SendExpectCheck) -> Self {
        Self {
            outbound: check
                .send
                .as_deref()
                .map(<[u8]>::to_vec)
                .unwrap_or_default(),
            heard: Vec::new(),
            check: check.clone(),
        }
    }

    fn begins_as_expected(&self) -> Option<Verdict> {
        let expected = &self.check.expect;
        let common = expected.len().min(self.heard.len());
        if self.heard[..common] != expected[..common] {
            Some(self.unexpected())
        } else if common == expected.len() {
            Some(Verdict::Passed)
        } else {
            None
        }
    }

    fn has_what_is_expected(&self) -> Option<Verdict> {
        let expected = &*self.check.expect;
        let mut parts = self.heard.windows(expected.len());
        if parts.any(|part| part == expected) {
            Some(Verdict::Passed)
        } else if self.heard.len() == ANSWER_BYTES_MAX {
            Some(self.unexpected())
        } else {
            None
        }
    }

    fn unexpected(&self) -> Verdict {
        Verdict::failed(format_args!(
            "an unexpected answer: {}",
            quoted(&self.heard)
        ))
    }
}

impl Dialogue for SendExpect {
    fn take_outbound(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbound)
    }

    fn hear(&mut self, bytes: &[u8]) -> Option<Verdict> {
        let room = ANSWER_BYTES_MAX - self.heard.len();
        self.heard
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        match self.check.at {
            ExpectAt::Start => self.begins_as_expected(),
            ExpectAt::Anywhere => self.has_what_is_expected(),
        }
    }

    fn hear_end(&mut self) -> Verdict {
        if self.heard.is_empty() {
            Verdict::failed("the connection was closed without an answer")
        } else {
            self.unexpected()
        }
    }

    fn waiting_for(&self) -> &'static str {
        "expected answer"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::judged;
    use super::*;

    fn answered(at: ExpectAt, answer: &[u8]) -> Verdict {
        let check = SendExpectCheck {
            send: Some(Arc::from(&b"ruok"[..])),
            expect: Arc::from(&b"imok"[..]),
            at,
        };
        judged(|| Box::new(SendExpect::new(&check)), answer)
    }

    /// At the start, the first byte that differs decides.
    #[test]
    fn the_beginning_is_compared() {
        assert_eq!(answered(ExpectAt::Start, b"imok, really"), Verdict::Passed);
        assert_eq!(
            answered(ExpectAt::Start, b"well, imok"),
            Verdict::failed("an unexpected answer: \"well, imok\"")
        );
        assert_eq!(
            answered(ExpectAt::Start, b"imo"),
            Verdict::failed("an unexpected answer: \"imo\"")
        );
    }

    /// Anywhere, but not without end.
    #[test]
    fn the_text_is_searched_within_bounds() {
        assert_eq!(answered(ExpectAt::Anywhere, b"well, imok"), Verdict::Passed);
        let late = [&[b'.'; ANSWER_BYTES_MAX][..], b"imok"].concat();
        assert_ne!(answered(ExpectAt::Anywhere, &late), Verdict::Passed);
        assert_eq!(
            answered(ExpectAt::Anywhere, b""),
            Verdict::failed("the connection was closed without an answer")
        );
    }
}
