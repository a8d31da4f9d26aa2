//! A file that was broken while its process runs: the commands that only need the process still find it by that file.

use std::fs;
use std::process::Output;

use crate::support::evenkeel::{Evenkeel, evenkeel_command};
use crate::support::service::Service;
use crate::support::{client, ports, wait};

/// Content that is wrong, and a text that is no TOML at all.
const MISTAKES: [&str; 2] = ["[clutser.x]\n", "[[[ = {\n"];

fn start(service: &Service) -> (Evenkeel, String) {
    let front = ports::free();
    let config = format!(
        "[listener.front]\nbind = \"{front}\"\nto = \"letters\"\n\
         [cluster.letters]\nendpoints = [{{ name = \"a\", address = \"{}\" }}]\n",
        service.address()
    );
    let evenkeel = Evenkeel::start(config.clone());
    assert_eq!(client::ask(front, "hello"), "hello");
    (evenkeel, config)
}

fn ask_by_file(evenkeel: &Evenkeel, words: &[&str]) -> Output {
    let mut command = evenkeel_command(words);
    command.arg("--config").arg(evenkeel.config_path());
    command.output().expect("evenkeel can be started")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `status` and `endpoint` do what they are there for; `reload` gets the faults from the process, which goes on.
#[test]
fn a_broken_file_leads_to_its_process() {
    let service = Service::echo();
    let (evenkeel, config) = start(&service);
    for mistake in MISTAKES {
        evenkeel.write_config(&format!("{config}{mistake}"));
        for words in [
            &["status"][..],
            &["endpoint", "drain", "letters/a"],
            &["endpoint", "enable", "letters/a"],
        ] {
            let output = ask_by_file(&evenkeel, words);
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{words:?}: {error}");
        }

        let output = ask_by_file(&evenkeel, &["reload"]);

        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("evenkeel.toml:"), "{said}");
        assert!(said.contains("what runs goes on"), "{said}");
    }
}

/// The process can be ended by it, too.
#[test]
fn a_broken_file_does_not_keep_its_process_from_being_stopped() {
    let service = Service::echo();
    let (mut evenkeel, config) = start(&service);
    evenkeel.write_config(&format!("{config}{}", MISTAKES[1]));

    let output = ask_by_file(&evenkeel, &["stop"]);

    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    wait::until_so("it has ended", || evenkeel.process().exited().is_some());
}

/// A socket that cannot be made out is not guessed: the default could be another process's.
#[test]
fn a_broken_socket_is_refused_with_the_faults() {
    let service = Service::echo();
    let (evenkeel, _) = start(&service);
    let broken = "[process]\ncontrol_socket = 5\n";
    fs::write(evenkeel.config_path(), broken).expect("it is ours");

    let output = ask_by_file(&evenkeel, &["stop"]);

    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(evenkeel.status()["phase"], "running");
}
