//! The admin listener: HTTP on an address of its own, on which machines read how the process is.
//!
//! `server` accepts and bounds connections, `pages` says what is answered, `health` decides what alive and ready mean, and
//! `metrics` writes the figures. Nothing can be changed here: that is what the control socket is for.

pub(crate) mod health;
pub(crate) mod metrics;
mod pages;
mod server;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use evenkeel_core::units::Address;
use evenkeel_proxy::settings::AdminSettings;
use evenkeel_proxy::{
    FileMark, Inheritance, Inherited, Listener, PathError, Sharing, StreamOptions,
};
use thiserror::Error;

pub(crate) use pages::Pages;
pub(crate) use server::{Doors, serve};

/// Who may connect, where it listens on a Unix socket: the process's own user and group.
const PERMISSIONS: u32 = 0o660;

/// A bound address that is not served yet: clients wait in its backlog.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: Listener,
    address: Address,
}

/// The address cannot be had.
#[derive(Debug, Error)]
#[error(
    "the admin listener cannot listen on {address}: {source}; choose another `bind` under [admin], or stop who listens there"
)]
pub struct AdminError {
    address: Address,
    source: io::Error,
}

impl AdminListener {
    /// Takes the address, with the socket that this process was given for it, if it was.
    ///
    /// # Errors
    ///
    /// Somebody else has it, or the kernel refuses it.
    pub(crate) fn open(
        settings: &AdminSettings,
        inheritance: &mut Inheritance,
    ) -> Result<Self, AdminError> {
        let opened = match inheritance.take(&settings.bind) {
            Some(socket) => adopt(socket, &settings.bind),
            None => bind(&settings.bind),
        };
        opened.map_err(|source| AdminError {
            address: settings.bind.clone(),
            source,
        })
    }

    /// A descriptor for the process that is to follow this one.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// Its file on a Unix socket, if this process has charge of it.
    pub(crate) fn file(&self) -> Option<&FileMark> {
        self.listener.file()
    }

    /// Has charge of its file from now on, if that is one of these.
    pub(crate) fn take_file(&mut self, files: &[FileMark]) {
        self.listener.take_file(files);
    }

    /// The address is another process's from now on.
    pub(crate) fn leave(mut self) {
        self.listener.leave_file();
    }

    /// Where it really listens: the port is the kernel's choice if 0 was asked for.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Where clients come in. Needs the control plane's runtime.
    ///
    /// # Errors
    ///
    /// The runtime cannot watch the socket.
    pub(crate) fn doors(&self) -> io::Result<Doors> {
        let socket = self.duplicate()?;
        Ok(match self.address {
            Address::Ip(_) => Doors::Tcp(tokio::net::TcpListener::from_std(socket.into())?),
            Address::Unix(_) => Doors::Unix(tokio::net::UnixListener::from_std(socket.into())?),
        })
    }
}

fn adopt(socket: Inherited, address: &Address) -> io::Result<AdminListener> {
    Ok(AdminListener {
        listener: Listener::adopt(socket, StreamOptions::default())?,
        address: address.clone(),
    })
}

fn bind(address: &Address) -> io::Result<AdminListener> {
    match address {
        Address::Ip(ip) => {
            let listener = Listener::bind(*ip, Sharing::Exclusive, StreamOptions::default())?;
            let address = Address::Ip(listener.address()?);
            Ok(AdminListener { listener, address })
        }
        Address::Unix(path) => Ok(AdminListener {
            listener: Listener::bind_path(path, PERMISSIONS).map_err(said)?,
            address: address.clone(),
        }),
    }
}

fn said(error: PathError) -> io::Error {
    match error {
        PathError::InUse => io::ErrorKind::AddrInUse.into(),
        PathError::NotASocket => io::Error::other("something that is no socket lies there"),
        PathError::Io(error) => error,
    }
}
