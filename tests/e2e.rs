//! End-to-end tests of the real binary. One test program, so that it links once.
