//! Tools that run tests: what each needs, and what it is run with.
//!
//! Purpose: the commands that look for undefined behaviour run what can run on this machine, and say what they
//! left out and why. Thread safety: none needed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A tool, how it is run, and what must be there for it.
pub(crate) struct Tool {
    pub(crate) name: String,
    /// With which toolchain: the default one, or nightly.
    pub(crate) nightly: bool,
    /// Words for cargo.
    pub(crate) arguments: String,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Why it cannot run here.
    pub(crate) missing: Option<String>,
}

/// Why there is no nightly toolchain with a component, if there is none; of `""` only the toolchain is asked
/// for.
pub(crate) fn missing_nightly(component: &str) -> Option<String> {
    if !succeeds("rustup", &["run", "nightly", "cargo", "--version"]) {
        return Some("there is no nightly toolchain (rustup)".to_owned());
    }
    let mut command = Command::new("rustup");
    command.args(["component", "list", "--toolchain", "nightly", "--installed"]);
    let output = command.stderr(Stdio::null()).output();
    let installed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let has_it = installed.is_ok_and(|list| list.lines().any(|line| line.starts_with(component)));
    (!has_it)
        .then(|| format!("the component {component} of the nightly toolchain is not installed"))
}

/// Runs all of them, also after one that failed. True if none did.
pub(crate) fn run_all(tools: &[Tool], root: &Path) -> bool {
    tools.iter().filter(|tool| !run(tool, root)).count() == 0
}

/// True unless it failed.
fn run(tool: &Tool, root: &Path) -> bool {
    if let Some(why) = &tool.missing {
        println!("skipped: {}: {why}", tool.name);
        return true;
    }
    println!("== {}: cargo {}", tool.name, tool.arguments);
    let start = Instant::now();
    let mut command = if tool.nightly {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command
    } else {
        Command::new(env!("CARGO"))
    };
    let status = command
        .args(words(&tool.arguments))
        .envs(tool.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .status();
    let passed = status.is_ok_and(|status| status.success());
    let outcome = if passed { "passed" } else { "FAILED" };
    println!("{outcome}: {} in {:.0} s", tool.name, start.elapsed().as_secs_f64());
    passed
}

/// Words of a line; what stands within apostrophes belongs to one.
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

/// The name of the machine that the compiler compiles for.
pub(crate) fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("could not run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
}

/// Whether a program is there and does what it is asked.
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
}
