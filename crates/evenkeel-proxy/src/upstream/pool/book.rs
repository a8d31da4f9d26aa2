//! The places of one endpoint, shared by all workers, and the delivery of what becomes free.
//!
//! There is a book only for an endpoint whose connections are limited; its lock is held for a decision of the
//! [`Ledger`], never while a connection is closed or sent. Whoever has left meanwhile is passed over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel_core::units::Time;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::ledger::{Bounds, Claim, Ledger};

/// See the module's documentation. `P` is a connection on its way between workers.
pub(crate) struct Book<P>(Mutex<Ledger<oneshot::Sender<Grant<P>>>>);

/// What one who waited gets: a place, and perhaps the connection that is in it.
pub(crate) struct Grant<P> {
    pub(super) carried: Option<Carried<P>>,
    pub(super) place: Place<P>,
}

/// A connection on its way to another worker.
pub(super) struct Carried<P> {
    pub(super) connection: P,
    pub(super) last_use: Time,
    pub(super) exchanges: u32,
}

/// A place among those that an endpoint has, given up when dropped. Where connections are not limited it is nobody's.
pub(crate) struct Place<P> {
    pub(super) book: Option<Arc<Book<P>>>,
}

/// Somebody in the line. Dropped, it leaves.
pub(crate) struct Wait<P> {
    pub(super) book: Arc<Book<P>>,
    pub(super) ticket: u64,
    pub(super) granted: oneshot::Receiver<Grant<P>>,
}

impl<P> Book<P> {
    pub(super) fn new(bounds: Bounds, workers: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Ledger::new(bounds, workers))))
    }

    pub(super) fn claim(&self, worker: usize) -> (Claim, Option<oneshot::Receiver<Grant<P>>>) {
        let mut granted = None;
        let claim = self.0.lock().claim(worker, || {
            let (sender, receiver) = oneshot::channel();
            granted = Some(receiver);
            sender
        });
        (claim, granted)
    }

    /// Other bounds from now on; whoever has room now is told.
    pub(super) fn rebound(self: &Arc<Self>, bounds: Bounds) {
        self.0.lock().rebound(bounds);
        while let Some(next) = self.next_opener() {
            self.let_open(next);
        }
    }

    fn next_opener(&self) -> Option<oneshot::Sender<Grant<P>>> {
        self.0.lock().next_opener()
    }

    pub(super) fn rest(&self, worker: usize) -> Option<oneshot::Sender<Grant<P>>> {
        self.0.lock().rest(worker)
    }

    pub(super) fn asked(&self, worker: usize) -> Option<oneshot::Sender<Grant<P>>> {
        self.0.lock().asked(worker)
    }

    pub(super) fn stop_resting(&self, worker: usize) {
        self.0.lock().stop_resting(worker);
    }

    /// A place is free: the first one who waits, and is still there, may open a connection.
    fn pass_on(self: &Arc<Self>) {
        let mut next = self.0.lock().closed();
        while let Some(waiting) = next {
            if self.let_open(waiting) {
                return;
            }
            next = self.0.lock().closed();
        }
    }

    /// Whether it was still there. If not, its place is still taken.
    fn let_open(self: &Arc<Self>, waiting: oneshot::Sender<Grant<P>>) -> bool {
        let place = Place {
            book: Some(Arc::clone(self)),
        };
        let grant = Grant {
            carried: None,
            place,
        };
        match waiting.send(grant) {
            Ok(()) => true,
            Err(mut refused) => {
                refused.place.book = None;
                false
            }
        }
    }
}

impl<P> Drop for Place<P> {
    fn drop(&mut self) {
        if let Some(book) = self.book.take() {
            book.pass_on();
        }
    }
}

impl<P> Future for Wait<P> {
    /// `None` never comes: whoever drops the other end has sent something.
    type Output = Option<Grant<P>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.granted).poll(cx).map(Result::ok)
    }
}

impl<P> Drop for Wait<P> {
    fn drop(&mut self) {
        self.book.0.lock().leave(self.ticket);
    }
}
