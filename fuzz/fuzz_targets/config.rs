#![no_main]
//! A configuration file of any bytes: it is read, or its faults are reported and can be drawn. A valid one can be dumped,
//! and what was dumped means the same.

use evenkeel::config::{dump, parse_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_text("fuzz.toml", text) {
        Ok(loaded) => {
            let again = parse_text("dump.toml", &dump(&loaded)).expect("a dump is a configuration");
            assert!(again == loaded, "a dump means something else");
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
});
