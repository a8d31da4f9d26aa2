//! `evenkeel run`: the configuration is checked whole, then the balancer is started, and the process is it until it ends.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::balancer::{Balancer, BalancerError};
use crate::cli::complain_about;
use crate::config::{self, DEFAULT_PATH, Loaded};
use crate::desk::VERSION;
use crate::exit::Exit;
use crate::{descriptors, output, program_log};

/// What `run` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArguments {
    /// The configuration
    #[arg(default_value = DEFAULT_PATH)]
    file: PathBuf,
}

/// Runs until a signal or `evenkeel stop` ends it.
pub(crate) fn run(arguments: &RunArguments) -> Exit {
    match config::load(&arguments.file) {
        Ok(loaded) => serve(loaded, &arguments.file),
        Err(diagnostics) => complain_about(&diagnostics),
    }
}

fn serve(loaded: Loaded, file: &Path) -> Exit {
    program_log::start(loaded.log_level);
    let workers = loaded.settings.process.workers;
    match Balancer::start(loaded.settings) {
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
    let control_socket = balancer
        .control_socket()
        .map_or_else(|| "off".to_owned(), |path| path.display().to_string());
    tracing::info!(version = VERSION, configuration = %file.display(), workers, control_socket, "ready");
}

fn wait(balancer: Balancer) -> Exit {
    match balancer.join() {
        Ok(()) => Exit::Done,
        Err(_) => output::complain(
            "the control plane failed; this is a fault of evenkeel, please report it",
        ),
    }
}

/// The error, and what lies under it where its own words do not say so already.
fn explain(error: &BalancerError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let under = error.to_string();
        if !text.contains(&under) {
            text = format!("{text}: {under}");
        }
        cause = error.source();
    }
    text
}
