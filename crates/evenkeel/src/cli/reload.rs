//! `evenkeel reload`: has the running process read its configuration again, and tells what changed.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use evenkeel_proxy::control::protocol::{Appearance, Request};
use evenkeel_proxy::control::reload_report::ReloadReport;

use super::check;
use super::running::Which;
use crate::exit::Exit;
use crate::table::printable;
use crate::{output, reload, wording};

/// How long the process may take beyond reading its files: for another reload that is under way, and for sockets and tables.
const GRACE: Duration = Duration::from_secs(50);

/// What `reload` takes.
#[derive(Args, Clone, Debug)]
pub struct ReloadArguments {
    /// Print each change, and not only how many there are
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of words
    #[arg(long)]
    json: bool,
}

/// Asks, waits, and tells how it went.
pub fn reload(arguments: &ReloadArguments) -> Exit {
    let patience = reload::READING_PATIENCE + GRACE;
    let request = Request::Reload {
        appearance: appearance(),
    };
    let asked = arguments
        .which
        .connect_within(patience)
        .and_then(|mut process| Ok(process.ask(&request)?));
    match asked {
        Ok(report) => tell(&report, arguments),
        Err(refused) => refused.report(),
    }
}

fn appearance() -> Appearance {
    match check::appearance() {
        crate::config::Appearance::Plain => Appearance::Plain,
        crate::config::Appearance::Coloured => Appearance::Coloured,
    }
}

fn tell(report: &ReloadReport, arguments: &ReloadArguments) -> Exit {
    let told = if arguments.json {
        output::print_json(report)
    } else {
        say(report, arguments)
    };
    match (told, report) {
        (Exit::Done, ReloadReport::Invalid { .. }) => Exit::ConfigInvalid,
        (Exit::Done, ReloadReport::Failed { .. }) => Exit::Failed,
        (told, _) => told,
    }
}

/// What changed is the answer; why nothing did is a complaint.
fn say(report: &ReloadReport, arguments: &ReloadArguments) -> Exit {
    match report {
        ReloadReport::Reloaded {
            file,
            changes,
            after_restart,
            sessions,
        } => {
            let summary = wording::summary(changes, *sessions);
            let listed = if arguments.verbose { &changes[..] } else { &[] };
            let lines = listed
                .iter()
                .map(|change| format!("  {}", wording::line(change)));
            let waiting = after_restart.iter().map(wording::deferral);
            let text: String = std::iter::once(format!("{file}: {summary}"))
                .chain(lines)
                .chain(waiting)
                .map(|line| printable(&line) + "\n")
                .collect();
            output::print(&text)
        }
        ReloadReport::Invalid { diagnostics, .. } => {
            // With standard error gone, there is nobody left to tell; the exit code says it all the same.
            let _ = io::stderr().lock().write_all(diagnostics.as_bytes());
            output::complain("not reloaded: what runs goes on with the configuration that it has");
            Exit::Done
        }
        ReloadReport::Failed { message } => {
            output::complain(&format!("not reloaded: {}", printable(message)))
        }
    }
}
