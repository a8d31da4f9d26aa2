//! `evenkeel demo`: a cluster, a balancer and clients in one process, and a story in three scenes.
//!
//! Nothing is staged: the configuration is parsed by the code that reads files, the clients connect by TCP, the weights are
//! asked for on the control socket. What is printed is what happened.

mod stage;
mod traffic;

use std::io;
use std::time::{Duration, Instant};

use clap::Args;

use crate::exit::Exit;
use crate::output;
use stage::{Stage, StageError};
use traffic::{Answers, Client};

/// What `demo` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArguments {
    /// End by itself after the last scene
    #[arg(long)]
    once: bool,
}

/// Two rounds of the weights 5, 1 and 1.
const TWO_ROUNDS: usize = 14;
/// Clients at work while an endpoint dies.
const CROWD: usize = 4;
/// Requests of each of them.
const REQUESTS_OF_EACH: usize = 25;
/// How many of all those requests are answered before the endpoint dies.
const ANSWERED_BEFORE_THE_END: usize = 20;
/// Time between two requests while the demo waits for something to change.
const PACE: Duration = Duration::from_millis(10);
/// What is waited for comes within half a second; this long only if something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest stretch of answers shown in one line.
const SHOWN_MAX: usize = 24;

/// Plays the scenes, and stays up unless asked not to.
pub(crate) fn demo(arguments: &DemoArguments) -> Exit {
    match Stage::build() {
        Ok(stage) => perform(stage, arguments),
        Err(error) => output::complain(&format!("cannot build the demo: {error}")),
    }
}

fn perform(mut stage: Stage, arguments: &DemoArguments) -> Exit {
    let played = play(&mut stage);
    let exit = match played {
        Ok(0) => Exit::Done,
        Ok(failed) => output::complain(&format!(
            "requests that failed: {failed}; there should be none"
        )),
        Err(error) => output::complain(&format!("the demo broke off: {error}")),
    };
    if exit == Exit::Done && !arguments.once {
        let invited = output::print(&invitation(&stage));
        return match stage.stay_up() {
            Exit::Done => invited,
            failed => failed,
        };
    }
    match stage.take_down() {
        Exit::Done => exit,
        failed => failed,
    }
}

/// How many requests failed.
fn play(stage: &mut Stage) -> Result<usize, StageError> {
    print(&opening(stage))?;
    let mut failed = share_by_weight(stage)?;
    failed += lose_an_endpoint(stage)?;
    failed += get_it_back(stage)?;
    Ok(failed)
}

fn opening(stage: &Stage) -> String {
    let configuration: String = stage
        .configuration()
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    format!("Three endpoints of a user-lookup service, and evenkeel in front:\n{configuration}\n")
}

/// Scene 1: the heaviest endpoint gets the most, but never in a burst.
fn share_by_weight(stage: &mut Stage) -> Result<usize, StageError> {
    let client = Client::of(stage);
    let first = client.ask();
    let record = first.text.trim_end();
    print(&format!(
        "A client sends \"ada\", ends its side, and reads to the end:\n    {record}\n"
    ))?;
    let lead_in = client.ask_until_top_of_round();
    let answers = client.ask_times(TWO_ROUNDS);
    say(
        "1. Weights 5, 1 and 1: most for the heaviest, never in a burst",
        &[&answers.sequence(), &answers.summary()],
    )?;
    Ok(usize::from(first.served_by.is_none()) + lead_in.failed() + answers.failed())
}

/// Scene 2: an endpoint dies under traffic. Its effective weight fades, and no client notices.
fn lose_an_endpoint(stage: &mut Stage) -> Result<usize, StageError> {
    let client = Client::of(stage);
    let before = stage.endpoint_a()?;
    let mut answers = client.crowd(CROWD, REQUESTS_OF_EACH, ANSWERED_BEFORE_THE_END, || {
        stage.kill_a();
    });
    ask_until(client, &mut answers, || {
        Ok(stage.endpoint_a()?.effective_weight == 0)
    })?;
    let after = stage.endpoint_a()?;
    let fate = format!(
        "a: effective weight {} -> {}, {}; its {} failures were tried again elsewhere",
        before.effective_weight, after.effective_weight, after.state, after.failures
    );
    say(
        &format!("2. a dies while {CROWD} clients are at work"),
        &[&fate, &answers.summary()],
    )?;
    Ok(answers.failed())
}

/// Scene 3: it comes back, is found by a trial, and works its way up to its full share.
fn get_it_back(stage: &mut Stage) -> Result<usize, StageError> {
    let client = Client::of(stage);
    stage.revive_a()?;
    let mut answers = Answers::default();
    ask_until(client, &mut answers, || {
        let a = stage.endpoint_a()?;
        Ok(a.effective_weight == a.weight)
    })?;
    let full = client.ask_times(TWO_ROUNDS);
    let fade_in = format!(
        "{}   effective weight 0 -> 5",
        answers.sequence_from("a", SHOWN_MAX)
    );
    say(
        "3. a returns: a trial finds it, and each success raises it",
        &[&fade_in, &answers.summary()],
    )?;
    say("4. All is as before", &[&full.sequence(), &full.summary()])?;
    Ok(answers.failed() + full.failed())
}

fn say(title: &str, lines: &[&str]) -> Result<(), StageError> {
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    print(&format!("\n{title}\n{lines}"))
}

/// A story that cannot be told is not played on.
fn print(text: &str) -> Result<(), StageError> {
    match output::print(text) {
        Exit::Done => Ok(()),
        _ => Err(StageError::Untold),
    }
}

/// Asks again and again, at an even pace, until it is so.
fn ask_until(
    client: Client,
    answers: &mut Answers,
    is_so: impl Fn() -> Result<bool, StageError>,
) -> Result<(), StageError> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        answers.push(client.ask());
        std::thread::sleep(PACE);
    }
    Ok(())
}

fn invitation(stage: &Stage) -> String {
    // Whole, because another terminal may have another working folder and search path.
    let program = std::env::current_exe().unwrap_or_else(|_| "evenkeel".into());
    let program = program.display();
    let (address, socket) = (stage.address(), stage.control_socket().display());
    format!(
        "\nIt stays up now; Ctrl-C ends it. In another terminal:\n    \
         echo ada | nc {} {}\n    \
         {program} status --socket {socket}\n    \
         {program} route users 192.0.2.7 --socket {socket}\n    \
         {program} stop --socket {socket}\n",
        address.ip(),
        address.port()
    )
}
