//! Connections to the admin listener: few, short, and never in each other's way.
//!
//! Each connection answers one request and is closed. Whoever is slow gives way to whoever comes: when all places are taken,
//! the oldest connection whose request is not whole is cut; only where all are being answered, the oldest of these. So neither a client that
//! never finishes its request nor one that never reads its answer keeps anybody else from reading `/livez`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
                connections.begin(|asked| answer(stream, Arc::clone(pages), asked));
            }),
            Doors::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                connections.begin(|asked| answer(stream, Arc::clone(pages), asked));
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
    oldest_first: VecDeque<Connection>,
}

struct Connection {
    task: AbortHandle,
    asked: Asked,
}

/// Set as soon as a connection's request is whole.
type Asked = Arc<AtomicBool>;

impl Connections {
    fn begin<C>(&mut self, connection: impl FnOnce(Asked) -> C)
    where
        C: Future<Output = ()> + Send + 'static,
    {
        while self.tasks.try_join_next().is_some() {}
        self.oldest_first.retain(|one| !one.task.is_finished());
        if self.oldest_first.len() >= CONNECTIONS_MAX {
            self.make_room();
        }
        let asked = Asked::default();
        let task = self.tasks.spawn(connection(Arc::clone(&asked)));
        self.oldest_first.push_back(Connection { task, asked });
    }

    fn make_room(&mut self) {
        let mut connections = self.oldest_first.iter();
        let silent = connections.position(|one| !one.asked.load(Ordering::Relaxed));
        if let Some(one) = self.oldest_first.remove(silent.unwrap_or(0)) {
            one.task.abort();
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, pages: Arc<Pages>, asked: Asked) {
    let service = service_fn(|request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// Lets go of its share when it is cut.
    async fn last_for_ever(share: Arc<()>) {
        pending::<()>().await;
        drop(share);
    }

    impl Connections {
        fn begin_one(&mut self, has_asked: bool, share: &Arc<()>) {
            let share = Arc::clone(share);
            self.begin(|asked| {
                asked.store(has_asked, Ordering::Relaxed);
                last_for_ever(share)
            });
        }

        async fn settle(&mut self) {
            while self.tasks.len() > CONNECTIONS_MAX {
                let _ = self.tasks.join_next().await;
            }
        }
    }

    /// Whoever has asked is answered while somebody else can give way; and there is a place in any case.
    #[tokio::test]
    async fn who_has_not_asked_gives_way_first() {
        let (asking, silent) = (Arc::new(()), Arc::new(()));
        let mut connections = Connections::default();
        for _ in 1..CONNECTIONS_MAX {
            connections.begin_one(true, &asking);
        }
        connections.begin_one(false, &silent);
        assert_eq!(Arc::strong_count(&silent), 2);

        for _ in 0..2 {
            connections.begin_one(true, &asking);
            connections.settle().await;
            assert_eq!(Arc::strong_count(&silent), 1);
            assert_eq!(Arc::strong_count(&asking), 1 + CONNECTIONS_MAX);
        }
    }
}
