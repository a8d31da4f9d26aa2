//! The request as the endpoint gets it, and what it is told of the client.
//!
//! Anybody can write the headers that tell of a client. They are believed of peers that are trusted; what others wrote is replaced.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use evenkeel_reactor::Origin;
use evenkeel_wire::http1::{
    FieldValue, Forward, Forwarding, Known, Persistence, RequestEdits, RequestHead, Scheme,
    Upgrade, client_address,
};

use super::session::Session;
use crate::senders::Sender;
use crate::settings::RequestId;

/// The longest request id that is kept.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// A request id that is made: 128 random bits in hexadecimal digits.
const REQUEST_ID_DIGITS: usize = 32;

/// Whom a request is from: whoever connected, unless that is a trusted proxy which says otherwise.
pub(super) fn client(head: &RequestHead<'_>, session: &Session) -> Origin {
    let peer = session.client.origin();
    let trusted = &session.settings.forwarding.trusted;
    let Some(address) = peer.ip().filter(|_| is_trusted(peer, trusted)) else {
        return peer;
    };
    let is_trusted = |address| is_trusted(Origin::Ip(SocketAddr::new(address, 0)), trusted);
    let client = client_address(head.fields, address, is_trusted);
    if client == address {
        peer
    } else {
        Origin::Ip(SocketAddr::new(client, 0))
    }
}

/// Appends the head of a request as an endpoint gets it.
pub(super) fn write_request(head: &RequestHead<'_>, session: &Session, out: &mut Vec<u8>) {
    let settings = &session.settings.forwarding;
    let peer = session.client.origin();
    let trust = |wanted| match wanted {
        Forward::Append if !is_trusted(peer, &settings.trusted) => Forward::Replace,
        // Nobody can be told of a client without an address.
        _ if peer.ip().is_none() => Forward::Leave,
        wanted => wanted,
    };
    let made = made_request_id(session);
    let forwarding = Forwarding {
        client: peer.ip().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        scheme: Scheme::Http,
        x_forwarded: trust(settings.x_forwarded),
        forwarded: trust(settings.forwarded),
        via: settings.via_value(),
        request_id: request_id(head, session, &made),
    };
    let edits = RequestEdits {
        persistence: Persistence::KeepAlive,
        upgrade: Upgrade::Forward,
        forwarding,
        fields: &[],
    };
    head.write(&edits, out);
}

fn is_trusted(peer: Origin, trusted: &[Sender]) -> bool {
    trusted.iter().any(|sender| sender.includes(peer))
}

fn request_id<'r>(
    head: &RequestHead<'r>,
    session: &Session,
    made: &'r Option<[u8; REQUEST_ID_DIGITS]>,
) -> Option<FieldValue<'r>> {
    let made = made.as_ref()?;
    let mut said = head.fields.of(Known::XRequestId);
    let trusted = &session.settings.forwarding.trusted;
    let kept = match (said.next(), said.next()) {
        (Some(only), None) if is_request_id(only) => Some(only),
        _ => None,
    };
    let kept = kept.filter(|_| is_trusted(session.client.origin(), trusted));
    FieldValue::new(kept.unwrap_or(made))
}

fn made_request_id(session: &Session) -> Option<[u8; REQUEST_ID_DIGITS]> {
    if session.settings.forwarding.request_id == RequestId::Leave {
        return None;
    }
    let number = session.standing.shared().random.borrow_mut().u128(..);
    Some(hexadecimal(number))
}

fn hexadecimal(number: u128) -> [u8; REQUEST_ID_DIGITS] {
    let mut digits = [0; REQUEST_ID_DIGITS];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        let nibble = (number >> (4 * place)) & 0xf;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    digits
}

/// Whether a request id may be kept as it came: one word that fits a log line.
fn is_request_id(id: &[u8]) -> bool {
    !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id is kept if it is one word that fits a log line, and one that is made is such.
    #[test]
    fn an_odd_request_id_is_not_kept() {
        assert!(is_request_id(b"abc-123"));
        for id in [&b""[..], b"a b", b"a\x07", &[b'x'; 129], "ä".as_bytes()] {
            assert!(!is_request_id(id), "{id:?}");
        }
        let made = hexadecimal(0x0123_4567_89ab_cdef << 64);
        assert_eq!(&made, b"0123456789abcdef0000000000000000");
        assert!(is_request_id(&made));
    }
}
