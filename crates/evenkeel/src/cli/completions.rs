//! `evenkeel completions`: what a shell needs to complete the command line.

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::exit::Exit;
use crate::output;

/// What `completions` takes.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArguments {
    /// For which shell
    shell: SupportedShell,
}

/// The shells that are known to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SupportedShell {
    /// `evenkeel completions bash > /usr/share/bash-completion/completions/evenkeel`
    Bash,
    /// `evenkeel completions zsh > /usr/share/zsh/site-functions/_evenkeel`
    Zsh,
    /// `evenkeel completions fish > /usr/share/fish/vendor_completions.d/evenkeel.fish`
    Fish,
}

impl From<SupportedShell> for Shell {
    fn from(shell: SupportedShell) -> Self {
        match shell {
            SupportedShell::Bash => Self::Bash,
            SupportedShell::Zsh => Self::Zsh,
            SupportedShell::Fish => Self::Fish,
        }
    }
}

/// Prints the script for a shell; `command` is the program's whole command line.
pub fn completions(arguments: &CompletionsArguments, command: Command) -> Exit {
    output::print(&script(arguments.shell, command))
}

fn script(shell: SupportedShell, mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(Shell::from(shell), &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each shell's script names the program and its commands.
    #[test]
    fn each_shell_gets_a_script() {
        for shell in SupportedShell::value_variants() {
            let command = Command::new("evenkeel").subcommand(Command::new("check"));

            let script = script(*shell, command);

            assert!(
                script.contains("evenkeel") && script.contains("check"),
                "{shell:?}"
            );
        }
    }
}
