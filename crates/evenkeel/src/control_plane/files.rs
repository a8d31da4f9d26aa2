//! The files of Unix sockets, looked at now and then: somebody may remove them, and then nobody can connect any more.
//!
//! The control socket's file is made again at once, since without it nobody could ask for that. A listener's is made again by a
//! reload, which an operator decides on; until then there is one line in the log, and `status` says it.

use std::collections::BTreeSet;
use std::future::pending;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use evenkeel_proxy::ListenerStatus;
use evenkeel_proxy::control::server;
use tokio::sync::oneshot;

use super::{Phase, Plane};
use crate::desk::Desk;

/// What has been said.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Listeners whose file is gone.
    lost: BTreeSet<Arc<str>>,
    /// The control socket cannot be made again.
    is_control_lost: bool,
}

impl Plane {
    /// Answers on this control socket, and no longer on the one before it.
    pub(super) fn serve_on(&mut self, listener: UnixListener) {
        let (leave, left) = oneshot::channel();
        let serving = serve(listener, Arc::clone(&self.desk), left);
        self.server = Some(tokio::spawn(serving));
        if let Some(before) = self.leave.replace(leave) {
            // It ends by itself, with its last answers.
            let _ = before.send(());
        }
    }

    pub(super) fn look_after_files(&mut self) {
        if self.phase == Phase::Running && self.leave.is_some() {
            self.look_after_listeners();
            self.look_after_control_socket();
        }
    }

    fn look_after_listeners(&mut self) {
        let listeners = self.charge.proxy.listeners().into_iter();
        let lost = listeners.filter(|listener| listener.has_lost_its_file);
        let names = lost.map(|ListenerStatus { name, .. }| name);
        let lost: BTreeSet<Arc<str>> = names.collect();
        for listener in lost.difference(&self.files.lost) {
            tracing::warn!(%listener, "the file of its socket was removed: nobody can connect until a reload makes it again");
        }
        self.files.lost = lost;
    }

    fn look_after_control_socket(&mut self) {
        let Some(socket) = &mut self.charge.socket else {
            return;
        };
        if socket.is_there() {
            self.files.is_control_lost = false;
            return;
        }
        let path = socket.path().display().to_string();
        let listener = socket.restore().map_err(|error| error.to_string());
        let listener = listener.and_then(|()| socket.listener().map_err(|error| error.to_string()));
        match listener {
            Ok(listener) => {
                tracing::warn!(path, "the control socket was removed, and is made again");
                self.serve_on(listener);
            }
            Err(error) if !self.files.is_control_lost => {
                self.files.is_control_lost = true;
                tracing::error!(
                    path,
                    error,
                    "the control socket was removed, and cannot be made again: signals are left"
                );
            }
            Err(_) => {}
        }
    }
}

/// Without its control socket the process goes on; an operator has signals left.
async fn serve(listener: UnixListener, desk: Arc<Desk>, left: oneshot::Receiver<()>) {
    // A sender that is gone has not sent: the process is ending, and the runtime with it.
    let left = async {
        if left.await.is_err() {
            pending::<()>().await;
        }
    };
    if let Err(error) = server::serve(listener, desk, left).await {
        tracing::error!(%error, "the control socket is not served");
    }
}
