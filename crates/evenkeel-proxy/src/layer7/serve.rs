//! The life of a session's task: who the client is, and then the protocol of its listener.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::Time;
use evenkeel_reactor::Origin;

use super::introduction::introduce;
use super::letterbox::Word;
use super::session::{Arrival, Standing};
use super::stream::Stream;
use crate::http;
use crate::telemetry::reason::Reason;
use crate::telemetry::record::SessionRecord;

/// Runs a session to its end.
pub(super) async fn begin(stream: Stream, peer: Origin, standing: Standing, accepted_at: Time) {
    let client = tokio::select! {
        biased;
        _ = standing.letterbox().next_word(Word::Finish) => Err(Reason::StopDeadline),
        client = introduce(&stream, peer, &standing.listener) => client,
    };
    match client {
        Ok(client) => {
            let arrival = Arrival {
                stream,
                client,
                accepted_at,
                standing,
            };
            http::serve(arrival).await;
        }
        Err(reason) => turn_away(&stream, peer, &standing, accepted_at, reason),
    }
}

/// Nobody knows whom the connection is for.
fn turn_away(
    stream: &Stream,
    peer: Origin,
    standing: &Standing,
    accepted_at: Time,
    reason: Reason,
) {
    if reason != Reason::ClientClosed {
        stream.reset_when_closed();
    }
    let settings = &standing.listener.settings;
    standing.shared().sink.session_ended(SessionRecord {
        listener: Arc::clone(&settings.name),
        cluster: settings.to.clone(),
        client: peer,
        peer: None,
        endpoint: None,
        attempts: 0,
        bytes_up: 0,
        bytes_down: 0,
        queued: Duration::ZERO,
        connect: None,
        first_byte: None,
        total: standing.shared().now().since(accepted_at),
        reason,
    });
}
