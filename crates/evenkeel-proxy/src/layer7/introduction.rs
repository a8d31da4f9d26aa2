//! The PROXY header that a trusted peer begins with: read before the session begins, and taken out of the stream.
//!
//! It is looked at where it lies until it is whole, so that not one byte behind it is taken.

use std::io;

use evenkeel_reactor::Origin;
use evenkeel_wire::proxy_protocol::{self, HEADER_BYTES_MAX, Header, Parsed};
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::time::timeout;

use super::session::Client;
use super::stream::Stream;
use crate::listener::ListenerState;
use crate::telemetry::reason::Reason;

/// Who a connection is for. Only a trusted peer is asked for a header, and has as long as the listener's `preread`.
///
/// # Errors
///
/// There is no header that can be believed, so nobody knows whom the connection is for; or the peer has gone.
pub(super) async fn introduce(
    stream: &Stream,
    peer: Origin,
    listener: &ListenerState,
) -> Result<Client, Reason> {
    let senders = listener.settings.proxy_protocol.iter();
    let mut trusted = senders.flat_map(|senders| senders.iter());
    if !trusted.any(|sender| sender.includes(peer)) {
        return Ok(Client {
            peer,
            announced: None,
        });
    }
    let header = timeout(listener.settings.timeouts.preread, read_header(stream)).await;
    let header = header.unwrap_or(Err(Reason::ProxyProtocolError))?;
    Ok(Client {
        peer,
        announced: Some(header)
            .filter(|header| *header != Header::Local)
            .map(Box::new),
    })
}

async fn read_header(stream: &Stream) -> Result<Header, Reason> {
    loop {
        let readable = stream.readable().await;
        readable.map_err(|_| Reason::ClientClosed)?;
        match stream.try_io(Interest::READABLE, || look(stream)) {
            Ok(found) => return found,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Reason::ClientClosed),
        }
    }
}

/// What has come so far: a part of a header is left lying, and more of it makes an event.
fn look(stream: &Stream) -> io::Result<Result<Header, Reason>> {
    let mut room = [0; HEADER_BYTES_MAX];
    let (count, _) = recv(stream, &mut room, RecvFlags::PEEK)?;
    match proxy_protocol::parse(&room[..count]) {
        Ok(Parsed::Whole(header, length)) => {
            let _ = recv(stream, &mut room[..length], RecvFlags::empty())?;
            Ok(Ok(header))
        }
        // A probe of whoever is in front: it connects, and goes.
        Ok(Parsed::Partial) if count == 0 => Ok(Err(Reason::ClientClosed)),
        Ok(Parsed::Partial) if count < HEADER_BYTES_MAX => Err(io::ErrorKind::WouldBlock.into()),
        Ok(Parsed::Partial) | Err(_) => Ok(Err(Reason::ProxyProtocolError)),
    }
}
