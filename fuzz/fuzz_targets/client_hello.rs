#![no_main]
//! Any bytes at the beginning of a connection: a TLS client's first message, the beginning of one, or refused, however they
//! are split.

use evenkeel_wire::client_hello::{
    ClientHello, HELLO_BYTES_MAX, Parsed, SERVER_NAME_BYTES_MAX, normal_name, parse,
};
use libfuzzer_sys::fuzz_target;

/// Splits beyond this many would make an input slow without telling more.
const SPLITS_MAX: usize = 2048;

fuzz_target!(|bytes: &[u8]| {
    let verdict = parse(bytes);
    match &verdict {
        Ok(Parsed::Partial) => assert!(bytes.len() < HELLO_BYTES_MAX),
        Ok(Parsed::Whole(hello)) => assert_sound(hello, bytes.len()),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    // Nothing is decided too early: what a beginning led to, the whole leads to.
    for split in 0..bytes.len().min(SPLITS_MAX) {
        let early = parse(&bytes[..split]);
        assert!(early == Ok(Parsed::Partial) || early == verdict);
    }
});

fn assert_sound(hello: &ClientHello, length: usize) {
    if let Some(name) = &hello.server_name {
        assert!(name.len() <= SERVER_NAME_BYTES_MAX);
        assert_eq!(normal_name(name).as_ref(), Some(name));
    }
    let offered: usize = hello.protocols().map(|protocol| protocol.len() + 1).sum();
    assert!(offered <= length);
    assert!(hello.protocols().all(|protocol| !protocol.is_empty()));
}
