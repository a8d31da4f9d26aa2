//! Where a session goes by the name that its client asks for in a TLS handshake, which is passed on as it came.
//!
//! Bounded in bytes and in time, as every stage before placing. A client that speaks no TLS, asks for a name that no rule is
//! for, or sends nothing in time goes where the listener sends all others, if anywhere.

use evenkeel_reactor::{Fate, Flow};
use evenkeel_wire::client_hello::{self, HELLO_BYTES_MAX, Parsed};

use super::Session;
use crate::telemetry::reason::Reason;
use crate::worker::Work;

impl Session {
    pub(super) fn needs_hello(&self) -> bool {
        self.listener.route.goes_by_server_name()
    }

    /// Reads what has come of the handshake, and places the session once the name in it is known.
    pub(super) fn read_hello(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let buffer = &mut work.turn.gear.buffer;
        let flow = self
            .up
            .gather(&mut self.downstream, buffer, HELLO_BYTES_MAX);
        if self.is_client_gone() {
            return self.end(Reason::ClientClosed, work);
        }
        match client_hello::parse(self.up.unsent()) {
            Ok(Parsed::Whole(hello)) => {
                self.go_by(hello.server_name.as_deref(), Reason::NoRoute, work)
            }
            Ok(Parsed::Partial) if flow == Flow::Waiting => Fate::Keep,
            // A probe of whoever is in front: it connects, and goes.
            Ok(Parsed::Partial) if self.up.unsent().is_empty() => {
                self.go_by(None, Reason::ClientClosed, work)
            }
            Ok(Parsed::Partial) => self.go_by(None, Reason::NoRoute, work),
            Err(refused) => {
                let (listener, peer) = (&*self.listener.settings.name, self.peer);
                tracing::debug!(listener, %peer, %refused, "no name is asked for by TLS");
                self.go_by(None, Reason::NoRoute, work)
            }
        }
    }

    /// The time for it is over. A client that waits for the server's first word has none to send.
    pub(super) fn hello_missing(&mut self, work: &mut Work<'_, '_>) -> Fate {
        self.go_by(None, Reason::PrereadTimeout, work)
    }

    /// `nowhere` is why it ends if there is no way for it.
    fn go_by(&mut self, name: Option<&str>, nowhere: Reason, work: &mut Work<'_, '_>) -> Fate {
        let Some((placement, _)) = self.listener.route.place_by_name(self.client(), name) else {
            return self.end(nowhere, work);
        };
        self.up.keep_for_replay(placement.tier.settings.replay);
        self.placement = placement;
        self.trail.placed();
        self.seek(work)
    }
}
