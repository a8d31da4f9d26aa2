//! The sessions that have ended since the worker last looked: their tasks say so, and the worker forgets them.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use evenkeel_reactor::Key;

/// See the module's documentation. There are no more of them than sessions.
#[derive(Default)]
pub(crate) struct Ended {
    keys: RefCell<Vec<Key>>,
    waker: RefCell<Option<Waker>>,
}

impl Ended {
    pub(super) fn note(&self, session: Key) {
        self.keys.borrow_mut().push(session);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when there are any.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Vec<Key>> {
        let keys = self.keys.take();
        if !keys.is_empty() {
            return Poll::Ready(keys);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
