//! The process-wide table of listening addresses: bound together or not at all.
//!
//! A listener on a TCP address has one socket per worker, all on the same address (`SO_REUSEPORT`); one on a Unix path has a
//! single socket, on one worker, which hands over to the others what it accepts. What accepts on them is the reactor's
//! part; what a session does is not known here.

mod holder;
mod inheritance;
mod takeover;

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use evenkeel_core::units::Address;
use evenkeel_reactor::{Claim, FileMark, Inherited, Listener, PathError, Sharing, StreamOptions};

pub use holder::Holder;
use inheritance::{Bequest, say_unwanted};
pub use inheritance::{Giver, Inheritance};
pub(crate) use takeover::{Held, Source, sources};

use crate::capacity::Capacity;
use crate::crew::WorkerBell;
use crate::kernel;
use crate::limit::Limit;
use crate::pauses::{PauseCause, Pauses};
use crate::route::Route;
use crate::settings::{Layer, ListenerSettings};
use crate::start_error::StartError;

/// A listener as one reload left it, shared by all workers and by the sessions that were accepted under it.
///
/// On lines of its own, apart from the reference count that each session touches: each message reads the timeouts.
#[repr(align(128))]
pub(crate) struct ListenerState {
    /// The number of its sockets: it stays with them over reloads, and is never used again.
    pub(crate) number: u32,
    pub(crate) settings: ListenerSettings,
    /// Where it really listens: the port is the kernel's choice if 0 was asked for.
    pub(crate) address: Address,
    /// The file of a Unix socket, as it was when the listener was opened.
    pub(crate) file: Option<FileMark>,
    pub(crate) route: Route,
    /// What its streams, on both sides, have in common.
    pub(crate) options: StreamOptions,
    pub(crate) counts: Arc<Counts>,
    pub(crate) capacity: Arc<Capacity>,
    /// Set when its sockets are to be closed.
    pub(crate) leaving: AtomicBool,
}

/// What a listener has done under its name, over all its reloads. Written by all workers for each connection: on lines of its
/// own (two, since they are fetched in pairs).
#[repr(align(128))]
pub(crate) struct Counts {
    accepted: AtomicU64,
    ended: AtomicU64,
    limit: Limit<WorkerBell>,
    pub(crate) pauses: Pauses,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            limit: Limit::new(u64::MAX),
            pauses: Pauses::default(),
        }
    }
}

impl Counts {
    /// The limit of these settings from now on.
    pub(crate) fn limit_by(&self, settings: &ListenerSettings) {
        let max = settings.max_connections;
        self.limit
            .set_max(max.map_or(u64::MAX, |max| max.get().into()));
    }
}

impl ListenerState {
    /// A listener that has just been bound.
    pub(crate) fn of(
        number: u32,
        settings: &ListenerSettings,
        bound: &Bound,
        route: Route,
        counts: Arc<Counts>,
        capacity: &Arc<Capacity>,
    ) -> Arc<Self> {
        counts.limit_by(settings);
        Arc::new(Self {
            number,
            settings: settings.clone(),
            address: bound.address.clone(),
            file: file_at(&bound.address),
            route,
            options: bound.options,
            counts,
            capacity: Arc::clone(capacity),
            leaving: AtomicBool::new(false),
        })
    }

    /// Whose workers serve it.
    pub(crate) fn layer(&self) -> Layer {
        self.settings.protocol.layer()
    }

