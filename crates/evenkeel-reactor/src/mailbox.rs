//! How other threads reach a worker: a bounded queue that wakes it by an eventfd.
//!
//! A message for one connection carries its key and is dropped if that connection has gone; what the message owns ends with
//! it. When the worker ends it closes its mailbox, so that nothing is ever left lying in it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::slots::Key;

/// How much mail may wait for one worker.
pub const MAIL_MAX: usize = 65_536;

/// Places beyond [`MAIL_MAX`] that only instructions to the worker itself may take, so that a stop always gets through.
pub const MAIL_RESERVE: usize = 64;

/// What lies in a mailbox: a message `M` for a connection, or an instruction `I` for the worker.
#[derive(Debug)]
pub enum Mail<M, I> {
    /// For one connection; dropped if it has gone.
    Connection(Key, M),
    /// For the worker itself.
    Worker(I),
}

struct Queue<M, I> {
    mail: VecDeque<Mail<M, I>>,
    closed: bool,
}

struct Shared<M, I> {
    queue: Mutex<Queue<M, I>>,
    bell: OwnedFd,
}

/// A worker's mailbox; clones are the same one. Usable from any thread.
pub struct Mailbox<M, I> {
    shared: Arc<Shared<M, I>>,
}

impl<M, I> Clone for Mailbox<M, I> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<M, I> Mailbox<M, I> {
    /// An empty mailbox.
    ///
    /// # Errors
    ///
    /// The eventfd cannot be made (descriptors or memory).
    pub fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let queue = Mutex::new(Queue {
            mail: VecDeque::new(),
            closed: false,
        });
        Ok(Self {
            shared: Arc::new(Shared { queue, bell }),
        })
    }

    /// Leaves a message and wakes the worker, which takes all that has come at once.
    ///
    /// # Errors
    ///
    /// The message comes back if the mailbox is full or its worker has ended.
    pub fn post(&self, mail: Mail<M, I>) -> Result<(), Mail<M, I>> {
        let bound = match mail {
            Mail::Connection(..) => MAIL_MAX,
            Mail::Worker(_) => MAIL_MAX + MAIL_RESERVE,
        };
        self.post_within(mail, bound)
    }

    /// The same with a bound of the sender's, for what can be done otherwise when the worker is behind.
    ///
    /// # Errors
    ///
    /// The message comes back if so much mail lies unread, or the worker has ended.
    pub fn post_within(&self, mail: Mail<M, I>, bound: usize) -> Result<(), Mail<M, I>> {
        if self.enqueue(mail, bound)? == Was::Empty {
            self.ring();
        }
        Ok(())
    }

    /// All that has come.
    pub(crate) fn take(&self, into: &mut VecDeque<Mail<M, I>>) {
        let mut count = [0; 8];
        // Before the queue is emptied: whoever posts after that rings again.
        let _ = rustix::io::read(&self.shared.bell, &mut count);
        std::mem::swap(&mut self.shared.queue.lock().mail, into);
    }

    /// Refuses everything from now on, if nothing is there.
    pub(crate) fn close_if_empty(&self) -> Closed {
        let mut queue = self.shared.queue.lock();
        if !queue.mail.is_empty() {
            return Closed::No;
        }
        queue.closed = true;
        Closed::Yes
    }

    /// Refuses everything from now on and drops what is there.
    pub(crate) fn close(&self) {
        let mut queue = self.shared.queue.lock();
        queue.closed = true;
        let left = std::mem::take(&mut queue.mail);
        // What a message owns may post elsewhere when it is dropped: not under the lock.
        drop(queue);
        drop(left);
    }

    fn enqueue(&self, mail: Mail<M, I>, bound: usize) -> Result<Was, Mail<M, I>> {
        let mut queue = self.shared.queue.lock();
        if queue.closed || queue.mail.len() >= bound {
            return Err(mail);
        }
        let was = if queue.mail.is_empty() {
            Was::Empty
        } else {
            Was::Filled
        };
        queue.mail.push_back(mail);
        Ok(was)
    }

    fn ring(&self) {
        // It fails only at 2^64 - 2 unread rings, and then the worker is awake.
        let _ = rustix::io::write(&self.shared.bell, &1_u64.to_ne_bytes());
    }
}

impl<M, I> AsFd for Mailbox<M, I> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

/// Whether a mailbox was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    Yes,
    No,
}

#[derive(PartialEq, Eq)]
enum Was {
    Empty,
    Filled,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages to connections stop at the bound; an instruction to the worker still gets through, up to its own.
    #[test]
    fn a_full_mailbox_still_takes_a_stop() {
        let mailbox = Mailbox::new().unwrap();
        for number in 0..MAIL_MAX {
            mailbox
                .post(Mail::Connection(Key::from_u64(0), number))
                .unwrap();
        }
        assert!(mailbox.post(Mail::Connection(Key::from_u64(0), 0)).is_err());
        for number in 0..MAIL_RESERVE {
            mailbox.post(Mail::Worker(number)).unwrap();
        }
        assert!(mailbox.post(Mail::Worker(0)).is_err());
    }

    /// A mailbox with mail in it is not closed behind the sender's back.
    #[test]
    fn unread_mail_keeps_a_mailbox_open() {
        let mailbox: Mailbox<(), _> = Mailbox::new().unwrap();
        mailbox.post(Mail::Worker(1)).unwrap();
        assert_eq!(mailbox.close_if_empty(), Closed::No);

        mailbox.take(&mut VecDeque::new());
        assert_eq!(mailbox.close_if_empty(), Closed::Yes);
        assert!(mailbox.post(Mail::Worker(2)).is_err());
    }

    /// A sender may be content with less than the mailbox holds.
    #[test]
    fn a_sender_may_set_a_lower_bound() {
        let mailbox: Mailbox<(), _> = Mailbox::new().unwrap();
        mailbox.post_within(Mail::Worker(1), 1).unwrap();
        assert!(mailbox.post_within(Mail::Worker(2), 1).is_err());
        mailbox.post(Mail::Worker(3)).unwrap();
    }

    /// What lies in a mailbox when its worker ends is dropped, and nothing more is taken.
    #[test]
    fn a_closed_mailbox_holds_nothing() {
        let owned = Arc::new(());
        let mailbox: Mailbox<(), _> = Mailbox::new().unwrap();
        mailbox.post(Mail::Worker(Arc::clone(&owned))).unwrap();

        mailbox.close();

        assert_eq!(Arc::strong_count(&owned), 1);
        assert!(mailbox.post(Mail::Worker(owned)).is_err());
    }
}
