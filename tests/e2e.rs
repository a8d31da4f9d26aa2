//! End-to-end tests of the real binary. One test program, so that it links once.
//!
//! [`support`] starts the program and real servers; each file of [`scenarios`] tells what a user may rely on.

mod scenarios;
mod support;
