//! Descriptors kept back for the control socket: given up to accept an operator's connection when sessions have taken all
//! others, and taken again in one step from the connection that has ended.
//!
//! Between giving one up and accepting, a worker may be quicker; then the next of the reserve is given up.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{DupFlags, Errno, dup3};

/// How many are kept back. Two: an operator may look and stop at the same time, or lose one to a worker.
pub(super) const RESERVE: usize = 2;

/// The descriptors, all of them copies of one that is open anyway.
#[derive(Debug)]
pub(super) struct Reserve {
    original: OwnedFd,
    kept: Vec<OwnedFd>,
}

impl Reserve {
    /// Keeps back as many as there are to be had, at most [`RESERVE`].
    ///
    /// # Errors
    ///
    /// There is not even one for the original.
    pub(super) fn of(descriptor: impl AsFd) -> io::Result<Self> {
        let mut reserve = Self {
            original: descriptor.as_fd().try_clone_to_owned()?,
            kept: Vec::with_capacity(RESERVE),
        };
        reserve.fill();
        Ok(reserve)
    }

    /// Takes what is missing, as far as the system gives it.
    pub(super) fn fill(&mut self) {
        while self.kept.len() < RESERVE {
            let Ok(copy) = self.original.try_clone() else {
                return;
            };
            self.kept.push(copy);
        }
    }

    /// Whether one could be given up.
    pub(super) fn give_up_one(&mut self) -> bool {
        self.kept.pop().is_some()
    }

    /// Closes a connection, and keeps its descriptor if one is missing: no worker can come between.
    pub(super) fn take_over(&mut self, mut connection: OwnedFd) {
        if self.kept.len() == RESERVE {
            return;
        }
        // On a failure it is only closed.
        if dup3(&self.original, &mut connection, DupFlags::CLOEXEC).is_ok() {
            self.kept.push(connection);
        }
    }
}

/// Whether it was for want of a descriptor, in this process or on this machine.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What was given up comes back from a connection that ends: its peer sees the end, though the descriptor stays taken.
    #[test]
    fn a_connection_that_ends_fills_the_reserve() {
        let (ours, mut peer) = UnixStream::pair().unwrap();
        let mut reserve = Reserve::of(io::stderr()).unwrap();
        assert!(reserve.give_up_one());

        reserve.take_over(ours.into());

        assert_eq!(reserve.kept.len(), RESERVE);
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    }

    /// A full reserve keeps nothing more, and an empty one has nothing to give.
    #[test]
    fn the_reserve_has_its_size() {
        let (ours, mut peer) = UnixStream::pair().unwrap();
        let mut reserve = Reserve::of(io::stderr()).unwrap();

        reserve.take_over(ours.into());

        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
        for _ in 0..RESERVE {
            assert!(reserve.give_up_one());
        }
        assert!(!reserve.give_up_one());
    }
}
