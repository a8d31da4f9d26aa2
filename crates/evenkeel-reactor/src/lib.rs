//! MOVE: an edge-triggered epoll reactor for TCP: sockets, timers, mailboxes, the relay pump.
//!
//! One [`Worker`] is one thread. It owns its connections, accepts on its own sockets, wakes for readiness, timers and
//! mail, and lets a [`Handler`] say what happens. Nothing here knows of clusters, endpoints or sessions, and nothing here
//! decides: the crate moves bytes and tells the time. It is the only crate that may hold unsafe code; rustix makes
//! that unnecessary but for the two calls in `inherit`.

mod accept;
mod inherit;
mod mailbox;
mod origin;
mod pipe;
mod poller;
mod pump;
mod slots;
mod socket;
#[cfg(test)]
mod tests;
mod timer;
mod unix;
mod worker;

pub use accept::{ACCEPT_PAUSE, ACCEPTS_PER_TURN_MAX, Lent, Loan, Rest};
pub use inherit::{BoundAddress, Inherited, STARTED_WITH_MAX, Unfit, started_with};
pub use mailbox::{MAIL_MAX, MAIL_RESERVE, Mail, Mailbox};
pub use origin::Origin;
pub use pipe::{PIPE_BYTES_MAX, PIPE_BYTES_MIN, PipeBudget, Pipes, SpliceCounts, can_splice};
pub use poller::{EVENTS_PER_TURN_MAX, Readiness, Tag};
pub use pump::{
    BYTES_PER_TURN_MAX, FULL_READS_TO_SPLICE, Flow, Gear, Pump, READS_PER_TURN_MAX,
    SMALL_FILLS_TO_COPY, Splice, discard,
};
pub use slots::{Key, Slots};
pub use socket::{
    BACKLOG_MAX, Claim, Fault, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, Listener, Received, Remote,
    Sent, Sharing, Stream, StreamOptions,
};
pub use timer::{Clock, Moment, TICK};
pub use unix::{FileMark, PATH_BYTES_MAX, PathError};
pub use worker::{Events, Fate, Handler, Next, READ_BUFFER_BYTES, Turn, Worker};
