//! A thread that runs sessions of the application layer: an asynchronous runtime, and within it a worker of the reactor that
//! accepts, reads the mail and knows the sessions by their keys.
//!
//! So everything about listeners, limits, reloads and the way out is the same as on the transport layer, and is the same code
//! ([`Entrance`]). Each session is one task, which is served by the protocol of its listener.

mod ended;
mod introduction;
mod letterbox;
mod serve;
mod session;
mod stream;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::EndpointId;
use evenkeel_reactor::{
    Clock, Events, Fate, Handler, Key, Listener, Next, Origin, PipeBudget, Pipes, Readiness, Rest,
    Slots, Stream as Accepted, Tag, Turn, Worker,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::sleep;

#[expect(unused_imports, reason = "for the session of HTTP, which is to come")]
pub(crate) use self::{
    letterbox::{Letterbox, Wait, Word},
    session::{Arrival, Client, Shared, Sought, Standing, Use},
    stream::Stream,
};

use crate::SessionSink;
use crate::crew::Arrival as Admitted;
use crate::entrance::{Entrance, Errand};
use crate::http::Workshop;
use crate::listener::Admission;
use crate::pauses::PauseCause;
use crate::upstream::pool::{Asks, Pool, Pools};
use crate::upstream::{SessionIndex, Unwatched};
use crate::worker::{Grant, GrantPost, Instruction, WorkerMailbox, time_of};

/// What a worker is made of, before it has a thread.
pub(crate) struct Parts {
    /// Among those of its layer.
    pub(crate) number: usize,
    pub(crate) sink: Arc<dyn SessionSink>,
    pub(crate) entrance: Entrance,
    pub(crate) mailbox: WorkerMailbox,
    pub(crate) index: Arc<SessionIndex>,
    pub(crate) clock: Clock,
    pub(crate) sockets: Vec<(u32, Listener)>,
    /// What it shares with the others of its layer about endpoints' connections, and what it is asked for of these.
    pub(crate) pooled: (Arc<Pools<Unwatched>>, Asks),
}

/// A worker on its own thread.
pub(crate) struct Layer7Worker {
    runtime: Runtime,
    worker: Worker<Layer7Handler>,
    shared: Rc<Shared>,
    asks: Asks,
}

impl Layer7Worker {
    /// To be called on the thread that it is for.
    ///
    /// # Errors
    ///
    /// The kernel lacks descriptors or memory.
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let (pools, asks) = parts.pooled;
        let pool = Pool::new(parts.number, pools, fastrand::Rng::new());
        let shared = Rc::new(Shared {
            sink: parts.sink,
            clock: parts.clock,
            random: RefCell::new(fastrand::Rng::new()),
            waiter: Arc::new(GrantPost(parts.mailbox.clone())),
            index: parts.index,
            ended: ended::Ended::default(),
            workshop: Rc::new(Workshop::new(pool)),
        });
        let handler = Layer7Handler {
            entrance: parts.entrance,
            shared: Rc::clone(&shared),
        };
        // Its own sessions splice nothing: they have no stream that it could move.
        let pipes = Pipes::new(PipeBudget::new(0));
        let mut worker = Worker::new(handler, parts.mailbox, parts.clock, pipes)?;
        for (listener, socket) in parts.sockets {
            worker.listen(listener, socket)?;
        }
        Ok(Self {
            runtime: Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()?,
            worker,
            shared,
            asks,
        })
    }

    /// Runs until it was told to finish and the last session is over.
    ///
    /// # Errors
    ///
    /// The kernel refuses to wait; that is a fault of this program.
    pub(crate) fn run(self) -> io::Result<()> {
        let tasks = LocalSet::new();
        let (shared, workshop) = (Rc::clone(&self.shared), Rc::clone(&self.shared.workshop));
        let asks = self.asks;
        // It ends with the last session: nothing is left to be kept then.
        tasks.spawn_local(async move { workshop.pool.attend(asks, || shared.now()).await });
        tasks.block_on(&self.runtime, drive(self.worker, &self.shared))
    }
}

/// Gives the worker its turns, between those of the sessions.
async fn drive(worker: Worker<Layer7Handler>, shared: &Shared) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for types that may show another descriptor at another time: this one has but one"
    )]
    let mut worker = AsyncFd::with_interest(worker, Interest::READABLE)?;
    let mut events = Events::default();
    loop {
        match worker.get_mut().turn_now(&mut events)? {
            Next::Over => return Ok(()),
            Next::Turn(Some(Duration::ZERO)) => yield_now().await,
            Next::Turn(patience) => {
                for session in wait(&worker, patience, shared).await? {
                    worker.get_mut().remove(session);
                }
            }
        }
    }
}

