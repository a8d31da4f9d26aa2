//! The control plane's runtime, already listening to signals: made before a process takes anything that it has to give back.
//!
//! A signal that comes while the process still starts is kept, and attended to as soon as the control plane runs.

use std::fs::File;
use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::signals::Signals;

/// Threads for what must block (none, so far), kept apart from the default of 512.
const BLOCKING_THREADS_MAX: usize = 4;
/// What the runtime and its signals open (seven), and one to spare. Where it gets none, the runtime panics instead of saying so.
const DESCRIPTORS: usize = 8;

/// A runtime that has run nothing yet, and the signals that have come since it was made.
#[derive(Debug)]
pub struct Lookout {
    pub(crate) runtime: Runtime,
    pub(crate) signals: Signals,
}

impl Lookout {
    /// From here on, no signal that evenkeel knows ends the process by itself.
    ///
    /// # Errors
    ///
    /// The system refuses a descriptor or a handler.
    pub fn post() -> io::Result<Self> {
        ask_for_descriptors()?;
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .enable_all()
            .build()?;
        let entered = runtime.enter();
        let signals = Signals::listen()?;
        drop(entered);
        Ok(Self { runtime, signals })
    }
}

/// Whether as many as the runtime will open can be had; they are given back at once.
fn ask_for_descriptors() -> io::Result<()> {
    (0..DESCRIPTORS)
        .map(|_| File::open("/dev/null"))
        .collect::<io::Result<Vec<File>>>()
        .map(drop)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;
    use crate::signals::Wish;

    /// A signal that comes before anything runs on the runtime neither ends the process nor is lost.
    #[test]
    fn a_signal_during_the_start_is_kept() {
        let mut lookout = Lookout::post().unwrap();

        kill_process(getpid(), Signal::HUP).unwrap();

        let wish = lookout.runtime.block_on(lookout.signals.next());
        assert_eq!(wish, Wish::Reload);
    }
}
