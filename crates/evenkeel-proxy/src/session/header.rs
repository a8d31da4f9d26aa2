//! The PROXY protocol at both ends of a session: whom a trusted sender has announced, and how endpoints are told.
//!
//! A header is no part of the stream: the client's is taken out before anything else sees it, and an endpoint's goes ahead of
//! every attempt anew, so that a replay has one of its own.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use evenkeel_core::units::Address;
use evenkeel_reactor::{Fate, Fault, Flow, Origin, Sent};
use evenkeel_wire::proxy_protocol::{
    self, Ends, HEADER_BYTES_MAX, Header, Parsed, UNIX_PATH_BYTES, UnixPath,
};

use super::ending::Close;
use super::relay::Relay;
use super::{Preread, Session, State};
use crate::settings::KeySource;
use crate::telemetry::reason::Reason;
use crate::upstream::Attempt;
use crate::worker::Work;

impl Session {
    /// Whether the peer is one that announces whom it connects for.
    pub(super) fn awaits_header(&self) -> bool {
        let senders = self.listener.settings.proxy_protocol.iter();
        let mut trusted = senders.flat_map(|senders| senders.iter());
        trusted.any(|sender| sender.includes(self.peer))
    }

    /// Who the client is: whom the peer has announced, or the peer itself.
    pub(super) fn client(&self) -> Origin {
        match self.announced.as_deref() {
            None => self.peer,
            Some(Header::Tcp(ends)) => Origin::Ip(ends.source),
            Some(Header::Unix(_) | Header::Local) => Origin::Unix,
        }
    }

    /// Reads what has come of the header, and goes on once it is whole.
    pub(super) fn read_header(&mut self, work: &mut Work<'_, '_>) -> Fate {
        let buffer = &mut work.turn.gear.buffer;
        let flow = self
            .up
            .gather(&mut self.downstream, buffer, HEADER_BYTES_MAX);
        if self.is_client_gone() {
            return self.end(Reason::ClientClosed, work);
        }
        match proxy_protocol::parse(self.up.unsent()) {
            Ok(Parsed::Whole(header, length)) => {
                self.up.leave_out(length);
                self.announce(header, work)
            }
            Ok(Parsed::Partial) if flow == Flow::Waiting => Fate::Keep,
            // A probe of whoever is in front: it connects, and goes.
            Ok(Parsed::Partial) if self.up.unsent().is_empty() => {
                self.end(Reason::ClientClosed, work)
            }
            Ok(Parsed::Partial) => self.header_missing(work),
            Err(malformed) => {
                let (listener, peer) = (&*self.listener.settings.name, self.peer);
                tracing::debug!(listener, %peer, %malformed, "a PROXY header is refused");
                self.header_missing(work)
            }
        }
    }

    /// Without a header that can be believed nobody knows whom the connection is for.
    pub(super) fn header_missing(&mut self, work: &mut Work<'_, '_>) -> Fate {
        self.close(Reason::ProxyProtocolError, Close::Reset, work)
    }

    /// From here on the session is the announced client's.
    fn announce(&mut self, header: Header, work: &mut Work<'_, '_>) -> Fate {
        if header != Header::Local {
            self.announced = Some(Box::new(header));
            self.placement = self.listener.route.place_unread(self.client());
        }
        let Some(stage) = self.stage_of_first_bytes() else {
            return self.seek(work);
        };
        // Not `enter`: the time for all first bytes goes on.
        self.state = State::Preread(stage);
        match stage {
            Preread::Hello => self.read_hello(work),
            _ => self.preread(work),
        }
    }

    /// An endpoint is connected: it is told whom for, where it wants to know.
    pub(super) fn introduce(&mut self, attempt: Attempt, work: &mut Work<'_, '_>) -> Fate {
        let guard_at = self.guard_at(work.now());
        let mut relay = Relay::begin(attempt, guard_at);
        let Some(version) = self.placement.tier.settings.proxy_protocol else {
            self.enter(State::Relaying(relay), work.now());
            return self.relay(work);
        };
        let header = proxy_protocol::encode(version, &self.header());
        // One that has spoken or gone already is looked at before it is sent anything of the client's.
        if !relay.attempt.stream.is_readable() {
            let buffer = &mut work.turn.gear.buffer;
            self.up
                .gather(&mut self.downstream, buffer, KeySource::FIRST_LINE_MAX);
        }
        let with_header = self.up.flush_behind(&header, &mut relay.attempt.stream);
        self.enter(State::Relaying(relay), work.now());
        match with_header {
            // A new socket has room for a header. One that has not is no way to the endpoint.
            Sent::Bytes(count) if count < header.len() => self.connect_failed(Fault::Local, work),
            // If it is broken, the relay finds out how.
            _ => {
                self.note_movement(work.now());
                self.relay(work)
            }
        }
    }

    /// What the endpoint is told: what was announced to us goes on as it came.
    fn header(&self) -> Header {
        match (self.announced.as_deref(), self.peer) {
            (Some(header), _) => header.clone(),
            (None, Origin::Ip(source)) => {
                // Of a connection that has broken in the meantime nobody will read it.
                let destination = self.downstream.local_address();
                destination.map_or(Header::Local, |destination| {
                    Header::Tcp(Ends {
                        source,
                        destination,
                    })
                })
            }
            (None, Origin::Unix) => unix_header(&self.listener.address),
        }
    }
}

/// A Unix client has no path of its own.
fn unix_header(address: &Address) -> Header {
    match address {
        Address::Unix(path) => Header::Unix(Box::new(Ends {
            source: [0; UNIX_PATH_BYTES],
            destination: padded(path),
        })),
        Address::Ip(_) => Header::Local,
    }
}

fn padded(path: &Path) -> UnixPath {
    let mut padded = [0; UNIX_PATH_BYTES];
    let bytes = path.as_os_str().as_bytes();
    let count = bytes.len().min(UNIX_PATH_BYTES);
    padded[..count].copy_from_slice(&bytes[..count]);
    padded
}
