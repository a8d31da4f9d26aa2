//! The worker threads of a proxy: how they are started, which sockets each gets, and what is held of them.
//!
//! What a worker does on its thread is in [`worker`](crate::worker) and [`layer7`](crate::layer7).

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use evenkeel_core::units::Time;
use evenkeel_reactor::{Listener, Pipes, SpliceCounts, Worker};
use parking_lot::Mutex;

use crate::SessionSink;
use crate::crew::Membership;
use crate::entrance::Entrance;
use crate::layer7::{Layer7Worker, Parts};
use crate::listener::Bound;
use crate::proxy::Proxy;
use crate::pulse::{Pulse, WorkerPulse};
use crate::settings::Layer;
use crate::start_error::StartError;
use crate::upstream::pool::{Asks, Pools};
use crate::upstream::{SessionIndex, Unwatched};
use crate::worker::{GrantPost, SessionHandler, Shared};

/// A worker, as the control plane knows it.
pub(crate) struct WorkerHandle {
    pub(crate) index: Arc<SessionIndex>,
    /// `None` where nothing is spliced.
    pub(crate) spliced: Option<Arc<SpliceCounts>>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

impl WorkerHandle {
    pub(crate) fn pulse(&self, now: Time) -> WorkerPulse {
        let thread = self.thread.lock();
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            WorkerPulse::Ended
        } else {
            self.pulse.read(now)
        }
    }
}

impl Proxy {
    /// Starts all of them, on these sockets of the listeners.
    pub(crate) fn start_workers(
        &mut self,
        bound: Vec<Bound>,
        count: usize,
        sink: &Arc<dyn SessionSink>,
    ) -> Result<(), StartError> {
        let layers: Vec<Layer> = self
            .present
            .load()
            .listeners
            .iter()
            .map(|listener| listener.layer())
            .collect();
        let by_worker = by_worker(bound.into_iter().zip(layers), count);
        let (pools, asks) = Pools::of(count);
        let mut pooled = asks.into_iter().map(|asks| (Arc::clone(&pools), asks));
        for (number, sockets) in by_worker.into_iter().enumerate() {
            let worker = match self.crew.layer_of(number) {
                Layer::Transport => self.start_worker(number, sockets, sink),
                Layer::Application => match pooled.next() {
                    Some(pooled) => self.start_layer7_worker(number, sockets, pooled, sink),
                    None => break,
                },
            };
            // Dropping the proxy closes the workers before it.
            self.workers
                .push(worker.map_err(|source| StartError::Worker { number, source })?);
        }
        Ok(())
    }

    fn start_worker(
        &self,
        number: usize,
        sockets: Vec<(u32, Listener)>,
        sink: &Arc<dyn SessionSink>,
    ) -> io::Result<WorkerHandle> {
        let mailbox = self.crew.mailbox(number).clone();
        let pipes = Pipes::new(Arc::clone(&self.pipes));
        let spliced = pipes.counts();
        let index = Arc::new(SessionIndex::default());
        let pulse = Arc::new(Pulse::default());
        let shared = Shared {
            sink: Arc::clone(sink),
            waiter: Arc::new(GrantPost(mailbox.clone())),
            index: Arc::clone(&index),
            random: fastrand::Rng::new(),
        };
        let handler = SessionHandler::new(self.entrance(number, &pulse), shared);
        let mut worker = Worker::new(handler, mailbox, self.clock, pipes)?;
        for (listener, socket) in sockets {
            worker.listen(listener, socket)?;
        }
        let opened = Arc::clone(&self.opened);
        let thread = thread::Builder::new()
            .name(format!("ek-worker-{number}"))
            .spawn(move || {
                opened.wait();
                say_how_it_ended(number, worker.run());
            })?;
        Ok(WorkerHandle {
            index,
            spliced: Some(spliced),
            pulse,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn start_layer7_worker(
        &self,
        number: usize,
        sockets: Vec<(u32, Listener)>,
        pooled: (Arc<Pools<Unwatched>>, Asks),
        sink: &Arc<dyn SessionSink>,
    ) -> io::Result<WorkerHandle> {
        let index = Arc::new(SessionIndex::default());
        let pulse = Arc::new(Pulse::default());
        let among_its_own = number - self.crew.of_layer(Layer::Application).start;
        let parts = Parts {
            number: among_its_own,
            sink: Arc::clone(sink),
            entrance: self.entrance(number, &pulse),
            mailbox: self.crew.mailbox(number).clone(),
            index: Arc::clone(&index),
            clock: self.clock,
            sockets,
            pooled,
        };
        let opened = Arc::clone(&self.opened);
        let (sender, begun) = sync_channel(1);
        let thread = thread::Builder::new()
            .name(format!("ek-layer7-{among_its_own}"))
            .spawn(move || {
                // It cannot be moved to a thread, and so is made there.
                let (worker, result) = match Layer7Worker::new(parts) {
                    Ok(worker) => (Some(worker), Ok(())),
                    Err(error) => (None, Err(error)),
                };
                let _ = sender.send(result);
                if let Some(worker) = worker {
                    opened.wait();
                    say_how_it_ended(number, worker.run());
                }
            })?;
        begun.recv().map_err(io::Error::other)??;
        Ok(WorkerHandle {
            index,
            spliced: None,
            pulse,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn entrance(&self, worker: usize, pulse: &Arc<Pulse>) -> Entrance {
        let membership = Membership::new(Arc::clone(&self.crew), worker);
        let layer = self.crew.layer_of(worker);
        let listeners = &self.present.load().listeners;
        let served = listeners
            .iter()
            .filter(|listener| listener.layer() == layer);
        Entrance::new(served, membership, Arc::clone(pulse))
    }
}

/// Each worker's sockets, with their listeners' numbers; there are `count` workers of each layer. A listener with a single socket
/// has it on a worker that depends on its number, so that several do not all burden the first one.
fn by_worker(
    bound: impl Iterator<Item = (Bound, Layer)>,
    count: usize,
) -> Vec<Vec<(u32, Listener)>> {
    let mut by_worker: Vec<_> = (0..2 * count).map(|_| Vec::new()).collect();
    for (number, (bound, layer)) in (0_u32..).zip(bound) {
        let first = match layer {
            Layer::Transport => 0,
            Layer::Application => count,
        };
        for (place, socket) in (number as usize..).zip(bound.sockets) {
            by_worker[first + place % count].push((number, socket));
        }
    }
    by_worker
}

fn say_how_it_ended(number: usize, end: io::Result<()>) {
    if let Err(error) = end {
        tracing::error!(worker = number, %error, "a worker cannot wait for events and has ended");
    }
}
