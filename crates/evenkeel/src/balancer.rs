//! One running balancer: started in order from checked settings, and ended whole. What `run` and `demo` have in common.
//!
//! The order is: signals, so that none that comes from then on ends the process halfway, control socket (so that a second start
//! by mistake is found before anything else happens), access log, admin listener, all listening sockets, workers, control plane. If one fails, those before it are taken down again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_core::units::Address;
use evenkeel_proxy::control::protocol::StopMode;
use evenkeel_proxy::control::socket::ControlSocketError;
use evenkeel_proxy::discovery::Directory;
use evenkeel_proxy::settings::Settings;
use evenkeel_proxy::telemetry::Telemetry;
use evenkeel_proxy::telemetry::access_log::AccessLogError;
use evenkeel_proxy::{ListenerStatus, Proxy, StartError};
use thiserror::Error;

use crate::admin::{AdminError, AdminListener};
use crate::control_plane::{Charge, ControlPlane};
use crate::keeper;
use crate::lookout::Lookout;
use crate::reload::Source;
use crate::upgrade::endowment::Endowment;

/// A balancer that accepts connections. It ends by a signal, by its control socket, or by [`Balancer::stop`].
pub struct Balancer {
    proxy: Arc<Proxy>,
    control_socket: Option<PathBuf>,
    admin: Option<Address>,
    control: ControlPlane,
}

/// It could not be started; nothing of it is left.
#[derive(Debug, Error)]
pub enum BalancerError {
    /// The control socket.
    #[error(transparent)]
    ControlSocket(#[from] ControlSocketError),
    /// The access log.
    #[error(transparent)]
    AccessLog(#[from] AccessLogError),
    /// The admin listener.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// Listening sockets and workers.
    #[error(transparent)]
    Proxy(#[from] StartError),
    /// The control plane, or what it stands on.
    #[error("cannot start the control plane: {0}")]
    ControlPlane(io::Error),
}

impl Balancer {
    /// Starts everything, in order. The lookout is made first, by whoever also reads the configuration. Where another process has
    /// to give something up first, it has done so when this returns. Without a source there is nothing to reload.
    ///
    /// # Errors
    ///
    /// See [`BalancerError`].
    pub fn start(
        settings: Settings,
        source: Option<Source>,
        lookout: Lookout,
        mut endowment: Endowment,
    ) -> Result<Self, BalancerError> {
        let control_socket = settings.process.control_socket.clone();
        let socket = endowment.control_socket(control_socket.as_deref())?;
        let telemetry = Telemetry::start(&settings)?;
        let mut sockets = std::mem::take(&mut endowment.sockets);
        let admin = settings.admin.as_ref();
        let admin = admin.map(|admin| AdminListener::open(admin, &mut sockets));
        let admin = admin.transpose()?;
        let admin_address = admin.as_ref().map(|admin| admin.address().clone());
        let is_informed = sockets.remembers();
        let directory = Arc::new(Directory::default());
        let sink = Arc::clone(&telemetry) as _;
        let proxy = Proxy::prepare(sockets, settings, Arc::clone(&directory), sink)?;
        let proxy = Arc::new(proxy);
        // Whoever follows a process knows more than that one has written down.
        if !is_informed {
            keeper::recall(&proxy);
        }
        let charge = Charge {
            proxy: Arc::clone(&proxy),
            directory,
            telemetry,
            socket,
            admin,
            upgrades: endowment.upgrades,
            succession: endowment.into_succession(),
            source,
        };
        let control = ControlPlane::start(charge, lookout).map_err(|error| {
            proxy.close();
            proxy.join();
            BalancerError::ControlPlane(error)
        })?;
        Ok(Self {
            proxy,
            control_socket,
            admin: admin_address,
            control,
        })
    }

    /// The listeners, with the addresses they really have.
    pub fn listeners(&self) -> Vec<ListenerStatus> {
        self.proxy.listeners()
    }

    /// The control socket's path.
    pub fn control_socket(&self) -> Option<&PathBuf> {
        self.control_socket.as_ref()
    }

    /// Where the admin listener really listens.
    pub fn admin(&self) -> Option<&Address> {
        self.admin.as_ref()
    }

    /// Asks for the end, as a signal would.
    pub fn stop(&self, mode: StopMode) {
        self.control.stop(mode);
    }

    /// Waits until everything has ended.
    ///
    /// # Errors
    ///
    /// The control plane panicked; sessions may have been cut.
    pub fn join(self) -> std::thread::Result<()> {
        self.control.join()
    }
}
