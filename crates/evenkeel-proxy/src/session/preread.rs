//! The stage before placing: the client's first bytes, where a session needs them.
//!
//! Bounded in bytes and in time. What is read here stays in the pump and is sent on first. Without need there is no such
//! stage, so that a server that speaks first is heard at once.

use evenkeel_reactor::{Fate, Flow};

use super::Session;
use crate::settings::KeySource;
use crate::telemetry::reason::Reason;
use crate::worker::Work;

/// What the first bytes are needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Needs {
    /// The whole first line is the key.
    first_line: bool,
    /// A client that sends nothing usable gets a reply of its own.
    usable: bool,
}

/// What the bytes so far mean.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// Wait for more.
    More,
    /// They suffice.
    Enough,
    /// The client has said all it has to say, and it was nothing.
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// No more will be read: the client has ended its stream, or the bound is reached.
    Reached,
}

impl Session {
    pub(super) fn needs_preread(&self) -> bool {
        let Needs { first_line, usable } = self.needs();
        first_line || usable
    }

    /// Reads what has come of the first bytes, and places the session as soon as they suffice.
    pub(super) fn preread(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let flow = self.up.gather(
            &mut self.downstream,
            &mut work.turn.gear.buffer,
            KeySource::FIRST_LINE_MAX,
        );
        if self.is_client_gone() {
            return self.end(Reason::ClientClosed, work);
        }
        let end = if flow == Flow::Waiting {
            End::Open
        } else {
            End::Reached
        };
        match judge(self.up.unsent(), end, self.needs()) {
            Judgement::More => Fate::Keep,
            Judgement::Empty => self.turn_away(Reason::EmptyRequest, work),
            Judgement::Enough => {
                self.placement = self.listener.route.place(self.client(), self.up.unsent());
                self.seek(work)
            }
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            first_line: self.listener.route.needs_first_line(),
            usable: self.listener.settings.empty_reply.is_some(),
        }
    }
}

fn judge(bytes: &[u8], end: End, needs: Needs) -> Judgement {
    let is_blank = bytes.trim_ascii().is_empty();
    let has_line = bytes.contains(&b'\n') || end == End::Reached;
    if needs.usable && is_blank {
        return if end == End::Reached {
            Judgement::Empty
        } else {
            Judgement::More
        };
    }
    if needs.first_line && !has_line {
        Judgement::More
    } else {
        Judgement::Enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Needs = Needs {
        first_line: true,
        usable: false,
    };
    const USABLE: Needs = Needs {
        first_line: false,
        usable: true,
    };
    const BOTH: Needs = Needs {
        first_line: true,
        usable: true,
    };

    /// A key is known when its line is, whether the client ends it by a line feed or by its end of stream.
    #[test]
    fn a_first_line_is_awaited_to_its_end() {
        assert_eq!(judge(b"ali", End::Open, LINE), Judgement::More);
        assert_eq!(judge(b"alice\n", End::Open, LINE), Judgement::Enough);
        assert_eq!(judge(b"alice", End::Reached, LINE), Judgement::Enough);
        assert_eq!(judge(b"", End::Reached, LINE), Judgement::Enough);
    }

    /// Where only usability counts, the first byte that is no white space suffices.
    #[test]
    fn blank_requests_are_empty_at_their_end_and_not_before() {
        assert_eq!(judge(b" \r\n", End::Open, USABLE), Judgement::More);
        assert_eq!(judge(b" \r\n", End::Reached, USABLE), Judgement::Empty);
        assert_eq!(judge(b"", End::Reached, USABLE), Judgement::Empty);
        assert_eq!(judge(b" a", End::Open, USABLE), Judgement::Enough);
    }

    /// Both needs must be met.
    #[test]
    fn a_usable_line_is_awaited_where_both_matter() {
        assert_eq!(judge(b"\n", End::Open, BOTH), Judgement::More);
        assert_eq!(judge(b"alice", End::Open, BOTH), Judgement::More);
        assert_eq!(judge(b"alice\n", End::Open, BOTH), Judgement::Enough);
    }
}
