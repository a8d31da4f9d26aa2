//! evenkeel, the program, as a library: what `main.rs` is a thin shell around, and what tests and fuzz targets call.
#![forbid(unsafe_code)]

pub mod config;
pub mod exit;