/// Until there is mail, or somebody to accept; until the time is over; or until sessions have ended: these.
async fn wait(
    worker: &AsyncFd<Worker<Layer7Handler>>,
    patience: Option<Duration>,
    shared: &Shared,
) -> io::Result<Vec<Key>> {
    let pause = async {
        match patience {
            Some(patience) => sleep(patience).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ended = poll_fn(|cx| shared.ended.poll(cx)) => Ok(ended),
        // Cleared before the turn: whatever comes after that makes an event.
        readable = worker.readable() => readable.map(|mut readable| {
            readable.clear_ready();
            Vec::new()
        }),
        () = pause => Ok(Vec::new()),
    }
}

/// Runs sessions as tasks.
struct Layer7Handler {
    entrance: Entrance,
    shared: Rc<Shared>,
}

impl Layer7Handler {
    fn open(&self, turn: &Turn<'_>, sessions: &mut Slots<Rc<Letterbox>>, arrival: Admitted) {
        let Some(Admitted {
            stream,
            origin,
            listener,
            place,
        }) = self.entrance.let_in(arrival)
        else {
            return;
        };
        let stream = match Stream::adopt(stream, origin) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be watched and is closed");
                return;
            }
        };
        let letterbox = Rc::<Letterbox>::default();
        if self.entrance.is_draining() {
            letterbox.tell(Word::Finish);
        }
        let entered = sessions.insert_with(|_| Ok::<_, ()>(Rc::clone(&letterbox)));
        let Ok(key) = entered else { return };
        let standing = Standing::new(key, letterbox, Rc::clone(&self.shared), listener, place);
        let accepted_at = time_of(turn.now);
        spawn_local(serve::begin(stream, origin, standing, accepted_at));
    }

    fn close_of(&self, sessions: &mut Slots<Rc<Letterbox>>, endpoint: EndpointId) {
        for key in self.shared.index.sessions(endpoint) {
            if let Some(letterbox) = sessions.get_mut(key) {
                letterbox.tell_endpoint_down();
            }
        }
    }
}

fn tell_all(sessions: &mut Slots<Rc<Letterbox>>, word: Word) {
    for key in sessions.keys() {
        if let Some(letterbox) = sessions.get_mut(key) {
            letterbox.tell(word);
        }
    }
}

impl Handler for Layer7Handler {
    type Connection = Rc<Letterbox>;
    type Message = Grant;
    type Instruction = Instruction;
    type Place = Admission;
    type Refusal = PauseCause;

    fn accepted(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &mut Slots<Rc<Letterbox>>,
        _: u32,
        stream: Accepted,
        origin: Origin,
        admission: Admission,
    ) {
        let now = time_of(turn.now);
        if let Some(arrival) = self.entrance.accepted((stream, origin), admission, now) {
            self.open(turn, sessions, arrival);
        }
    }

    fn place(&mut self, listener: u32) -> Result<Admission, PauseCause> {
        self.entrance.place(listener)
    }

    fn unused(&mut self, admission: Admission) {
        admission.pass_on();
    }

    fn rested(&mut self, turn: &mut Turn<'_>, listener: u32, why: Rest<PauseCause>) {
        self.entrance.rested(listener, why, time_of(turn.now));
    }

    fn went_on(&mut self, turn: &mut Turn<'_>, listener: u32) {
        self.entrance.went_on(listener, time_of(turn.now));
    }

    fn closed(&mut self, listener: u32) {
        self.entrance.closed(listener);
    }

    /// Never called, as are the next two: the runtime watches the sessions' sockets, and has their timers.
    fn ready(&mut self, _: &mut Turn<'_>, _: &mut Rc<Letterbox>, _: Tag, _: Readiness) -> Fate {
        Fate::Keep
    }

    fn resumed(&mut self, _: &mut Turn<'_>, _: &mut Rc<Letterbox>) -> Fate {
        Fate::Keep
    }

    fn expired(&mut self, _: &mut Turn<'_>, _: &mut Rc<Letterbox>) -> Fate {
        Fate::Keep
    }

    fn told(&mut self, _: &mut Turn<'_>, letterbox: &mut Rc<Letterbox>, grant: Grant) -> Fate {
        letterbox.grant(grant);
        Fate::Keep
    }

    fn instructed(
        &mut self,
        turn: &mut Turn<'_>,
        sessions: &mut Slots<Rc<Letterbox>>,
        instruction: Instruction,
    ) {
        match self.entrance.instructed(turn, instruction) {
            Some(Errand::Open(arrival)) => self.open(turn, sessions, arrival),
            Some(Errand::CloseThoseOf(endpoint)) => self.close_of(sessions, endpoint),
            Some(Errand::Drain) => tell_all(sessions, Word::Finish),
            Some(Errand::Stop) => tell_all(sessions, Word::Stop),
            None => {}
        }
    }
}
