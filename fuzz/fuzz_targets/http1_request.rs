#![no_main]
//! The head of a request of any bytes: it is refused, or what is passed on of it is read again as the same. How the bytes are split changes nothing.

use std::net::Ipv4Addr;

use evenkeel_wire::http1::{
    ConnectMethod, FieldSlots, Forward, Forwarding, Limits, Parsed, Persistence, RequestEdits,
    RequestHead, Scheme, Upgrade, client_address, is_worth_parsing,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (split, bytes) = input;
    let limits = Limits {
        connect: ConnectMethod::Accept,
        ..Limits::default()
    };
    let mut slots = FieldSlots::new();
    let whole = RequestHead::parse(bytes, &limits, &mut slots);
    check_part(&bytes[..bytes.len().min(split.into())], &whole, &limits);
    if whole != Parsed::Incomplete {
        check_worth(bytes, &whole, &limits);
    }
    if let Parsed::Complete(head, _) = whole {
        check_written(&head);
    }
});

fn check_part(part: &[u8], whole: &Parsed<RequestHead<'_>>, limits: &Limits) {
    let mut slots = FieldSlots::new();
    match RequestHead::parse(part, limits, &mut slots) {
        Parsed::Incomplete => {}
        part => assert!(part == *whole, "a part is read as something else"),
    }
}

/// A head that is complete is seen to be so.
fn check_worth(bytes: &[u8], whole: &Parsed<RequestHead<'_>>, limits: &Limits) {
    if let Parsed::Complete(_, end) = whole {
        assert!(is_worth_parsing(&bytes[..*end], end - 1, limits));
    }
}

fn check_written(head: &RequestHead<'_>) {
    let _ = client_address(head.fields, Ipv4Addr::LOCALHOST.into(), |_| true);
    for forward in [Forward::Leave, Forward::Append, Forward::Replace] {
        let first = written(head, forward);
        let mut slots = FieldSlots::new();
        let limits = Limits {
            head_bytes: first.len(),
            fields: usize::MAX,
            target_bytes: usize::MAX,
            connect: ConnectMethod::Accept,
        };
        match RequestHead::parse(&first, &limits, &mut slots) {
            Parsed::Complete(again, end) => {
                assert_eq!(end, first.len());
                assert_eq!(
                    (
                        again.method,
                        again.framing,
                        again.target.path(),
                        again.target.query()
                    ),
                    (
                        head.method,
                        head.framing,
                        head.target.path(),
                        head.target.query()
                    )
                );
            }
            other => panic!("what is written is not read: {other:?}"),
        }
    }
}

fn written(head: &RequestHead<'_>, forward: Forward) -> Vec<u8> {
    let edits = RequestEdits {
        persistence: Persistence::Close,
        upgrade: Upgrade::Forward,
        forwarding: Forwarding {
            client: Ipv4Addr::LOCALHOST.into(),
            scheme: Scheme::Http,
            x_forwarded: forward,
            forwarded: forward,
            via: None,
            request_id: None,
        },
        fields: &[],
    };
    let mut out = Vec::new();
    head.write(&edits, &mut out);
    out
}
