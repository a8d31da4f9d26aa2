//! What an endpoint has said: the head of its answer, judged and written anew for the client.

use evenkeel_wire::http1::{
    BodyFraming, FieldSlots, Limits, Parsed, Persistence, Refusal, ResponseEdits, ResponseHead,
    Upgrade, Version,
};

use super::endpoint::{Endpoint, Fitness};
use super::flow::Coding;
use super::plan::Plan;
use super::relay::{End, Relay};
use super::session::Session;

/// What was found at the front of what an endpoint has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Not enough to tell.
    Nothing,
    /// An interim answer, which goes on: there is another one behind it.
    Interim,
    /// The answer, which goes on; its body follows.
    Answer,
    /// Another protocol follows.
    Upgrade,
}

impl Relay {
    /// Looks for a head. What goes on to the client is written behind what is on its way already.
    pub(super) fn look(
        &mut self,
        session: &Session,
        endpoint: &mut Endpoint,
        plan: &Plan,
    ) -> Result<Said, End> {
        if endpoint.inbox.is_empty() {
            return Ok(Said::Nothing);
        }
        let mut slots = FieldSlots::new();
        let limits = limits(session);
        match ResponseHead::parse(endpoint.inbox.bytes(), plan.asked, &limits, &mut slots) {
            Parsed::Incomplete => Ok(Said::Nothing),
            Parsed::Refused(refusal) => Err(End::BadAnswer(refusal)),
            Parsed::Complete(head, length) => {
                let said = self.take(&head, session, plan)?;
                endpoint.inbox.consume(length);
                Ok(said)
            }
        }
    }

    fn take(
        &mut self,
        head: &ResponseHead<'_>,
        session: &Session,
        plan: &Plan,
    ) -> Result<Said, End> {
        if head.is_interim() {
            // A client of HTTP/1.0 knows no interim answers.
            if plan.version == Version::Http11 {
                self.write_head(head, session, (plan.version, BodyFraming::None));
            }
            return Ok(Said::Interim);
        }
        if head.begins_tunnel() {
            if !plan.is_upgrade {
                return Err(End::BadAnswer(Refusal::StatusLine));
            }
            self.status = Some(head.status);
            self.write_head(head, session, (plan.version, BodyFraming::None));
            return Ok(Said::Upgrade);
        }
        self.answer(head, session, plan);
        Ok(Said::Answer)
    }

    fn answer(&mut self, head: &ResponseHead<'_>, session: &Session, plan: &Plan) {
        self.status = Some(head.status);
        self.fitness = match head.persistence() {
            Persistence::KeepAlive => Fitness::Reusable,
            Persistence::Close => Fitness::Spent,
        };
        let framing = framing_for(plan.version, head.framing);
        let wanted = match (framing, plan.persistence) {
            (BodyFraming::UntilClose, _) | (_, Persistence::Close) => Persistence::Close,
            (_, Persistence::KeepAlive) => Persistence::KeepAlive,
        };
        self.persistence = session.granted(wanted);
        self.give_up_awaited_body(plan);
        self.write_head(head, session, (plan.version, framing));
        let coding = match framing {
            BodyFraming::Chunked => Coding::Chunked,
            _ => Coding::Plain,
        };
        self.down.expect(head.framing, coding);
    }

    fn write_head(
        &mut self,
        head: &ResponseHead<'_>,
        session: &Session,
        (client, framing): (Version, BodyFraming),
    ) {
        let edits = ResponseEdits {
            client,
            persistence: self.persistence,
            framing,
            upgrade: Upgrade::Forward,
            via: session.settings.forwarding.via_value(),
            fields: &[],
        };
        head.write(&edits, self.down.head());
    }
}

/// How large an endpoint's head may be.
fn limits(session: &Session) -> Limits {
    let limits = &session.settings.limits;
    Limits {
        head_bytes: limits.head_bytes,
        fields: limits.headers,
        ..Limits::default()
    }
}

/// How a body is sent to a client of this version that comes so: chunked where its end is not known, if the client knows chunks.
const fn framing_for(client: Version, framing: BodyFraming) -> BodyFraming {
    match (framing, client) {
        (BodyFraming::Chunked, Version::Http10) => BodyFraming::UntilClose,
        (BodyFraming::UntilClose, Version::Http11) => BodyFraming::Chunked,
        (same, _) => same,
    }
}
