//! evenkeel, the program, as a library: what `main.rs` is a thin shell around, and what tests and fuzz targets call.
#![forbid(unsafe_code)]

mod activation;
mod admin;
pub mod balancer;
pub mod cli;
pub mod config;
mod control_plane;
mod demo;
mod descriptors;
mod desk;
pub mod example_service;
pub mod exit;
mod keeper;
pub mod lookout;
mod notes;
mod notify;
mod orders;
mod output;
mod program_log;
mod regular_file;
mod reload;
mod run;
mod signals;
mod span;
mod state_file;
mod table;
mod upgrade;
mod watch;
mod wording;
