//! The process-wide table of listening addresses: bound together or not at all.
//!
//! Each listener has one socket per worker, all on the same address (`SO_REUSEPORT`). What accepts on them is the reactor's
//! part; what a session does is not known here.

mod holder;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_reactor::{Claim, Listener, Sharing, StreamOptions};

pub use holder::Holder;

use crate::capacity::Capacity;
use crate::kernel;
use crate::proxy::StartError;
use crate::route::Route;
use crate::settings::ListenerSettings;

/// A listener at run time, shared by all workers.
pub(crate) struct ListenerState {
    pub(crate) settings: ListenerSettings,
    /// Where it really listens: the port is the kernel's choice if 0 was asked for.
    pub(crate) address: SocketAddr,
    pub(crate) route: Route,
    /// What its streams, on both sides, have in common.
    pub(crate) options: StreamOptions,
    capacity: Arc<Capacity>,
    counts: Counts,
}

/// Written by all workers for each connection, while each message reads the timeouts: on lines of their own (two, since they
/// are fetched in pairs). The alignment also keeps the reference count of an `Arc` of it apart.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    accepted: AtomicU64,
    ended: AtomicU64,
}

impl ListenerState {
    pub(crate) fn new(
        settings: ListenerSettings,
        bound: &Bound,
        route: Route,
        capacity: Arc<Capacity>,
    ) -> Self {
        let Bound {
            address, options, ..
        } = *bound;
        Self {
            settings,
            address,
            route,
            options,
            capacity,
            counts: Counts::default(),
        }
    }

    /// Counts a session in; it is counted out when the value is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> Counted {
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        self.capacity.session_begins();
        Counted(Arc::clone(self))
    }

    /// Whether this process has descriptors for one more session, of whichever listener.
    pub(crate) fn has_room(&self) -> bool {
        self.capacity.has_room()
    }

    /// Sessions begun since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// Sessions that have not ended.
    pub(crate) fn sessions(&self) -> u64 {
        // What has ended is read first: a session that begins in between may be counted too many, never too few.
        let ended = self.counts.ended.load(Ordering::Acquire);
        self.accepted().saturating_sub(ended)
    }
}

/// A session, counted.
pub(crate) struct Counted(Arc<ListenerState>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.capacity.session_has_ended();
        self.0.counts.ended.fetch_add(1, Ordering::Release);
    }
}

/// A bound address and its sockets, one for each worker.
pub(crate) struct Bound {
    pub(crate) address: SocketAddr,
    pub(crate) options: StreamOptions,
    pub(crate) sockets: Vec<Listener>,
}

/// Binds all listeners, in their order. If one cannot be bound, those before it are closed again.
///
/// # Errors
///
/// An address is held by another process, or the kernel refuses it.
pub(crate) fn bind_all(
    listeners: &[ListenerSettings],
    workers: usize,
) -> Result<Vec<Bound>, StartError> {
    listeners
        .iter()
        .map(|listener| bind(listener, workers))
        .collect()
}

fn bind(settings: &ListenerSettings, workers: usize) -> Result<Bound, StartError> {
    let fail = |source| StartError::Bind {
        listener: Arc::clone(&settings.name),
        address: settings.bind,
        source,
    };
    // A port of the kernel's choice is nobody else's.
    let claim = (settings.bind.port() != 0).then(|| Claim::stake(settings.bind));
    match claim.transpose() {
        // Held until all workers listen.
        Ok(_claim) => bind_workers(settings, workers).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(StartError::AddressInUse {
            listener: Arc::clone(&settings.name),
            address: settings.bind,
            holder: holder::find(settings.bind),
        }),
        Err(error) => Err(fail(error)),
    }
}

fn bind_workers(settings: &ListenerSettings, workers: usize) -> io::Result<Bound> {
    let options = StreamOptions {
        dead_peer: settings.timeouts.dead_peer,
        receive_buffer: kernel::receive_buffer(),
    };
    let first = Listener::bind(settings.bind, Sharing::Workers, options)?;
    let address = first.address()?;
    let mut sockets = vec![first];
    while sockets.len() < workers {
        sockets.push(Listener::bind(address, Sharing::Workers, options)?);
    }
    Ok(Bound {
        address,
        options,
        sockets,
    })
}
