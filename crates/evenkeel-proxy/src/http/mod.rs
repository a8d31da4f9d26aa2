//! HTTP/1 between clients and endpoints: a session is a client's connection, an exchange one request and its answer within it.
//!
//! ```text
//!   request ──► plan ──► seek ──► relay ──┬──► the next request
//!   (head)   (where to,  (lease,  (both   ├──► tunnel (101)
//!             what is     pool,   ways)   └──► close, or linger
//!             sent on)    connect)
//!                  └────────┴────────┴─────────► an answer of our own
//! ```
//!
//! [`request`] waits for a head and [`plan`] decides what becomes of it: pure, and the last that knows its bytes. [`seek`] finds an endpoint
//! and a connection to it, [`relay`] moves both messages at the same time, each a [`flow`]. [`tunnel`] is what follows a change
//! of protocols, [`linger`] how a connection is closed on which the client still sends. How messages are framed is
//! `evenkeel-wire`'s part; which endpoint, the core's; whose idle connection, the pool's.

mod alarm;
mod answer;
mod endpoint;
mod exchange;
mod flow;
mod forward;
mod inbox;
mod linger;
mod plan;
mod record;
mod relay;
mod request;
mod response;
mod routes;
mod seek;
mod session;
mod tunnel;

use inbox::Stock;
pub(crate) use session::serve;

use crate::layer7::Stream;
use crate::upstream::pool::Pool;

/// What the HTTP sessions of one worker share.
pub(crate) struct Workshop {
    stock: Stock,
    pub(crate) pool: Pool<Stream>,
}

impl Workshop {
    pub(crate) fn new(pool: Pool<Stream>) -> Self {
        Self {
            stock: Stock::default(),
            pool,
        }
    }
}
