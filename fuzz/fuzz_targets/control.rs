#![no_main]
//! A line of any bytes on the control socket, at either end: it is understood, or refused with a reason.

use evenkeel_proxy::control::protocol::{decode_answer, decode_request, encode_request};
use evenkeel_proxy::control::report::{RouteReport, StatusReport, StopReport};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    match decode_request(line) {
        Ok(request) => {
            let again = encode_request(&request).expect("a request can be written");
            assert!(decode_request(&again).is_ok_and(|decoded| decoded == request));
        }
        Err(fault) => assert!(!fault.message.is_empty()),
    }
    let _ = decode_answer::<StatusReport>(line);
    let _ = decode_answer::<RouteReport>(line);
    let _ = decode_answer::<StopReport>(line);
});
