#![no_main]
//! Any bytes as a certificate: read or refused, and whatever is read can stand in a line.

use evenkeel_wire::certificate::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match read(bytes) {
        Ok(facts) => {
            assert!(!facts.subject.chars().any(char::is_control));
            assert!(facts.dns_names.iter().all(|name| name.is_ascii()));
        }
        Err(unreadable) => assert!(!unreadable.to_string().is_empty()),
    }
});
