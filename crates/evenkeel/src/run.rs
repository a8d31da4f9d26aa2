//! `evenkeel run`: the configuration is checked whole, then the balancer is started, and the process is it until it ends.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use evenkeel_proxy::StartError;

use crate::balancer::{Balancer, BalancerError};
use crate::cli::complain_about;
use crate::config::{self, DEFAULT_PATH, Loaded};
use crate::desk::VERSION;
use crate::exit::Exit;
use crate::lookout::Lookout;
use crate::program_log::ProgramLog;
use crate::reload::Source;
use crate::upgrade::endowment::Endowment;
use crate::{descriptors, output};

/// What `run` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArguments {
    /// The configuration
    #[arg(default_value = DEFAULT_PATH)]
    file: PathBuf,
}

/// Runs until a signal or `evenkeel stop` ends it.
pub(crate) fn run(arguments: &RunArguments) -> Exit {
    let lookout = match Lookout::post() {
        Ok(lookout) => lookout,
        Err(error) => return output::complain(&format!("cannot listen to signals: {error}")),
    };
    match config::load(&arguments.file) {
        Ok(loaded) => serve(loaded, &arguments.file, lookout),
        Err(diagnostics) => complain_about(&diagnostics),
    }
}

fn serve(loaded: Loaded, file: &Path, lookout: Lookout) -> Exit {
    let source = Source::new(file, ProgramLog::start(loaded.log_level));
    let workers = loaded.settings.process.workers;
    let endowment = match Endowment::receive() {
        Ok(endowment) => endowment,
        Err(error) => {
            return output::complain(&format!(
                "cannot take over from the running process: {error}"
            ));
        }
    };
    match Balancer::start(loaded.settings, Some(source), lookout, endowment) {
        Ok(balancer) => {
            descriptors::warn_if_few();
            announce(&balancer, file, workers);
            wait(balancer)
        }
        Err(error) => output::complain(&explain(&error)),
    }
}

fn announce(balancer: &Balancer, file: &Path, workers: usize) {
    for listener in balancer.listeners() {
        tracing::info!(listener = %listener.name, address = %listener.address, "listening");
    }
    if let Some(address) = balancer.admin() {
        tracing::info!(%address, "answering /metrics, /livez and /readyz");
    }
    let control_socket = balancer
        .control_socket()
        .map_or_else(|| "off".to_owned(), |path| path.display().to_string());
    tracing::info!(version = VERSION, configuration = %output::shown_path(file), workers, control_socket, "ready");
}

fn wait(balancer: Balancer) -> Exit {
    match balancer.join() {
        Ok(()) => Exit::Done,
        Err(_) => output::complain(
            "the control plane failed; this is a fault of evenkeel, please report it",
        ),
    }
}

/// The error with its causes, and with what to do about the commonest of them.
fn explain(error: &BalancerError) -> String {
    let mut text = output::with_causes(error);
    if lacks_port_right(error) {
        text.push_str("; ports below 1024 need CAP_NET_BIND_SERVICE");
    }
    text
}

fn lacks_port_right(error: &BalancerError) -> bool {
    const UNPRIVILEGED_PORT_MIN: u16 = 1024;
    matches!(
        error,
        BalancerError::Proxy(StartError::Bind { address, source, .. })
            if address.ip().is_some_and(|address| address.port() < UNPRIVILEGED_PORT_MIN)
                && source.kind() == io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_core::units::Address;
    use evenkeel_proxy::control::socket::ControlSocketError;

    use super::*;

    /// What the kernel said is told after the error's own words, and once if those have it already.
    #[test]
    fn causes_are_told_once() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let bind = BalancerError::from(StartError::Bind {
            listener: Arc::from("web"),
            address: Address::Ip(([127, 0, 0, 1], 80).into()),
            source: denied(),
        });
        let lock = BalancerError::from(ControlSocketError::Io {
            act: "lock",
            path: "/run/evenkeel/control.sock.lock".into(),
            source: denied(),
        });

        for error in [bind, lock] {
            let text = explain(&error);
            assert_eq!(text.matches(&denied().to_string()).count(), 1, "{text}");
        }
    }
}
