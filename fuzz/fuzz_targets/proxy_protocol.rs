#![no_main]
//! Any bytes at the beginning of a connection: a PROXY header, the beginning of one, or refused, however they are split.

use evenkeel_wire::proxy_protocol::{HEADER_BYTES_MAX, Header, Parsed, Version, encode, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let verdict = parse(bytes);
    match &verdict {
        Ok(Parsed::Partial) => assert!(bytes.len() < HEADER_BYTES_MAX),
        Ok(Parsed::Whole(header, length)) => {
            assert!(*length <= HEADER_BYTES_MAX && *length <= bytes.len());
            assert_eq!(parse(&bytes[..*length]), verdict);
            assert_written_and_read_again(header);
        }
        Err(malformed) => assert!(!malformed.to_string().is_empty()),
    }
    // Nothing is decided too early: what a beginning led to, the whole leads to.
    for split in 0..bytes.len().min(HEADER_BYTES_MAX) {
        let early = parse(&bytes[..split]);
        assert!(early == Ok(Parsed::Partial) || early == verdict);
    }
});

fn assert_written_and_read_again(header: &Header) {
    let bytes = encode(Version::V2, header);
    assert_eq!(parse(&bytes), Ok(Parsed::Whole(header.clone(), bytes.len())));
    let line = encode(Version::V1, header);
    assert!(matches!(parse(&line), Ok(Parsed::Whole(_, length)) if length == line.len()));
}
