//! The demo's stage: three example services, and a balancer made from a configuration text.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use evenkeel_proxy::control::client::{ANSWER_TIMEOUT, ClientError, ControlClient};
use evenkeel_proxy::control::protocol::{Request, StopMode};
use evenkeel_proxy::control::report::{EndpointReport, StatusReport};
use tempfile::TempDir;
use thiserror::Error;

use crate::balancer::{Balancer, BalancerError};
use crate::config::{self, Loaded};
use crate::example_service::ExampleService;
use crate::exit::Exit;
use crate::lookout::Lookout;
use crate::output;
use crate::upgrade::endowment::Endowment;

/// Services, balancer and the folder of its control socket.
pub(super) struct Stage {
    /// The one that dies and returns.
    a: Option<ExampleService>,
    a_address: SocketAddr,
    _others: [ExampleService; 2],
    configuration: String,
    balancer: Balancer,
    address: SocketAddr,
    control_socket: PathBuf,
    /// Last: everything in it is closed by then.
    _folder: TempDir,
}

/// The stage does not hold.
#[derive(Debug, Error)]
pub(super) enum StageError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Balancer(#[from] BalancerError),
    #[error("status: {0}")]
    Status(#[from] ClientError),
    #[error(
        "the configuration of the demo is refused; this is a fault of evenkeel, please report it"
    )]
    Configuration,
    #[error("its story cannot be printed")]
    Untold,
    #[error("status does not know {0}")]
    Unknown(&'static str),
}

impl Stage {
    pub(super) fn build() -> Result<Self, StageError> {
        let lookout = Lookout::post()?;
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let start = |name| ExampleService::start(name, any_port);
        let (a, b, c) = (start("a")?, start("b")?, start("c")?);
        let folder = tempfile::Builder::new()
            .prefix("evenkeel-demo-")
            .tempdir()?;
        let control_socket = folder.path().join("control.sock");
        let configuration =
            configuration([&a, &b, &c].map(ExampleService::address), &control_socket);
        let Loaded { settings, .. } = config::parse_text("demo.toml", &configuration)
            .map_err(|_| StageError::Configuration)?;
        let balancer = Balancer::start(settings, None, lookout, Endowment::default())?;
        let listeners = balancer.listeners();
        let address = listeners
            .first()
            .and_then(|listener| listener.address.ip())
            .ok_or(StageError::Unknown("its listener"))?;
        Ok(Self {
            a_address: a.address(),
            a: Some(a),
            _others: [b, c],
            configuration,
            balancer,
            address,
            control_socket,
            _folder: folder,
        })
    }

    pub(super) fn configuration(&self) -> &str {
        &self.configuration
    }

    /// Where clients connect.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn control_socket(&self) -> &Path {
        &self.control_socket
    }

    pub(super) fn kill_a(&mut self) {
        self.a = None;
    }

    pub(super) fn revive_a(&mut self) -> io::Result<()> {
        self.a = Some(ExampleService::start("a", self.a_address)?);
        Ok(())
    }

    /// What `evenkeel status` would show of it.
    pub(super) fn endpoint_a(&self) -> Result<EndpointReport, StageError> {
        let status: StatusReport =
            ControlClient::connect(&self.control_socket, ANSWER_TIMEOUT)?.ask(&Request::Status)?;
        let mut endpoints = status
            .clusters
            .into_iter()
            .flat_map(|cluster| cluster.endpoints);
        endpoints
            .find(|endpoint| endpoint.name == "a")
            .ok_or(StageError::Unknown("endpoint a"))
    }

    /// Until a signal or `evenkeel stop`.
    pub(super) fn stay_up(self) -> Exit {
        match self.balancer.join() {
            Ok(()) => Exit::Done,
            Err(_) => output::complain(
                "the control plane failed; this is a fault of evenkeel, please report it",
            ),
        }
    }

    pub(super) fn take_down(self) -> Exit {
        self.balancer.stop(StopMode::Graceful);
        self.stay_up()
    }
}

fn configuration([a, b, c]: [SocketAddr; 3], control_socket: &Path) -> String {
    format!(
        r#"process.control_socket = {}
log.access = "off"
[listener.users]
bind = "127.0.0.1:0"
to = "users"
[cluster.users]
endpoints = [
  {{ name = "a", address = "{a}", weight = 5 }},
  {{ name = "b", address = "{b}" }},
  {{ name = "c", address = "{c}" }},
]
replay = "4KiB"               # kept until the answer begins, to be sent again elsewhere
trials = {{ every = "200ms" }}  # how soon an endpoint that failed is tried again
ejection = "off"
"#,
        toml::Value::from(control_socket.display().to_string())
    )
}
