//! What a process starts with beside its configuration: sockets that others have opened, and what the process before it knew.

use std::io;
use std::path::Path;

use evenkeel_proxy::control::socket::{ControlSocket, ControlSocketError};
use evenkeel_proxy::{FileMark, Giver, Inheritance};

use super::{Belongings, Predecessor, meet, state};
use crate::activation;

/// See the module's documentation. Nothing, by default.
#[derive(Debug, Default)]
pub struct Endowment {
    pub(crate) sockets: Inheritance,
    /// The control socket of the process before, which has charge of it.
    control: Option<ControlSocket>,
    /// The files of Unix sockets that the process before has charge of.
    files: Vec<FileMark>,
    pub(crate) predecessor: Option<Predecessor>,
    /// Whether this process can be followed by another one, which is started as this one was.
    pub(crate) upgrades: MayUpgrade,
}

/// Whether a process can be followed by another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MayUpgrade {
    /// It was started by `evenkeel run`.
    Yes,
    /// Whatever started it would start something else.
    #[default]
    No,
}

impl Endowment {
    /// What `evenkeel run` was given. To be called once, with the log running.
    ///
    /// # Errors
    ///
    /// A process says that this one is to follow it, but what it says cannot be understood.
    pub(crate) fn receive() -> io::Result<Self> {
        let Some((predecessor, belongings)) = meet()? else {
            return Ok(Self {
                sockets: Inheritance::from_service_manager(activation::announced()),
                upgrades: MayUpgrade::Yes,
                ..Self::default()
            });
        };
        tracing::info!(
            pid = predecessor.pid(),
            "taking over from a running process"
        );
        Self::left_by(predecessor, belongings)
    }

    fn left_by(predecessor: Predecessor, belongings: Belongings) -> io::Result<Self> {
        let mut sockets = Inheritance::default();
        for (name, socket) in belongings.sockets {
            sockets.add(Giver::Predecessor, &name, socket);
        }
        match belongings.state.map(state::read).transpose() {
            Ok(clusters) => sockets.remember(clusters.unwrap_or_default()),
            Err(error) => {
                tracing::warn!(%error, "what the process before knew of endpoints cannot be understood: it is found out anew");
            }
        }
        let control = belongings.control.map(ControlSocket::share).transpose()?;
        Ok(Self {
            sockets,
            control: control.flatten(),
            files: belongings.files,
            predecessor: Some(predecessor),
            upgrades: MayUpgrade::Yes,
        })
    }

    /// The control socket at that path: the one that was handed over, or one of its own.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(crate) fn control_socket(
        &mut self,
        path: Option<&Path>,
    ) -> Result<Option<ControlSocket>, ControlSocketError> {
        match (path, &self.control) {
            (Some(path), Some(handed)) if handed.path() == path => Ok(self.control.take()),
            (Some(path), _) => ControlSocket::open(path).map(Some),
            (None, _) => Ok(None),
        }
    }

    /// What is left of it once the process has taken what it wants.
    pub(crate) fn into_succession(self) -> Option<Succession> {
        let predecessor = self.predecessor?;
        Some(Succession {
            predecessor,
            unwanted: self.control,
            files: self.files,
        })
    }
}

/// What is still to be settled with the process before, once this one is ready to serve.
#[derive(Debug)]
pub(crate) struct Succession {
    predecessor: Predecessor,
    /// Its control socket, if this process has another one.
    unwanted: Option<ControlSocket>,
    /// The files that are this process's from then on.
    files: Vec<FileMark>,
}

impl Succession {
    /// Looks whether the process before still wants to be followed.
    ///
    /// # Errors
    ///
    /// It does not: this one must end.
    pub(crate) fn heed(&self) -> io::Result<()> {
        self.predecessor.heed()
    }

    /// Takes over: from then on the control socket is this process's, and one that it does not want is gone. So are the files
    /// of Unix sockets that are returned, with the process before, which may have something to say yet.
    ///
    /// # Errors
    ///
    /// The process before does not let go: this one must not serve.
    pub(crate) fn take_over(
        mut self,
        own: Option<&mut ControlSocket>,
    ) -> io::Result<(Vec<FileMark>, Predecessor)> {
        self.predecessor.take_over()?;
        for socket in own.into_iter().chain(&mut self.unwanted) {
            if let Err(error) = socket.take_charge() {
                tracing::warn!(%error, "the process id cannot be written beside the control socket");
            }
        }
        Ok((self.files, self.predecessor))
    }
}
