//! What reaches a session from outside while it runs: a slot that it waits for, the word to finish or to stop, and that the
//! endpoint it uses is down.
//!
//! All waits of a session are one task's, so it has one waker: whatever comes wakes it, and it looks for what it wants to know.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use evenkeel_core::{Lease, Ticket};

use crate::worker::{Grant, GrantPost};

/// Whether a session may go on. A later one is never taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    /// As it likes.
    #[default]
    GoOn,
    /// With what it is at; then it ends. One that only waits for more ends now.
    Finish,
    /// No: the stop deadline has passed.
    Stop,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Letterbox {
    word: Cell<Word>,
    is_endpoint_down: Cell<bool>,
    /// The last wait that has begun, if it is not over.
    wait: Cell<Option<u16>>,
    waits: Cell<u16>,
    granted: RefCell<Option<Lease>>,
    waker: RefCell<Option<Waker>>,
}

impl Letterbox {
    /// What the session has been told last.
    pub(crate) fn word(&self) -> Word {
        self.word.get()
    }

    /// Ready as soon as there is a word beyond the one that the caller goes by.
    pub(crate) fn poll_word(&self, beyond: Word, cx: &Context<'_>) -> Poll<Word> {
        let word = self.word();
        self.ready(word > beyond, cx).map(|()| word)
    }

    /// The word beyond the one that the caller goes by.
    pub(crate) async fn next_word(&self, beyond: Word) -> Word {
        poll_fn(|cx| self.poll_word(beyond, cx)).await
    }

    /// Ready as soon as probes have found the endpoint down that the session uses, if its cluster wants such sessions closed.
    pub(crate) fn poll_endpoint_down(&self, cx: &Context<'_>) -> Poll<()> {
        self.ready(self.is_endpoint_down.get(), cx)
    }

    pub(super) fn tell(&self, word: Word) {
        self.word.set(word.max(self.word()));
        self.wake();
    }

    pub(super) fn tell_endpoint_down(&self) {
        self.is_endpoint_down.set(true);
        self.wake();
    }

    /// The session uses another endpoint, or none.
    pub(super) fn forget_endpoint(&self) {
        self.is_endpoint_down.set(false);
    }

    /// A slot has come. If nobody waits for it any more, dropping it passes it on.
    pub(super) fn grant(&self, grant: Grant) {
        if self.wait.get() == Some(grant.wait) {
            *self.granted.borrow_mut() = Some(grant.lease);
            self.wake();
        }
    }

    /// The number that the next wait's grant must bear.
    pub(super) fn next_wait(&self) -> u16 {
        let number = self.waits.get();
        self.waits.set((number + 1) % GrantPost::WAIT_NUMBERS);
        number
    }

    fn ready(&self, is_so: bool, cx: &Context<'_>) -> Poll<()> {
        if is_so {
            return Poll::Ready(());
        }
        self.watch(cx);
        Poll::Pending
    }

    fn watch(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
    }

    fn wake(&self) {
        let waker = self.waker.borrow();
        if let Some(waker) = &*waker {
            waker.wake_by_ref();
        }
    }
}

/// A place in a cluster's wait queue: in time it becomes a lease. Dropped, it leaves the queue, and a slot that has come passes
/// on. How long to wait is the caller's business.
pub(crate) struct Wait {
    letterbox: Rc<Letterbox>,
    _ticket: Ticket,
}

impl Wait {
    /// A session has one at a time.
    pub(super) fn begin(letterbox: &Rc<Letterbox>, number: u16, ticket: Ticket) -> Self {
        letterbox.wait.set(Some(number));
        Self {
            letterbox: Rc::clone(letterbox),
            _ticket: ticket,
        }
    }
}

impl Future for Wait {
    type Output = Lease;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lease> {
        let granted = self.letterbox.granted.take();
        if granted.is_none() {
            self.letterbox.watch(cx);
        }
        granted.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.letterbox.wait.set(None);
        // Dropping it may give it to somebody who waits on this very worker.
        let left = self.letterbox.granted.take();
        drop(left);
    }
}