    /// Whether nobody can reach it any more, because the file of its socket was removed.
    pub(crate) fn has_lost_its_file(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_there())
    }

    /// The address that it holds.
    pub(crate) fn held(&self) -> Held {
        Held {
            is_reachable: !self.has_lost_its_file(),
            name: Arc::clone(&self.settings.name),
            layer: Some(self.layer()),
            asked_for: self.settings.bind.clone(),
            address: self.address.clone(),
        }
    }

    /// Takes a place for one more session.
    ///
    /// # Errors
    ///
    /// There is none, for this reason; `bell` will be rung when there may be one.
    pub(crate) fn admit(self: &Arc<Self>, bell: &WorkerBell) -> Result<Admission, PauseCause> {
        // Whoever still waits when an address goes would be reset: there is no later.
        if self.leaving.load(Ordering::Relaxed) {
            self.counts.limit.take_beyond();
        } else if !self.counts.limit.take(bell) {
            return Err(PauseCause::Listener);
        }
        match self.capacity.take(bell) {
            Ok(()) => Ok(Admission(Some(Arc::clone(self)))),
            Err(cause) => {
                self.counts.limit.give_back();
                Err(cause)
            }
        }
    }

    fn pass_on(&self) {
        self.counts.limit.pass_on();
        self.capacity.pass_on();
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

fn file_at(address: &Address) -> Option<FileMark> {
    match address {
        Address::Ip(_) => None,
        Address::Unix(path) => FileMark::of(path).ok(),
    }
}

/// A place for a session, taken before anybody is accepted for it. Dropped, it is given back without a word; see
/// [`Limit::give_back`].
pub(crate) struct Admission(Option<Arc<ListenerState>>);

impl Admission {
    /// Counts the session in that has got the place; it is counted out when the value is dropped.
    pub(crate) fn begin(mut self) -> Option<Counted> {
        let listener = self.0.take()?;
        listener.counts.accepted.fetch_add(1, Ordering::Relaxed);
        Some(Counted(listener))
    }

    /// Leaves the place to whoever waits for one.
    pub(crate) fn pass_on(mut self) {
        if let Some(listener) = self.0.take() {
            listener.pass_on();
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(listener) = &self.0 {
            listener.counts.limit.give_back();
            listener.capacity.give_back();
        }
    }
}

/// A session, counted, and the way from it to its listener as it was when the session was accepted.
pub(crate) struct Counted(Arc<ListenerState>);

impl Deref for Counted {
    type Target = ListenerState;

    fn deref(&self) -> &ListenerState {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counts.ended.fetch_add(1, Ordering::Release);
        self.0.pass_on();
    }
}

/// A bound address and its sockets: one for each worker, or a single one.
pub(crate) struct Bound {
    pub(crate) address: Address,
    pub(crate) options: StreamOptions,
    pub(crate) sockets: Vec<Listener>,
}

/// A listener to be bound.
pub(crate) struct ToBind<'a> {
    pub(crate) settings: &'a ListenerSettings,
    pub(crate) neighbours: Neighbours,
}

/// Who may listen already on an address that is to be bound, or on a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// Nobody, or it cannot be had.
    Strangers,
    /// A listener of this process, or of the one before it, that will be closed once this one listens: nobody else can be there.
    Leaving,
}

/// Opens all listeners of a process that starts, in their order: on sockets that it was given where there are any, bound
/// otherwise. What no listener wants is closed.
///
/// # Errors
///
/// An address is held by another process, or the kernel refuses it.
pub(crate) fn open_all(
    listeners: &[ListenerSettings],
    inheritance: Inheritance,
    workers: usize,
) -> Result<Vec<Bound>, StartError> {
    let sources = sources(inheritance.held(listeners).into_iter(), listeners);
    let mut bequests = inheritance.into_bequests();
    let open = |(settings, source)| match source {
        Source::TakenOver(position) => match bequests[position].take() {
            Some(bequest) => adopt(settings, bequest, workers),
            None => unreachable!("no sockets go to two listeners"),
        },
        Source::Bound(neighbours) => bind(
            &ToBind {
                settings,
                neighbours,
            },
            workers,
        ),
    };
    let bound = listeners.iter().zip(sources).map(open).collect();
    say_unwanted(bequests);
    bound
}

/// Goes on with the sockets that are there. All of them, also where there are more than workers: closing one would reset whoever
/// waits in it. Where there are fewer, others are bound beside them, if those before allow it.
fn adopt(
    settings: &ListenerSettings,
    bequest: Bequest,
    workers: usize,
) -> Result<Bound, StartError> {
    let options = stream_options(settings);
    let is_shared = bequest.sockets.iter().all(Inherited::shares_its_address);
    let adopted = bequest.sockets.into_iter();
    let adopted = adopted.map(|socket| Listener::adopt(socket, options));
    let mut sockets: Vec<Listener> = adopted
        .collect::<io::Result<_>>()
        .map_err(|source| refused(settings, source))?;
    if let Some(address) = bequest.address.ip().filter(|_| is_shared) {
        let missing = workers.saturating_sub(sockets.len());
        let others = (0..missing).map_while(|_| bind_beside(address, options));
        sockets.extend(others);
    }
    Ok(Bound {
        address: bequest.address,
        options,
        sockets,
    })
}

