//! Tools that run tests: their requirements and commands.
//!
//! Purpose: the commands that look for undefined behaviour run what can run on this machine, and
//! report what they left out and why. Thread safety: none needed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::testing::parts::{self, Counts, Part, Took};

/// A tool, its command, and its requirements.
pub(crate) struct Tool {
    pub(crate) name: String,
    /// Whether it needs the nightly toolchain.
    pub(crate) nightly: bool,
    /// Arguments for cargo.
    pub(crate) arguments: String,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Why it cannot run here.
    pub(crate) missing: Option<String>,
}

/// Why there is no nightly toolchain with a component, if there is none; for `""` only the
/// toolchain is checked.
pub(crate) fn missing_nightly(component: &str) -> Option<String> {
    if !succeeds("rustup", &["run", "nightly", "cargo", "--version"]) {
        return Some("there is no nightly toolchain (rustup)".to_owned());
    }
    let installed =
        output("rustup", &["component", "list", "--toolchain", "nightly", "--installed"]);
    let has_it = installed.lines().any(|line| line.starts_with(component));
    (!has_it)
        .then(|| format!("the component {component} of the nightly toolchain is not installed"))
}

/// Runs all of them, even after a failure.
pub(crate) fn run_all(tools: &[Tool], root: &Path) -> Vec<Part> {
    tools.iter().map(|tool| run(tool, root)).collect()
}

/// The part of a tool. It fails if no test was selected, because the tool would then check nothing
/// unnoticed.
fn run(tool: &Tool, root: &Path) -> Part {
    let name = &tool.name;
    if let Some(why) = &tool.missing {
        return left_out(name, why);
    }
    println!("== {name}: cargo {}", tool.arguments);
    let mut command = if tool.nightly {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command
    } else {
        Command::new(env!("CARGO"))
    };
    let variables = tool.variables.iter().map(|(name, value)| (name, value));
    command.args(words(&tool.arguments)).envs(variables).current_dir(root);
    watched(parts::of(name, &mut command))
}

/// The part of a tool that is not installed.
pub(crate) fn left_out(name: &str, why: &str) -> Part {
    println!("skipped: {name}: {why}");
    Part {
        name: name.to_owned(),
        took: Took::default(),
        counts: Counts { skipped: 1, ..Counts::default() },
        is_command: false,
        skipped: vec![why.to_owned()],
        failed: Vec::new(),
    }
}

/// A part that has failed if no test was run.
fn watched(mut part: Part) -> Part {
    if part.is_command && part.counts.failed == 0 {
        part.counts = Counts { passed: 0, failed: 1, ..part.counts };
        part.failed.push("expected tests, none was chosen: have they other names now?".to_owned());
    }
    part
}

/// Words of a line; text within apostrophes is one word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for char in line.chars() {
        match char {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(char)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Why a program cannot be run, if it cannot.
pub(crate) fn missing_program(name: &str) -> Option<String> {
    (!succeeds(name, &["--version"])).then(|| format!("{name} is not installed"))
}

/// Whether the compiler has a standard library for a machine.
pub(crate) fn has_target(target: &str) -> bool {
    let folder = output("rustc", &["--print", "target-libdir", "--target", target]);
    !folder.is_empty() && Path::new(folder.trim()).exists()
}

/// The compiler's host machine.
pub(crate) fn host() -> Result<String, String> {
    let text = output("rustc", &["-vV"]);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
}

/// The output of a program; empty if it cannot be run.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Whether a program exists and succeeds.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_words() {
        assert_eq!(words("a  b='c d' e"), ["a", "b=c d", "e"]);
    }

    #[test]
    fn tests_that_are_not_there_are_told() {
        let part = |line: &str| {
            let mut command = Command::new("echo");
            watched(parts::of("a tool", command.arg(line)))
        };
        let none =
            part("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out");
        assert_eq!((none.counts.passed, none.counts.failed), (0, 1));
        let some =
            part("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out");
        assert_eq!((some.counts.passed, some.counts.failed), (1, 0));
    }
}
