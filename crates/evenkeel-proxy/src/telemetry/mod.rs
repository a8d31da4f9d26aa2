//! What evenkeel tells about itself: reason codes, session records, counters, the access log.

pub mod reason;
pub mod record;
