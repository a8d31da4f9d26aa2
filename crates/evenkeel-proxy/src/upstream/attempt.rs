//! One try on one endpoint: its lease, its connection, its place in the index.
//!
//! Whatever way it ends, the connection is closed before the lease is given back, so that an endpoint's limit is
//! never passed by a connection that is on its way out. What a try's end means for the session is the session's decision.

use std::sync::Arc;

use evenkeel_core::units::{Address, Time};
use evenkeel_core::{Failure, Lease, Outcome};
use evenkeel_reactor::{Fault, Key, Remote, Stream, StreamOptions, Tag, Turn};

use crate::kernel;

use super::index::{Seat, SessionIndex};

/// One try on one endpoint.
pub(crate) struct Attempt {
    pub(crate) stream: Stream,
    lease: Lease,
    seat: Seat,
    /// Events of an earlier try's socket bear another tag.
    pub(crate) tag: Tag,
}

/// A try that could not even begin. The lease has been given back.
pub(crate) struct ConnectError(pub(crate) Fault);

impl Attempt {
    /// Begins to connect; events of the socket will bear the tag.
    ///
    /// # Errors
    ///
    /// It failed at once; the lease is finished accordingly.
    pub(crate) fn begin(
        lease: Lease,
        options: StreamOptions,
        turn: &Turn<'_>,
        (session, tag): (Key, Tag),
        index: &Arc<SessionIndex>,
        now: Time,
    ) -> Result<Self, ConnectError> {
        match connect(lease.address(), options, turn, (session, tag)) {
            Ok(stream) => {
                let seat = index.enter(lease.endpoint(), session);
                Ok(Self {
                    stream,
                    lease,
                    seat,
                    tag,
                })
            }
            Err(fault) => {
                lease.finish(
                    failure_of(fault).map_or(Outcome::Abandoned, Outcome::Failed),
                    now,
                );
                Err(ConnectError(fault))
            }
        }
    }

    /// Whether, instead of an endpoint, this very connection is at the other end.
    pub(crate) fn is_connected_to_itself(&self) -> bool {
        match self.lease.address() {
            Address::Ip(address) => {
                // Only such ports are handed out: all others are spared the question.
                kernel::handed_out_ports().contains(&address.port())
                    && self.stream.is_connected_to_itself(*address)
            }
            Address::Unix(_) => false,
        }
    }

    /// The first answer byte arrived.
    pub(crate) fn established(&mut self, now: Time) {
        self.lease.established(now);
    }

    /// Resets the connection and gives the lease back. If it has not been noticed yet that the connection is made, closing
    /// would show the endpoint an empty stream that its client never ended.
    pub(crate) fn abort(self, outcome: Outcome, now: Time) {
        self.stream.reset_when_closed();
        self.finish(outcome, now);
    }

    /// Closes the connection, in order if nothing is unread, and gives the lease back.
    pub(crate) fn finish(self, outcome: Outcome, now: Time) {
        let Self {
            stream,
            lease,
            seat,
            ..
        } = self;
        drop(stream);
        drop(seat);
        lease.finish(outcome, now);
    }
}

fn connect(
    address: &Address,
    options: StreamOptions,
    turn: &Turn<'_>,
    (session, tag): (Key, Tag),
) -> Result<Stream, Fault> {
    let remote = match address {
        Address::Ip(address) => Remote::Ip(*address),
        Address::Unix(path) => Remote::Unix(path),
    };
    let stream = Stream::connect(remote, options)?;
    if turn.watch(&stream, session, tag).is_err() {
        stream.reset_when_closed();
        return Err(Fault::Local);
    }
    Ok(stream)
}

/// What a fault while connecting says of the endpoint; `None` if it is this machine's.
pub(crate) const fn failure_of(fault: Fault) -> Option<Failure> {
    match fault {
        Fault::Refused => Some(Failure::Refused),
        Fault::Unreachable => Some(Failure::Unreachable),
        Fault::TimedOut => Some(Failure::ConnectTimeout),
        Fault::Reset => Some(Failure::Reset),
        Fault::Local => None,
    }
}
