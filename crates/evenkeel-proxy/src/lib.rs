//! DO: listeners, sessions, tiers, telemetry and the control socket.
//!
//! A newcomer follows one connection through seven files: `listener`, `session`, `route`, `tier`, the core's `acquire`,
//! `upstream`, and the reactor's `pump`. The way is told in `docs/life-of-a-request.md`.

mod capacity;
mod changes;
pub mod control;
mod crew;
pub mod discovery;
mod entrance;
mod handover;
mod host_pattern;
mod http;
mod kernel;
mod layer7;
mod limit;
mod listener;
mod names;
mod pauses;
mod present;
pub mod probe;
mod proxy;
mod pulse;
mod reload;
mod route;
mod senders;
mod session;
pub mod settings;
mod start_error;
pub mod telemetry;
mod tier;
pub mod tls;
mod upstream;
mod worker;
mod workers;

pub use changes::{Change, Changes, Deferred};
pub use evenkeel_reactor::{
    FileMark, Inherited, Listener, Origin, PATH_BYTES_MAX, PathError, Sharing, StreamOptions,
};
pub use handover::{LentSockets, Stillness};
pub use host_pattern::{HostPattern, NotAPattern};
pub use listener::{Giver, Holder, Inheritance};
pub use pauses::{PauseCause, PauseStatus};
pub use proxy::{AskedSession, ListenerStatus, Proxy, RouteAnswer, RouteGoal, SpliceStatus};
pub use pulse::WorkerPulse;
pub use reload::ReloadError;
pub use senders::{Network, NotANetwork, Sender};
pub use start_error::StartError;

use telemetry::record::{ExchangeRecord, SessionRecord};

/// Who is told of each session at its end, exactly once. Called on a worker's thread: it must not block.
pub trait SessionSink: Send + Sync {
    /// A session has ended. Its sockets are closed right after.
    fn session_ended(&self, record: SessionRecord);

    /// An exchange has ended, one of many in its session. Whoever follows sessions alone leaves it.
    fn exchange_ended(&self, record: ExchangeRecord) {
        drop(record);
    }

    /// A session that carried exchanges has ended. Whoever follows exchanges has been told of these.
    fn connection_ended(&self, record: SessionRecord) {
        drop(record);
    }
}
