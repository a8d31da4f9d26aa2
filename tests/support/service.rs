//! An endpoint inside the test: a thread that accepts, and a thread for each connection that does what the test says.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::{client, ports, wait};

/// A listening endpoint; it stops listening when dropped.
pub(crate) struct Service {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    accepted: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// `serve` is given each connection, and its number, counted from 1.
    pub(crate) fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        Self::start_on(ports::free(), serve)
    }

    /// As [`Service::start`], on an address of the test's choice.
    pub(crate) fn start_on(
        address: SocketAddr,
        serve: impl Fn(TcpStream, usize) + Send + Sync + 'static,
    ) -> Self {
        let listener = Arc::new(bind(address));
        let accepted = Arc::new(AtomicUsize::new(0));
        let acceptor = (
            Arc::clone(&listener),
            Arc::clone(&accepted),
            Arc::new(serve),
        );
        let thread = std::thread::spawn(move || accept_all(&acceptor.0, &acceptor.1, &acceptor.2));
        Self {
            address,
            listener,
            accepted,
            thread: Some(thread),
        }
    }

    /// Says its name to everybody and closes: the server speaks first.
    pub(crate) fn named(name: &'static str) -> Self {
        Self::start(say(name))
    }

    /// Sends back what it gets, until the end of the stream.
    pub(crate) fn echo() -> Self {
        Self::start(|stream, _| echo(stream))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // On Linux this wakes a thread that waits in accept, with an error.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket of an earlier life may stay open for a moment, in a process that another test is just starting.
fn bind(address: SocketAddr) -> TcpListener {
    wait::until(&format!("{address} is free"), || {
        TcpListener::bind(address).ok()
    })
}

fn accept_all(
    listener: &TcpListener,
    accepted: &AtomicUsize,
    serve: &Arc<impl Fn(TcpStream, usize) + Send + Sync + 'static>,
) {
    while let Ok((stream, _)) = listener.accept() {
        let number = accepted.fetch_add(1, Ordering::SeqCst) + 1;
        let serve = Arc::clone(serve);
        std::thread::spawn(move || serve(stream, number));
    }
}

/// What [`Service::named`] does with a connection.
pub(crate) fn say(name: &'static str) -> impl Fn(TcpStream, usize) + Send + Sync + 'static {
    move |mut stream, _| {
        let _ = stream.write_all(name.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let _ = client::read_to_end(&mut stream);
    }
}

/// What [`Service::echo`] does with a connection.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut reader = stream.try_clone().expect("one more descriptor");
    let _ = std::io::copy(&mut reader, &mut stream);
    let _ = stream.shutdown(Shutdown::Write);
}

/// Keeps the connection open, without a word, until the other side ends it.
pub(crate) fn stay_silent(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(wait::DEADLINE));
    let _ = client::read_to_end(&mut stream);
}

/// Connections that stay open whatever the other side does, until this is dropped.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<TcpStream>>>);

impl Kept {
    pub(crate) fn keep(&self, stream: TcpStream) {
        self.0.lock().expect("nobody panics with it").push(stream);
    }
}
