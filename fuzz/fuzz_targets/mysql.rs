#![no_main]
//! Any bytes from a server that calls itself MySQL, to a client that checks it: events, a refusal, or nothing.

use evenkeel_wire::mysql::{Account, Client, Event};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&piece_bytes, bytes)) = bytes.split_first() else {
        return;
    };
    let mut client = Client::new(Account {
        user: "check".to_owned(),
        password: b"sesame".to_vec(),
    });
    for piece in bytes.chunks(usize::from(piece_bytes.max(1))) {
        if client.receive(piece).is_err() {
            return;
        }
        while let Some(event) = client.next_event() {
            match event {
                Event::LoggedIn => client.ping(),
                Event::Pong => client.query("SELECT 1"),
                _ => client.quit(),
            }
        }
        client.take_outbound();
    }
});
