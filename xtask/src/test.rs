//! `cargo xtask test`: all tests, in parts.
//!
//! Purpose: one command for a fresh clone with only Rust. It ends with a table of the parts, their
//! seconds and tests, what was not run and why, and a line of totals. A failed part does not stop
//! the others.

use std::path::PathBuf;
use std::process::Command;

use crate::campaigns::sanitize;
use crate::source::workspace::Workspace;
use crate::testing::docs;
use crate::testing::parts::{self, Part};
use crate::testing::python;
use crate::testing::redis_py;
use crate::testing::services;

const MOST_TESTS: &str = "test TOGETHER --no-fail-fast --lib --bins --tests -- --show-output";
/// The other packages run theirs with their tests.
const DOCUMENTATION_TESTS: &str = "test TOGETHER --no-fail-fast --doc";
/// The command, and the library as programs in C see it: compilers, valgrind and so on, where they
/// are.
const USERS_TESTS: &str = "test USERS --no-fail-fast -- --skip kill_loop --show-output";
const KILL_LOOP: &str = "test USERS --test kill_loop -- --show-output";
/// Campaigns that try to lose data, with a fixed seed.
const PROOF: &str = "xtask proof --smoke --seed 1";
/// The build for the next parts.
const PROGRAMS: &str = "build --quiet TOGETHER --examples --bin adamant-bench";
/// Checks that the benchmark runs, not its speed: small and with one round.
const BENCHMARK: &str = "kv --entries 5000 --large-entries 2000 --rounds 1";

/// Runs all parts. `kill_rounds`: rounds of the kill loop, if not its own default.
pub(crate) fn run(kill_rounds: Option<u32>) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    std::thread::scope(|scope| {
        // They wait for syncs and timers rather than compute, and are built in a folder of their
        // own.
        let services = scope.spawn(|| services::tests(&workspace, None).beside_others());
        let mut ran = one_by_one(&workspace, kill_rounds)?;
        ran.push(services.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(parts::summarise(&ran))
    })
}

/// All parts except the one that runs beside all of them.
fn one_by_one(workspace: &Workspace, kill_rounds: Option<u32>) -> Result<Vec<Part>, String> {
    let run = |name: &str, arguments: &str, variables: &[(&str, String)]| {
        parts::run_line(&workspace.root, name, arguments, variables)
    };
    let rounds = kill_rounds.map(|rounds| ("ADAMANT_KILL_ROUNDS", rounds.to_string()));
    let rounds: Vec<_> = rounds.into_iter().collect();
    let mut ran = vec![
        run("unit and integration tests", MOST_TESTS, &[]),
        run("documentation tests", DOCUMENTATION_TESTS, &[]),
        run("the command, and C", USERS_TESTS, &[]),
        run("kill loop", KILL_LOOP, &rounds),
    ];
    ran.push(run("programs, built", PROGRAMS, &[]));
    ran.extend(programs(workspace));
    let (name, flags) = docs::FLAGS;
    let variables = [(name, flags.to_owned())];
    ran.push(run("documentation", &docs::arguments(workspace).join(" "), &variables));
    ran.push(run("proof, in short", PROOF, &[]));
    std::thread::scope(|scope| {
        // Tests in Python take one processor, for as long as these take the other.
        let python = scope.spawn(|| python::run(&workspace.root).beside_others());
        ran.extend(sanitize::smoke(workspace)?);
        ran.push(run("packages", "xtask package --quick", &[]));
        ran.push(redis_py::run(workspace));
        ran.push(python.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(ran)
    })
}

/// Runs only the parts in Python.
pub(crate) fn run_python() -> Result<bool, String> {
    let workspace = Workspace::load()?;
    Ok(parts::summarise(&[python::run(&workspace.root), redis_py::run(&workspace)]))
}

/// Each example of any package, and the benchmark.
fn programs(workspace: &Workspace) -> Vec<Part> {
    let folder = workspace.target.join("debug");
    let of = |name: String, program: PathBuf, words: &[&str]| {
        parts::of(&name, Command::new(program).args(words).current_dir(&workspace.root))
    };
    let named = workspace.packages.iter().flat_map(|package| &package.examples);
    let examples =
        named.map(|name| of(format!("example {name}"), folder.join("examples").join(name), &[]));
    let words: Vec<&str> = BENCHMARK.split(' ').collect();
    let benchmark = of("benchmark smoke test".to_owned(), folder.join("adamant-bench"), &words);
    examples.chain([benchmark]).collect()
}
