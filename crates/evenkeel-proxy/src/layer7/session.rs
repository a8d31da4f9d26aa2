//! What a session of the application layer has from its worker: its connection, its place, and the way to an endpoint.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use evenkeel_core::units::{EndpointId, Time};
use evenkeel_core::{Acquired, Lease, Refusal, Request, Tried, Waiter};
use evenkeel_reactor::{Clock, Key, Origin};
use evenkeel_wire::proxy_protocol::Header;

use super::ended::Ended;
use super::letterbox::{Letterbox, Wait};
use super::stream::Stream;
use crate::SessionSink;
use crate::crew::Place;
use crate::http::Workshop;
use crate::listener::Counted;
use crate::tier::Placement;
use crate::upstream::{Seat, SessionIndex};
use crate::worker::{GrantPost, time_of};

/// What the sessions of one worker share.
pub(crate) struct Shared {
    pub(crate) sink: Arc<dyn SessionSink>,
    pub(crate) clock: Clock,
    pub(crate) random: RefCell<fastrand::Rng>,
    /// Brings a granted slot to this worker.
    pub(super) waiter: Arc<dyn Waiter>,
    pub(super) index: Arc<SessionIndex>,
    pub(super) ended: Ended,
    /// What its HTTP sessions share.
    pub(crate) workshop: Rc<Workshop>,
}

impl Shared {
    pub(crate) fn now(&self) -> Time {
        time_of(self.clock.now())
    }
}

/// A connection that has been accepted, at the moment its session begins.
pub(crate) struct Arrival {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    pub(crate) accepted_at: Time,
    /// To be kept until the stream is closed.
    pub(crate) standing: Standing,
}

/// Who a session is for.
pub(crate) struct Client {
    /// Who connected.
    pub(crate) peer: Origin,
    /// Whom it connected for, where it is trusted to say so.
    pub(crate) announced: Option<Box<Header>>,
}

impl Client {
    /// Who the client is: whom the peer has announced, or the peer itself.
    pub(crate) fn origin(&self) -> Origin {
        match self.announced.as_deref() {
            None => self.peer,
            Some(Header::Tcp(ends)) => Origin::Ip(ends.source),
            Some(Header::Unix(_) | Header::Local) => Origin::Unix,
        }
    }
}

/// A session among the others: counted, and to be reached, until this is dropped.
pub(crate) struct Standing {
    key: Key,
    letterbox: Rc<Letterbox>,
    shared: Rc<Shared>,
    /// As it was when the session was accepted.
    pub(crate) listener: Counted,
    _place: Place,
}

/// What came of asking for an endpoint.
pub(crate) enum Sought {
    /// An endpoint, counted.
    Lease(Lease),
    /// Every usable endpoint is full: the lease comes when it is the session's turn.
    Wait(Wait),
    /// Neither.
    Refused(Refusal),
}

impl Standing {
    pub(super) const fn new(
        key: Key,
        letterbox: Rc<Letterbox>,
        shared: Rc<Shared>,
        listener: Counted,
        place: Place,
    ) -> Self {
        Self {
            key,
            letterbox,
            shared,
            listener,
            _place: place,
        }
    }

    /// What the session is told while it runs.
    pub(crate) fn letterbox(&self) -> &Letterbox {
        &self.letterbox
    }

    /// What the sessions of the worker share.
    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Asks for an endpoint. A session waits for one at a time.
    pub(crate) fn seek(&self, placement: &Placement, tried: &Tried) -> Sought {
        let number = self.letterbox.next_wait();
        let request = Request {
            key: placement.key,
            tried,
            waiter: Some((&self.shared.waiter, GrantPost::token(self.key, number))),
        };
        let cluster = &placement.tier.cluster;
        let mut random = self.shared.random.borrow_mut();
        match cluster.acquire(&request, self.shared.now(), &mut random) {
            Acquired::Lease(lease) => Sought::Lease(lease),
            Acquired::Wait(ticket) => Sought::Wait(Wait::begin(&self.letterbox, number, ticket)),
            Acquired::Refused(refusal) => Sought::Refused(refusal),
        }
    }

    /// The session uses an endpoint, until this is dropped; one at a time.
    pub(crate) fn enter(&self, endpoint: EndpointId) -> Use {
        self.letterbox.forget_endpoint();
        Use {
            _seat: self.shared.index.enter(endpoint, self.key),
            letterbox: Rc::clone(&self.letterbox),
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.shared.ended.note(self.key);
    }
}

/// That a session uses an endpoint.
pub(crate) struct Use {
    _seat: Seat,
    letterbox: Rc<Letterbox>,
}

impl Drop for Use {
    fn drop(&mut self) {
        self.letterbox.forget_endpoint();
    }
}
