//! What a running proxy does for the process that is to follow it: it lends its sockets, keeps still meanwhile, and leaves.
//!
//! Both processes accept from the same sockets until one stops, so nobody who connects is ever left waiting in vain. The other
//! process is not known here.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use evenkeel_core::units::Address;
use evenkeel_reactor::{FileMark, Loan, Mail};

use crate::proxy::Proxy;
use crate::reload::{ReloadError, WORKERS_PATIENCE};
use crate::worker::Instruction;

/// What is lent to the process that is to follow.
#[derive(Debug)]
pub struct LentSockets {
    /// Duplicates of all listening sockets, with the names of their listeners.
    pub sockets: Vec<(Arc<str>, OwnedFd)>,
    /// The files of those that this process made, which go over with them.
    pub files: Vec<FileMark>,
}

/// No reload can begin while this lives, and no order is to be taken.
pub struct Stillness(Arc<Proxy>);

impl Drop for Stillness {
    fn drop(&mut self) {
        self.0.lending.store(false, Ordering::Relaxed);
        self.0.reloading.store(false, Ordering::Release);
    }
}

impl Proxy {
    /// Keeps reloads off: what another process is given must stay what is in force.
    ///
    /// # Errors
    ///
    /// A reload is under way, or the proxy is stopping.
    pub fn keep_still(self: &Arc<Self>) -> Result<Stillness, ReloadError> {
        if self.is_stopping() {
            return Err(ReloadError::Stopping);
        }
        if self.reloading.swap(true, Ordering::Acquire) {
            return Err(ReloadError::Underway);
        }
        self.lending.store(true, Ordering::Relaxed);
        Ok(Stillness(Arc::clone(self)))
    }

    /// Whether what an operator says here has an effect that lasts: the process that is to follow, or does already, would not
    /// hear of it.
    pub fn takes_orders(&self) -> bool {
        let gone = [&self.lending, &self.handed_over];
        !gone.iter().any(|gone| gone.load(Ordering::Relaxed))
    }

    /// Lends all listening sockets. Blocks for a turn of the workers' loops: not for a worker's thread.
    ///
    /// # Errors
    ///
    /// A worker has no descriptor left, or does not answer.
    pub fn lend(&self) -> io::Result<LentSockets> {
        let (mut sockets, mut files) = (Vec::new(), Vec::new());
        for loan in self.lent()? {
            let present = self.present.load();
            let mut listeners = present.listeners.iter();
            let listener = listeners.find(|listener| listener.number == loan.number);
            // One that a reload has closed meanwhile is nobody's.
            let name = listener.map(|listener| Arc::clone(&listener.settings.name));
            if let Some(name) = name {
                sockets.push((name, loan.socket));
                files.extend(loan.file);
            }
        }
        Ok(LentSockets { sockets, files })
    }

    /// Accepts nothing more, and leaves the addresses to whoever the sockets were lent to; sessions may finish, as in
    /// [`Proxy::drain`].
    pub fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
        self.begin_to_stop(|| Instruction::HandOver);
    }

    /// Has charge of these files from now on: the process that lent their sockets has left them. The file of a socket that no
    /// listener wanted is removed.
    pub fn take_files(&self, files: &[FileMark]) {
        let present = self.present.load();
        let is_here = |file: &&FileMark| {
            let mut listeners = present.listeners.iter();
            listeners.any(|listener| listener.address == Address::Unix(file.path.as_path().into()))
        };
        let (here, unwanted): (Vec<_>, Vec<_>) = files.iter().partition(is_here);
        unwanted.into_iter().for_each(FileMark::remove);
        let here: Arc<[FileMark]> = here.into_iter().cloned().collect();
        self.instruct_all(|| Instruction::TakeFiles(Arc::clone(&here)));
    }

    fn lent(&self) -> io::Result<Vec<Loan>> {
        let (sender, receiver) = sync_channel(self.workers());
        for worker in 0..self.workers() {
            let instruction = Mail::Worker(Instruction::Lend(sender.clone()));
            let posted = self.crew.mailbox(worker).post(instruction);
            posted.map_err(|_| io::Error::other("a worker has ended"))?;
        }
        let deadline = Instant::now() + WORKERS_PATIENCE;
        let mut sockets = Vec::new();
        for _ in 0..self.workers() {
            let left = deadline.saturating_duration_since(Instant::now());
            let lent = receiver.recv_timeout(left);
            sockets.extend(lent.map_err(|_| io::Error::other("a worker does not answer"))??);
        }
        Ok(sockets)
    }
}
