//! What becomes of a request: where it goes, what is sent on, and what must be known of it when its bytes are gone.
//!
//! The head is written anew for the endpoint at once, before it is known which one that will be: nothing in it depends on that.

use evenkeel_core::units::Time;
use evenkeel_wire::http1::{Asked, BodyFraming, Expect, Form, Persistence, RequestHead, Version};

use super::answer::Shape;
use super::forward;
use super::seek::Repeat;
use super::session::Session;
use crate::route::Facts;
use crate::telemetry::record::RequestLine;
use crate::tier::Placement;

/// See the module's documentation.
pub(super) struct Plan {
    /// Where it goes; `None` if no route takes it.
    pub(super) placement: Option<Placement>,
    /// As it is sent to the endpoint.
    pub(super) head: Vec<u8>,
    pub(super) framing: BodyFraming,
    pub(super) asked: Asked,
    pub(super) version: Version,
    pub(super) persistence: Persistence,
    /// May be sent again, as far as its method goes.
    pub(super) is_idempotent: bool,
    /// Its client waits for 100, or for an answer, before it sends the body.
    pub(super) awaits_continue: bool,
    /// It asks for another protocol.
    pub(super) is_upgrade: bool,
    /// How its client likes an answer of our own.
    form: Form,
    pub(super) line: RequestLine,
    /// When its first byte came.
    pub(super) began: Time,
}

impl Plan {
    pub(super) fn of(head: &RequestHead<'_>, session: &Session, began: Time) -> Self {
        let host = head.host.map_or("", |host| host.text);
        let path = head.target.path();
        let client = forward::client(head, session);
        let route = &session.standing.listener.route;
        let facts = Facts {
            client,
            first_line: None,
        };
        let tier = route.find(host, path);
        let mut written = session.workshop.stock.bytes();
        forward::write_request(head, session, &mut written);
        Self {
            placement: tier.map(|tier| tier.resolve(&facts)),
            head: written,
            framing: head.framing,
            asked: head.method.asked(),
            version: head.version,
            persistence: head.persistence(),
            is_idempotent: head.method.is_idempotent(),
            awaits_continue: head.expect == Expect::Continue,
            is_upgrade: head.upgrade().is_some(),
            form: Form::accepted(head.fields),
            line: line(head, host, path),
            began,
        }
    }

    /// In which shape an answer of our own is written.
    pub(super) fn shape(&self, session: &Session) -> Shape {
        // Of a body that nobody reads, the end is not known; and a client of HTTP/1.0 reads on until the end.
        let is_clean = self.framing == BodyFraming::None && self.version == Version::Http11;
        let wanted = if is_clean {
            self.persistence
        } else {
            Persistence::Close
        };
        Shape {
            form: self.form,
            asked: self.asked,
            reason: session.settings.reason_header,
            persistence: session.granted(wanted),
        }
    }

    /// Whether the request can be sent once more although an endpoint may have acted on it. A body has gone with the first try.
    pub(super) fn repeat(&self) -> Repeat {
        if self.is_idempotent && self.framing == BodyFraming::None {
            Repeat::Allowed
        } else {
            Repeat::Forbidden
        }
    }
}

fn line(head: &RequestHead<'_>, host: &str, path: &str) -> RequestLine {
    let query = head.target.query();
    RequestLine::new(head.method.as_str(), host, (path, query))
}
