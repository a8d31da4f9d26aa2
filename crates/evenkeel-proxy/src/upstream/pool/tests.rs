//! The pool with real sockets: what is kept, what is seen to be stale, and who gets what there is too little of.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::*;

const ENDPOINT: EndpointId = EndpointId(1);
const LONG: Duration = Duration::from_secs(30);

impl Pooled for TcpStream {
    type Portable = std::net::TcpStream;

    fn is_stale(&mut self) -> bool {
        let read = self.try_read(&mut [0]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn pack(self) -> Option<std::net::TcpStream> {
        self.into_std().ok()
    }

    fn unpack(packed: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(packed)
    }
}

/// An endpoint that echoes single bytes, and counts its connections. It closes each after so many.
struct Echo {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Echo {
    /// On the runtime that calls it.
    async fn start(bytes_each: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(echo(stream, bytes_each));
            }
        });
        Self { address, accepted }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn echo(mut stream: TcpStream, bytes_each: usize) {
    for _ in 0..bytes_each {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        if stream.write_u8(byte).await.is_err() {
            return;
        }
    }
}

/// A pool of one worker among others.
struct Worker {
    pool: Pool<TcpStream>,
    address: SocketAddr,
    policy: PoolPolicy,
    began: Instant,
}

impl Worker {
    fn alone(address: SocketAddr, policy: PoolPolicy) -> Self {
        Self::of(Pools::of(1).0, 0, address, policy)
    }

    fn of(
        shared: Arc<Pools<std::net::TcpStream>>,
        number: usize,
        address: SocketAddr,
        policy: PoolPolicy,
    ) -> Self {
        Self {
            pool: Pool::new(number, shared, Rng::with_seed(1)),
            address,
            policy,
            began: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        Time::ZERO.after(self.began.elapsed())
    }

    /// A connection, after waiting where one has to.
    async fn connection(&self) -> Connection<TcpStream> {
        let mut claimed = self
            .pool
            .claim(ENDPOINT, &self.policy, Freshness::Any, self.now());
        loop {
            claimed = match claimed {
                Claimed::Kept(connection) => return connection,
                Claimed::Open(place) => {
                    return place.opened(TcpStream::connect(self.address).await.unwrap());
                }
                Claimed::Wait(wait) => {
                    let granted = tokio::time::timeout(LONG, wait).await;
                    let granted = granted.expect("nobody served it").unwrap();
                    self.pool
                        .accept(granted, &self.policy, Freshness::Any, self.now())
                        .unwrap()
                }
                Claimed::Refused => panic!("refused"),
            }
        }
    }

    /// Sends a byte and awaits its echo.
    async fn exchange(&self) {
        let mut connection = self.connection().await;
        connection.stream.write_u8(b'x').await.unwrap();
        assert_eq!(connection.stream.read_u8().await.unwrap(), b'x');
        self.give_back(connection);
    }

    /// The idle connection, past the book.
    fn take_idle(&self) -> Connection<TcpStream> {
        let mut bays = self.pool.bays.borrow_mut();
        bays.get_mut(&ENDPOINT).unwrap().shelf.take().unwrap()
    }

    fn put_idle(&self, connection: Connection<TcpStream>) {
        let mut bays = self.pool.bays.borrow_mut();
        let shelf = &mut bays.get_mut(&ENDPOINT).unwrap().shelf;
        assert!(shelf.put(connection, Time::NEVER, Time::ZERO).is_ok());
    }

    fn give_back(&self, connection: Connection<TcpStream>) {
        self.pool.give_back(ENDPOINT, connection, self.now());
    }
}

fn limited(max_sockets: u32) -> PoolPolicy {
    PoolPolicy {
        max_sockets: NonZeroU32::new(max_sockets),
        ..PoolPolicy::default()
    }
}

/// Ten exchanges after one another take one connection.
#[tokio::test]
async fn a_connection_is_used_again() {
    let echo = Echo::start(usize::MAX).await;
    let worker = Worker::alone(echo.address, PoolPolicy::default());
    for _ in 0..10 {
        worker.exchange().await;
    }
    assert_eq!((echo.accepted(), worker.pool.idle()), (1, 1));
}

/// A connection that its endpoint has closed meanwhile is not used, and one that is swept away does not stay in the way.
#[tokio::test]
async fn a_closed_connection_is_seen_before_it_is_used() {
    for policy in [PoolPolicy::default(), limited(1)] {
        let echo = Echo::start(1).await;
        let worker = Worker::alone(echo.address, policy);
        worker.exchange().await;
        // What is waited for is that the end of stream is known here.
        let kept = worker.take_idle();
        let readable = tokio::time::timeout(LONG, kept.stream.readable()).await;
        readable.unwrap().unwrap();
        worker.put_idle(kept);

        worker.exchange().await;

        assert_eq!(echo.accepted(), 2);
    }
}

/// A connection ends with its last exchange, its lifetime, or its idle timeout.
#[tokio::test]
async fn a_connection_has_an_end() {
    let echo = Echo::start(usize::MAX).await;
    let once = PoolPolicy {
        requests_max: NonZeroU32::new(1),
        ..PoolPolicy::default()
    };
    let worker = Worker::alone(echo.address, once);
    worker.exchange().await;
    assert_eq!(worker.pool.idle(), 0);

    let brief = PoolPolicy {
        max_lifetime: Some(LONG),
        ..PoolPolicy::default()
    };
    let worker = Worker::alone(echo.address, brief);
    worker.exchange().await;
    worker.pool.sweep(worker.now());
    assert_eq!(worker.pool.idle(), 1);
    worker.pool.sweep(worker.now().after(LONG));
    assert_eq!(worker.pool.idle(), 0);

    let worker = Worker::alone(echo.address, limited(1));
    worker.exchange().await;
    worker
        .pool
        .sweep(worker.now().after(worker.policy.idle_timeout));
    assert_eq!(worker.pool.idle(), 0);
    // Its place is free again.
    worker.exchange().await;
}

/// With one connection, whoever waits gets it in the order of arrival, and whoever leaves is passed over.
#[tokio::test]
async fn a_waiter_that_leaves_frees_its_place() {
    let echo = Echo::start(usize::MAX).await;
    let worker = Worker::alone(
        echo.address,
        PoolPolicy {
            max_waiters: 2,
            ..limited(1)
        },
    );
    let held = worker.connection().await;
    let claim = || {
        worker
            .pool
            .claim(ENDPOINT, &worker.policy, Freshness::Any, worker.now())
    };
    let (Claimed::Wait(leaver), Claimed::Wait(stayer)) = (claim(), claim()) else {
        panic!("they do not wait");
    };
    assert!(matches!(claim(), Claimed::Refused));

    drop(leaver);
    worker.give_back(held);

    let grant = stayer.await.unwrap();
    let claimed = worker
        .pool
        .accept(grant, &worker.policy, Freshness::Any, worker.now());
    assert!(matches!(claimed, Ok(Claimed::Kept(_))));
}

/// One that leaves when its connection is on its way already: the place passes on.
#[tokio::test]
async fn a_grant_that_nobody_takes_passes_on() {
    let echo = Echo::start(usize::MAX).await;
    let worker = Worker::alone(echo.address, limited(1));
    let held = worker.connection().await;
    let claim = || {
        worker
            .pool
            .claim(ENDPOINT, &worker.policy, Freshness::Any, worker.now())
    };
    let (Claimed::Wait(leaver), Claimed::Wait(stayer)) = (claim(), claim()) else {
        panic!("they do not wait");
    };

    worker.give_back(held);
    drop(leaver);

    let grant = stayer.await.unwrap();
    let claimed = worker
        .pool
        .accept(grant, &worker.policy, Freshness::Any, worker.now());
    assert!(matches!(claimed, Ok(Claimed::Open(_))));
}

/// Four workers that share two connections: all exchanges are made, on few connections.
#[test]
fn four_workers_with_two_connections_neither_stop_nor_reconnect() {
    const EXCHANGES: usize = 200;
    let (address, accepted) = echo_on_a_thread();
    let (shared, asks) = Pools::of(4);
    let workers: Vec<_> = asks
        .into_iter()
        .enumerate()
        .map(|(number, asks)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let worker = Rc::new(Worker::of(shared, number, address, limited(2)));
                run_worker(&worker, asks, EXCHANGES);
                worker.pool.clear();
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    let opened = accepted.load(Ordering::Relaxed);
    assert!(opened <= EXCHANGES / 10, "{opened} connections");
}

/// Two sessions of a worker, each with its exchanges one after the other.
fn run_worker(worker: &Rc<Worker>, asks: Asks, exchanges: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let attending = Rc::clone(worker);
        let attendant = tokio::task::spawn_local(async move {
            let began = attending.began;
            attending
                .pool
                .attend(asks, move || Time::ZERO.after(began.elapsed()))
                .await;
        });
        let session = |worker: Rc<Worker>| async move {
            for _ in 0..exchanges {
                worker.exchange().await;
            }
        };
        let one = tokio::task::spawn_local(session(Rc::clone(worker)));
        let other = tokio::task::spawn_local(session(Rc::clone(worker)));
        one.await.unwrap();
        other.await.unwrap();
        attendant.abort();
    });
}

fn echo_on_a_thread() -> (SocketAddr, Arc<AtomicUsize>) {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let echo = Echo::start(usize::MAX).await;
            tell.send((echo.address, Arc::clone(&echo.accepted)))
                .unwrap();
            std::future::pending::<()>().await;
        });
    });
    told.recv().unwrap()
}
