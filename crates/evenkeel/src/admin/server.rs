//! Connections to the admin listener: few, short, and never in each other's way.
//!
//! Each connection answers one request and is closed. Whoever is slow gives way to whoever comes: when all places are taken,
//! the oldest connection is cut. So a client that never finishes its request keeps nobody else from reading `/livez`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::pages::Pages;

/// How many connections there are at one time.
pub(crate) const CONNECTIONS_MAX: usize = 16;
/// How long a request's head may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may last, from its accept to the last byte of the answer.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(10);
/// What a request's head may have; hyper refuses more with 431.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// What a request's head may have of fields.
const HEAD_FIELDS_MAX: usize = 64;
/// How long to wait when nothing can be accepted, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where clients come in.
pub(crate) enum Doors {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Accepts and answers, until this is dropped, connections included.
pub(crate) async fn serve(doors: &Doors, pages: &Arc<Pages>) {
    let mut connections = Connections::default();
    loop {
        let accepted = match doors {
            Doors::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                connections.begin(answer(stream, Arc::clone(pages)));
            }),
            Doors::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                connections.begin(answer(stream, Arc::clone(pages)));
            }),
        };
        if let Err(error) = accepted {
            tracing::debug!(%error, "cannot accept on the admin listener");
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// The connections there are, in the order in which they began. They end with this value.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    oldest_first: VecDeque<AbortHandle>,
}

impl Connections {
    fn begin(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.oldest_first.retain(|task| !task.is_finished());
        if self.oldest_first.len() >= CONNECTIONS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            oldest.abort();
        }
        self.oldest_first.push_back(self.tasks.spawn(connection));
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, pages: Arc<Pages>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = pages.answer(request.method(), request.uri().path());
        async { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX)
        .keep_alive(false);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_PATIENCE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the admin listener failed"),
        Err(_) => tracing::debug!("a connection to the admin listener took too long"),
    }
}
