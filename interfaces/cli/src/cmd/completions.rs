//! `adamant completions bash|zsh|fish`: completion scripts of shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Args, CompletionsArgs, ShellArg};
use crate::failure::Result;
use crate::output::Output;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<()> {
    let shell = match args.shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "adamant", &mut script);
    output.bytes(&script)
}
