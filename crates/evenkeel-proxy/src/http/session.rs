//! A client's connection, from accept to the end: one exchange after the other.

use std::rc::Rc;
use std::sync::Arc;

use evenkeel_core::units::Time;
use evenkeel_wire::http1::Persistence;

use super::Workshop;
use super::alarm::Alarm;
use super::inbox::Inbox;
use super::linger::linger;
use super::request::Awaited;
use crate::layer7::{Arrival, Client, Standing, Stream, Word};
use crate::settings::{HttpSettings, Protocol};
use crate::telemetry::reason::Reason;
use crate::telemetry::record::SessionRecord;

/// See the module's documentation. It holds no buffer while it waits for a request.
pub(super) struct Session {
    pub(super) stream: Stream,
    /// What the client has sent and nobody has looked at.
    pub(super) inbox: Inbox,
    pub(super) alarm: Alarm,
    pub(super) client: Client,
    pub(super) settings: Arc<HttpSettings>,
    pub(super) workshop: Rc<Workshop>,
    pub(super) accepted_at: Time,
    /// Requests so far.
    pub(super) requests: u32,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    /// Last, so that it is counted until its socket is closed.
    pub(super) standing: Standing,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// Nothing is unread.
    Close,
    /// The client may still send, and has been sent something that it should read.
    Linger,
    /// What was sent is not whole.
    Reset,
}

/// What becomes of the connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Request,
    End(Parting, Reason),
}

/// Serves a connection to its end.
pub(crate) async fn serve(arrival: Arrival) {
    let Protocol::Http(settings) = &arrival.standing.listener.settings.protocol else {
        // Workers of this kind are given no such listeners.
        return;
    };
    let settings = Arc::clone(settings);
    let mut session = Session::begin(arrival, settings);
    let (parting, reason) = session.run().await;
    session.end(parting, reason).await;
}

impl Session {
    fn begin(arrival: Arrival, settings: Arc<HttpSettings>) -> Self {
        let Arrival {
            stream,
            client,
            accepted_at,
            standing,
        } = arrival;
        let shared = standing.shared();
        Self {
            stream,
            inbox: Inbox::default(),
            alarm: Alarm::new(shared.clock),
            client,
            settings,
            workshop: Rc::clone(&shared.workshop),
            accepted_at,
            requests: 0,
            bytes_up: 0,
            bytes_down: 0,
            standing,
        }
    }

    async fn run(&mut self) -> (Parting, Reason) {
        loop {
            let next = match self.next_request(self.accepted_at).await {
                // Apart from the connection, which is small while it waits.
                Awaited::Request(plan) => Box::pin(self.exchange(*plan)).await,
                Awaited::Refused(refused) => Box::pin(self.refuse(refused)).await,
                Awaited::Over(parting, reason) => Next::End(parting, reason),
            };
            if let Next::End(parting, reason) = next {
                return (parting, reason);
            }
        }
    }

    async fn end(mut self, parting: Parting, reason: Reason) {
        match parting {
            Parting::Close => {}
            Parting::Reset => self.stream.reset_when_closed(),
            Parting::Linger => {
                self.inbox.clear();
                self.inbox.settle(&self.workshop.stock);
                let letterbox = self.standing.letterbox();
                Box::pin(linger(&mut self.stream, &mut self.alarm, letterbox)).await;
            }
        }
        let shared = self.standing.shared();
        shared.sink.connection_ended(self.connection_record(reason));
    }

    /// What the client wants of the connection, and what may be granted now.
    pub(super) fn granted(&self, wanted: Persistence) -> Persistence {
        let is_last = self
            .settings
            .limits
            .requests
            .is_some_and(|max| self.requests >= max.get());
        if is_last || self.standing.letterbox().word() >= Word::Finish {
            Persistence::Close
        } else {
            wanted
        }
    }

    fn connection_record(&self, reason: Reason) -> SessionRecord {
        let now = self.alarm.now();
        SessionRecord {
            bytes_up: self.bytes_up,
            bytes_down: self.bytes_down,
            total: now.since(self.accepted_at),
            ..self.blank_record(reason)
        }
    }

    /// A record of which nothing is known but who and where.
    pub(super) fn blank_record(&self, reason: Reason) -> SessionRecord {
        let client = self.client.origin();
        SessionRecord {
            listener: Arc::clone(&self.standing.listener.settings.name),
            cluster: None,
            client,
            peer: Some(self.client.peer).filter(|peer| *peer != client),
            endpoint: None,
            attempts: 0,
            bytes_up: 0,
            bytes_down: 0,
            queued: std::time::Duration::ZERO,
            connect: None,
            first_byte: None,
            total: std::time::Duration::ZERO,
            reason,
        }
    }
}
