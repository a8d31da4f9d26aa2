//! Replacing the running program by a new one without losing a connection.
//!
//! The old process starts the new one ([`program`], [`successor`], [`underway`]) and hands over duplicates of its sockets, over a line of their
//! own ([`channel`], [`words`]); the new one ([`predecessor`], [`endowment`]) starts with them as it always starts, says that it serves, and
//! is told when it serves alone. What the old one still has afterwards is in [`remainder`]. Why it goes in this order: docs/decisions/0008-upgrade.md.

mod channel;
pub(crate) mod endowment;
mod predecessor;
mod program;
mod remainder;
mod state;
mod successor;
pub(crate) mod underway;
mod words;

use std::fs::File;
use std::os::fd::OwnedFd;

use evenkeel_proxy::FileMark;
use evenkeel_proxy::control::socket::HandedSocket;

pub(crate) use predecessor::{Predecessor, meet};
pub(crate) use program::Program;
pub(crate) use remainder::Remainder;
pub(crate) use successor::{Line, Successor, UpgradeError};

/// Tells a program that it is to follow a running one: the process id of its parent, which has the other end of its standard input.
const PREDECESSOR_VARIABLE: &str = "EVENKEEL_PREDECESSOR";

/// The most sockets that are handed over.
const SOCKETS_MAX: usize = 65_536;

/// The most files of Unix sockets that go over: as many as surely fit into a packet. Others stay when their listener goes.
const FILES_MAX: usize = 64;

/// What one process hands to the next, all of it duplicates.
#[derive(Debug, Default)]
pub(crate) struct Belongings {
    /// Listening sockets, with the names of their listeners.
    pub(crate) sockets: Vec<(String, OwnedFd)>,
    /// The files of those on paths.
    pub(crate) files: Vec<FileMark>,
    /// The control socket.
    pub(crate) control: Option<HandedSocket>,
    /// What is known of endpoints.
    pub(crate) state: Option<File>,
}
