//! `cargo xtask test`: every test there is, in parts.
//!
//! Purpose: one command for a fresh clone with only Rust. It ends with a table of the parts,
//! their seconds and tests, what was not run and why, and a line of totals. Parts go on after
//! one that failed.

use crate::docs;
use crate::parts::{self, Part};
use crate::python;
use crate::redis_py;
use crate::remote;
use crate::sanitize;
use crate::together;
use crate::workspace::Workspace;

const MOST_TESTS: &str = "test TOGETHER --no-fail-fast --lib --bins --tests -- --show-output";
/// Those of the others are run with their tests.
const DOCUMENTATION_TESTS: &str = "test TOGETHER --no-fail-fast --doc";
/// The library as programs in C see it: compilers, valgrind and so on, where they are.
const C_TESTS: &str = "test -p adamant-capi --no-fail-fast -- --show-output";
const COMMAND_TESTS: &str = "test -p adamant-cli --no-fail-fast -- --skip kill_loop --show-output";
/// Campaigns that try to lose data: the same every time.
const PROOF: &str = "xtask proof --smoke --seed 1";
/// Whether the benchmark runs, not how fast: small and of one round.
const BENCHMARK: &str = "run --quiet -p adamant-bench -- kv --entries 5000 --large-entries 2000 \
                         --rounds 1";

/// Runs all parts. `kill_rounds`: rounds of the kill loop, if not its own default.
pub(crate) fn run(kill_rounds: Option<u32>) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let run = |name: &str, arguments: &str, variables: &[(&str, String)]| {
        let words = together::words(arguments);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        parts::run(&workspace.root, name, &arguments, variables)
    };
    let rounds = kill_rounds.map(|rounds| ("ADAMANT_KILL_ROUNDS", rounds.to_string()));
    let rounds: Vec<_> = rounds.into_iter().collect();
    let mut ran = vec![
        run("unit and integration tests", MOST_TESTS, &[]),
        run("documentation tests", DOCUMENTATION_TESTS, &[]),
        run("the command", COMMAND_TESTS, &[]),
        run("C", C_TESTS, &[]),
        run("kill loop", "test -p adamant-cli --test kill_loop -- --show-output", &rounds),
    ];
    ran.extend(examples(&workspace));
    let (name, flags) = docs::FLAGS;
    let variables = [(name, flags.to_owned())];
    ran.push(run("documentation", &docs::arguments(&workspace).join(" "), &variables));
    ran.push(run("proof, in short", PROOF, &[]));
    ran.extend(sanitize::smoke(&workspace)?);
    ran.push(run("packages", "xtask package --quick", &[]));
    ran.push(run("benchmark smoke test", BENCHMARK, &[]));
    ran.push(python::run(&workspace.root));
    ran.push(redis_py::run(&workspace));
    ran.push(remote::tests(&workspace, None));
    Ok(parts::summarise(&ran))
}

/// Runs the parts in Python alone.
pub(crate) fn run_python() -> Result<bool, String> {
    let workspace = Workspace::load()?;
    Ok(parts::summarise(&[python::run(&workspace.root), redis_py::run(&workspace)]))
}

/// Each program of the examples' package, and each example of any package.
fn examples(workspace: &Workspace) -> Vec<Part> {
    let mut ran = Vec::new();
    for package in &workspace.packages {
        let programs = package.programs.iter().filter(|_| package.folder == "examples");
        let named = programs
            .map(|name| ("--bin", name))
            .chain(package.examples.iter().map(|name| ("--example", name)));
        for (kind, name) in named {
            let arguments = ["run", "--quiet", "-p", &package.name, kind, name];
            ran.push(parts::run(&workspace.root, &format!("example {name}"), &arguments, &[]));
        }
    }
    ran
}