/// The kernel allows it only to the user who opened the first one; without, that worker is handed its sessions by others.
fn bind_beside(address: SocketAddr, options: StreamOptions) -> Option<Listener> {
    let bound = Listener::bind(address, Sharing::Workers, options);
    bound
        .inspect_err(|error| tracing::debug!(%address, %error, "no further socket on an address that was handed over"))
        .ok()
}

/// Binds all these listeners, in their order. If one cannot be bound, those before it are closed again.
///
/// # Errors
///
/// An address is held by another process, or the kernel refuses it.
pub(crate) fn bind_all<'a>(
    listeners: impl Iterator<Item = ToBind<'a>>,
    workers: usize,
) -> Result<Vec<Bound>, StartError> {
    listeners.map(|listener| bind(&listener, workers)).collect()
}

/// What the streams of a listener have in common.
pub(crate) fn stream_options(settings: &ListenerSettings) -> StreamOptions {
    StreamOptions {
        dead_peer: settings.timeouts.dead_peer,
        receive_buffer: kernel::receive_buffer(),
    }
}

fn bind(to_bind: &ToBind<'_>, workers: usize) -> Result<Bound, StartError> {
    let settings = to_bind.settings;
    let (address, sockets) = match &settings.bind {
        Address::Ip(wanted) => {
            let sockets = bind_shared(to_bind, *wanted, workers)?;
            (bound_address(settings, &sockets)?, sockets)
        }
        Address::Unix(path) => (settings.bind.clone(), vec![bind_path(settings, path)?]),
    };
    Ok(Bound {
        address,
        options: stream_options(settings),
        sockets,
    })
}

/// One socket for each worker.
fn bind_shared(
    to_bind: &ToBind<'_>,
    address: SocketAddr,
    workers: usize,
) -> Result<Vec<Listener>, StartError> {
    let settings = to_bind.settings;
    // A port of the kernel's choice is nobody else's.
    let is_claimed = address.port() != 0 && to_bind.neighbours == Neighbours::Strangers;
    let claim = is_claimed.then(|| Claim::stake(address));
    match claim.transpose() {
        // Held until all workers listen.
        Ok(_claim) => bind_workers(address, workers, stream_options(settings))
            .map_err(|source| refused(settings, source)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(in_use(settings)),
        Err(error) => Err(refused(settings, error)),
    }
}

fn bind_workers(
    address: SocketAddr,
    workers: usize,
    options: StreamOptions,
) -> io::Result<Vec<Listener>> {
    let first = Listener::bind(address, Sharing::Workers, options)?;
    let address = first.address()?;
    let mut sockets = vec![first];
    while sockets.len() < workers {
        sockets.push(Listener::bind(address, Sharing::Workers, options)?);
    }
    Ok(sockets)
}

fn bound_address(settings: &ListenerSettings, sockets: &[Listener]) -> Result<Address, StartError> {
    match sockets.first().map(Listener::address) {
        Some(Ok(address)) => Ok(Address::Ip(address)),
        Some(Err(error)) => Err(refused(settings, error)),
        None => Ok(settings.bind.clone()),
    }
}

fn bind_path(settings: &ListenerSettings, path: &Path) -> Result<Listener, StartError> {
    Listener::bind_path(path, settings.permissions).map_err(|error| match error {
        PathError::InUse => in_use(settings),
        PathError::NotASocket => StartError::NotASocket {
            listener: Arc::clone(&settings.name),
            address: settings.bind.clone(),
        },
        PathError::Io(source) => refused(settings, source),
    })
}

fn in_use(settings: &ListenerSettings) -> StartError {
    StartError::AddressInUse {
        listener: Arc::clone(&settings.name),
        address: settings.bind.clone(),
        holder: holder::find(&settings.bind),
    }
}

fn refused(settings: &ListenerSettings, source: io::Error) -> StartError {
    StartError::Bind {
        listener: Arc::clone(&settings.name),
        address: settings.bind.clone(),
        source,
    }
}
