//! One try on one endpoint: its lease, and a connection to it that was kept or has just been made.
//!
//! However it ends, the connection is closed or given back before the lease is, so that an endpoint's limit is never passed by a
//! connection that is on its way out.

use evenkeel_core::units::Time;
use evenkeel_core::{Lease, Outcome};

use super::Workshop;
use super::inbox::Inbox;
use crate::layer7::{Stream, Use};
use crate::upstream::pool::Connection;

/// See the module's documentation.
pub(super) struct Endpoint {
    pub(super) connection: Connection<Stream>,
    /// What it has sent and nobody has looked at.
    pub(super) inbox: Inbox,
    lease: Lease,
    /// Dropped before the lease is given back, as the connection.
    seat: Use,
}

/// Whether a connection may carry another exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitness {
    /// The exchange is over, and both sides agreed on where it ended.
    Reusable,
    /// It was cut off, or the endpoint wants no more.
    Spent,
}

impl Endpoint {
    pub(super) fn new(connection: Connection<Stream>, lease: Lease, seat: Use) -> Self {
        Self {
            connection,
            inbox: Inbox::default(),
            lease,
            seat,
        }
    }

    /// The first answer byte has come.
    pub(super) fn established(&mut self, now: Time) {
        self.lease.established(now);
    }

    /// Whether the connection has carried an exchange before, so that the endpoint may have closed it just now.
    pub(super) const fn is_kept(&self) -> bool {
        self.connection.is_used()
    }

    /// Ends the try.
    pub(super) fn end(self, outcome: Outcome, fitness: Fitness, workshop: &Workshop, now: Time) {
        let Self {
            connection,
            mut inbox,
            lease,
            seat,
        } = self;
        // What nobody asked for would be taken for the answer to the next request.
        let is_clean = inbox.is_empty();
        inbox.clear();
        inbox.settle(&workshop.stock);
        let endpoint = lease.endpoint();
        match fitness {
            Fitness::Reusable if is_clean => workshop.pool.give_back(endpoint, connection, now),
            _ => drop(connection),
        }
        drop(seat);
        lease.finish(outcome, now);
    }
}
